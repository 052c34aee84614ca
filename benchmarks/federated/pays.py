"""Does it pay where rows do not move? Real tables: alone, over messages, and the local default on pooled
rows.

    COTERIE_DATA=FOLDER python benchmarks/federated/pays.py [--tables ...] [--candidates ridge] [--moments]

Tables and splits are those of benchmarks/quality/real_tables, twelve of them from packages of R. Each learner
is a site in this process; sites share, score and answer, and every message is encoded and decoded on its way.
Models predict as they were fitted, not read back from their message, which differs by rounding. Errors are
means over sites of the mean squared error on test rows, over the sites that took part. "alone" is a site's
own model, "over messages" what it predicts with by its verdict; with ``--moments`` sites send exact moments
in place of models. The local default is `CoterieRegressor` with the same candidates, whose models see
everybody's rows. Runs that are in pays.csv are not run again.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import time
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "quality" / "real_tables"))

import numpy as np  # noqa: E402
from more_tables import NAMES, OFFICIAL, split  # noqa: E402
from tables import TABLES  # noqa: E402
from untouched import untouched_tables  # noqa: E402

from coterie import CoterieRegressor  # noqa: E402
from coterie.federated import (  # noqa: E402
    answer,
    coordinate,
    decode,
    encode,
    make_site,
    predict,
    score,
    share,
    wire,
)
from coterie.federated.moments import conclude_moments, knots_for, open_moments, site_model  # noqa: E402

COLUMNS = (
    "table",
    "seed",
    "candidates",
    "sites send",
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


def sites_of(data: Any, candidates: list[str], seed: int) -> dict[str, Any]:
    """Return the sites, by name."""
    sites = {}
    for site in np.unique(data.groups).tolist():
        mine = data.groups == site
        sites[site] = make_site(data.X[mine], data.y[mine], site=site, candidates=candidates, seed=seed)
    return sites


def by_moments(sites: dict[str, Any], sent: dict[str, int]) -> tuple[Any, Any]:
    """Let sites send moments; return the conclusion, and what predicts a site's rows alone and mixed."""

    def moments_of(site: Any, knots: Any) -> Any:
        rows = site.learners
        named = {"site": site.name, "columns": site.columns, "target": site.target, "seed": site.seed}
        return carried(open_moments(rows.X, rows.scalar_y, knots=knots, **named), sent)

    straight = [moments_of(site, ()) for site in sites.values()]
    bent = [
        moments_of(site, knots_for(straight, mine))
        for site, mine in zip(sites.values(), straight, strict=True)
    ]
    pooled = conclude_moments(bent)
    models = {name: site_model(sites[name], pooled) for name in pooled.conclusion.labels}
    return pooled.conclusion, lambda X, name: (models[name].predict_own(X), models[name].predict(X))


def evaluate_here(sites: dict[str, Any]) -> None:
    """Evaluate models as they were fitted; in processes of their own, the large tables would take hours."""
    fitted = {share(site).model: site.selection.models[0] for site in sites.values()}

    def predict_each(models: list[Any], rows: Any, allowance: Any = None) -> Any:
        return SimpleNamespace(predictions=[m.predict(rows) for m in models], troubles={}, seconds=0.0)

    wire.unpack = lambda content, n_features, n_classes=0: fitted[content]
    wire.predict_each = predict_each


def by_models(sites: dict[str, Any], sent: dict[str, int]) -> tuple[Any, Any]:
    """Run the protocol; return the conclusion, and what predicts a site's rows alone and mixed."""
    evaluate_here(sites)
    shares = [carried(share(site), sent) for site in sites.values()]
    scores = [carried(score(site, shares), sent) for site in sites.values()]
    asking = coordinate(shares, scores)
    try:
        question = next(asking)
        while True:
            asked = decode(encode(question))
            replies = [
                carried(answer(sites[member.site], shares, asked, n_replicates=0), sent)
                for member in asked.members
            ]
            question = asking.send(replies)
    except StopIteration as end:
        found = end.value
    return found, lambda X, name: [
        predict(X, name, shares, found, using=form) for form in ("alone", "verdict")
    ]


def measure(
    table: str, seed: int, candidates: list[str], *, moments: bool, known: dict[str, Any] | None
) -> dict[str, Any]:
    """Return one line of the results; the local default is not fitted again where it is ``known``."""
    data = split(table, seed)
    began, sent = time.process_time(), dict[str, int]()
    found, both = (by_moments if moments else by_models)(sites_of(data, candidates, seed), sent)
    seconds = time.process_time() - began
    began = time.process_time()
    if known is None:
        local = CoterieRegressor(candidates, random_state=seed).fit(data.X, data.y, groups=data.groups)
    cpu = time.process_time() - began
    errors: dict[str, list[float]] = {"alone": [], "over messages": [], "local default": []}
    for site in found.labels:
        rows = data.groups_test == site
        X, y = data.X_test[rows], data.y_test[rows]
        predictions = list(both(X, site))
        if known is None:
            predictions.append(local.predict(X, groups=[site] * len(X)))
        for name, predicted in zip(errors, predictions, strict=False):
            errors[name].append(float(np.mean((y - predicted) ** 2)))
    if known is not None:
        errors["local default"], cpu = [float(known["local default"])], float(known["cpu s local default"])
    mean = {name: float(np.mean(values)) for name, values in errors.items()}
    n_sites = len(found.labels)
    return dict(
        zip(
            COLUMNS,
            (
                table,
                seed,
                " ".join(candidates),
                "moments" if moments else "models",
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
    TABLES.update(untouched_tables())
    ours = [name for name in NAMES if name in TABLES and name != OFFICIAL]
    parser.add_argument("--tables", nargs="*", choices=ours, default=ours)
    parser.add_argument("--candidates", nargs="*", default=["ridge"])
    parser.add_argument("--moments", action="store_true")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument(
        "--minutes", type=float, default=10.0, help="start no run after so many of processor time"
    )
    parser.add_argument("--out", type=Path, default=HERE / "pays.csv")
    options = parser.parse_args()
    lines = list(csv.DictReader(options.out.open())) if options.out.exists() else []
    sends, names = "moments" if options.moments else "models", " ".join(options.candidates)
    warnings.simplefilter("ignore")
    for seed in range(options.seeds):
        for table in options.tables:
            alike = [
                line
                for line in lines
                if (line["table"], line["candidates"]) == (table, names) and int(line["seed"]) == seed
            ]
            done = {line["sites send"]: line for line in alike}
            if time.process_time() > 60 * options.minutes or sends in done:
                continue
            # Who was left out differs between models and moments: then the means are over others.
            known = next((line for line in alike if int(line["left out"]) == 0), None)
            try:
                lines.append(measure(table, seed, options.candidates, moments=options.moments, known=known))
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
