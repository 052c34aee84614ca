"""Does it pay where rows do not move? Real tables: alone, over messages, and the local default on pooled
rows.

    COTERIE_DATA=FOLDER python benchmarks/federated/pays.py [--tables ...] [--candidates ridge] [--minutes 10]

Tables and splits are those of benchmarks/quality/real_tables. Each learner is a site in this process; sites
share, score and answer, and every message is encoded and decoded on its way. Errors are means over sites of
the mean squared error on test rows, over the sites that took part. "alone" is a site's own model, "over
messages" what it predicts with by its verdict. The local default is `CoterieRegressor` with the same
candidates, whose models see everybody's rows. Runs that are in pays.csv are not run again.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "quality" / "real_tables"))

import numpy as np  # noqa: E402
from more_tables import NAMES, OFFICIAL, split  # noqa: E402
from untouched import NAMES as OF_R  # noqa: E402

from coterie import CoterieRegressor  # noqa: E402
from coterie.federated import (  # noqa: E402
    answer,
    coordinate,
    decode,
    encode,
    make_party,
    predict,
    score,
    share,
)

COLUMNS = (
    "table",
    "seed",
    "candidates",
    "sites",
    "left out",
    "coteries",
    "alone",
    "over messages",
    "local default",
    "over messages / alone",
    "over messages / local default",
    "bytes a site sends",
    "cpu s a site",
    "cpu s local default",
)


def carried(message: Any, sent: dict[str, int]) -> Any:
    """Return a message as it arrives, and count its bytes."""
    content = encode(message)
    sent[message.site] = sent.get(message.site, 0) + len(content)
    return decode(content)


def over_messages(data: Any, candidates: list[str], seed: int) -> tuple[Any, list[Any], dict[str, int]]:
    """Run the protocol; return the conclusion, the shares and the bytes that each site sent."""
    sent: dict[str, int] = {}
    parties = {}
    for site in np.unique(data.groups).tolist():
        mine = data.groups == site
        parties[site] = make_party(data.X[mine], data.y[mine], site=site, candidates=candidates, seed=seed)
    shares = [carried(share(party), sent) for party in parties.values()]
    scores = [carried(score(party, shares), sent) for party in parties.values()]
    asking = coordinate(shares, scores)
    try:
        question = next(asking)
        while True:
            asked = decode(encode(question))
            replies = [
                carried(answer(parties[member.site], shares, asked, n_replicates=0), sent)
                for member in asked.members
            ]
            question = asking.send(replies)
    except StopIteration as end:
        return end.value, shares, sent


def measure(table: str, seed: int, candidates: list[str]) -> dict[str, Any]:
    """Return one line of the results."""
    data = split(table, seed)
    began = time.process_time()
    found, shares, sent = over_messages(data, candidates, seed)
    seconds = time.process_time() - began
    began = time.process_time()
    local = CoterieRegressor(candidates, random_state=seed).fit(data.X, data.y, groups=data.groups)
    errors: dict[str, list[float]] = {"alone": [], "over messages": [], "local default": []}
    cpu = time.process_time() - began
    for site in found.labels:
        rows = data.groups_test == site
        X, y = data.X_test[rows], data.y_test[rows]
        ways = {
            "alone": predict(X, site, shares, found, using="alone"),
            "over messages": predict(X, site, shares, found),
            "local default": local.predict(X, groups=[site] * len(X)),
        }
        for name, predicted in ways.items():
            errors[name].append(float(np.mean((y - predicted) ** 2)))
    mean = {name: float(np.mean(values)) for name, values in errors.items()}
    n_sites = len(found.labels)
    return dict(
        zip(
            COLUMNS,
            (
                table,
                seed,
                " ".join(candidates),
                n_sites,
                len(found.left_out),
                found.n_clusters,
                *(float(f"{value:.4g}") for value in mean.values()),
                round(mean["over messages"] / mean["alone"], 3),
                round(mean["over messages"] / mean["local default"], 3),
                round(sum(sent.values()) / max(len(sent), 1)),
                round(seconds / n_sites, 2),
                round(cpu, 1),
            ),
            strict=True,
        )
    )


def main() -> None:
    """Run what is not there yet."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    ours = [name for name in NAMES if name not in OF_R and name != OFFICIAL]
    parser.add_argument("--tables", nargs="*", choices=ours, default=ours)
    parser.add_argument("--candidates", nargs="*", default=["ridge"])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument(
        "--minutes", type=float, default=10.0, help="start no run after so many of processor time"
    )
    parser.add_argument("--out", type=Path, default=HERE / "pays.csv")
    options = parser.parse_args()
    lines = list(csv.DictReader(options.out.open())) if options.out.exists() else []
    done = {(line["table"], int(line["seed"]), line["candidates"]) for line in lines}
    warnings.simplefilter("ignore")
    for seed in range(options.seeds):
        for table in options.tables:
            late = time.process_time() > 60 * options.minutes
            if late or (table, seed, " ".join(options.candidates)) in done:
                continue
            try:
                lines.append(measure(table, seed, options.candidates))
            except SystemExit as why:
                print(f"{table} is left out: {why}", flush=True)
                continue
            print(lines[-1], flush=True)
            with options.out.open("w", newline="") as file:
                writer = csv.DictWriter(file, COLUMNS)
                writer.writeheader()
                writer.writerows(lines)


if __name__ == "__main__":
    main()
