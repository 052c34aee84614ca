# ruff: noqa: E402 (what follows the path needs it)
"""Does it pay for classes where rows do not move? Alone, over messages, and the local default on pooled rows.

    COTERIE_DATA=FOLDER python benchmarks/federated/pays_classes.py [--tables ...] [--candidates logistic]

Tables and splits are those of benchmarks/quality/classes. Each learner is a site in this process, with ten
rows or more; every message is encoded and decoded on its way. Log loss and accuracy are means over sites, on
test rows. "alone" is a site's own model, "over messages" what it predicts with by its verdict. The local
default is `CoterieClassifier` with the same candidates, whose models see everybody's rows. Runs that are in
pays_classes.csv are not run again.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "quality" / "classes"))

import numpy as np
from tables import TABLES

from coterie import CoterieClassifier
from coterie.federated import (
    Settings,
    answer,
    coordinate,
    decode,
    encode,
    make_site,
    predict,
    score,
    share,
)
from coterie.federated.labels import class_codes

FEWEST_ROWS = 10
FORMS = ("alone", "over messages", "local default")
COLUMNS = (
    "table",
    "seed",
    "candidates",
    "sites",
    "coteries",
    *(f"log loss, {form}" for form in FORMS),
    *(f"accuracy, {form}" for form in FORMS),
    "over messages / alone",
    "over messages / local default",
    "bytes a site sends",
    "cpu s a site",
    "cpu s local default",
)
SUREST = 1e-6


def over_messages(data: Any, candidates: list[str], seed: int) -> tuple[Any, list[Any], int]:
    """Run the protocol; return the conclusion, the shares and the bytes that all sites sent."""
    sent, by_name, classes = [0], {}, np.unique(data.y).tolist()

    def carried(message: Any) -> Any:
        content = encode(message)
        sent[0] += len(content)
        return decode(content)

    for site in np.unique(data.groups).tolist():
        mine = data.groups == site
        own: dict[str, Any] = {"site": site, "candidates": candidates, "seed": seed, "classes": classes}
        by_name[site] = make_site(data.X[mine], data.y[mine], **own)
    shares = [carried(share(each)) for each in by_name.values()]
    scores = [carried(score(each, shares)) for each in by_name.values()]
    asking = coordinate(shares, scores, settings=Settings(min_rows=FEWEST_ROWS, seed=seed))
    try:
        question = next(asking)
        while True:
            asked = decode(encode(question))
            sites = [by_name[member.site] for member in asked.members]
            question = asking.send([carried(answer(site, shares, asked, n_replicates=0)) for site in sites])
    except StopIteration as end:
        return end.value, shares, sent[0]


def measure(table: str, seed: int, candidates: list[str]) -> dict[str, Any]:
    """Return one line of the results."""
    data = TABLES[table](seed)
    began = time.process_time()
    found, shares, sent = over_messages(data, candidates, seed)
    seconds = time.process_time() - began
    began = time.process_time()
    local = CoterieClassifier(candidates, random_state=seed, min_rows=FEWEST_ROWS)
    local.fit(data.X, data.y, groups=data.groups)
    cpu = time.process_time() - began
    scores: dict[str, list[tuple[float, bool]]] = {form: [] for form in FORMS}
    for site in found.labels:
        rows = data.groups_test == site
        X, codes = data.X_test[rows], class_codes(data.y_test[rows], found.classes, table).astype(int)
        chances = (
            predict(X, site, shares, found, using="alone"),
            predict(X, site, shares, found),
            local.predict_proba(X, groups=[site] * len(X)),
        )
        for form, each in zip(FORMS, chances, strict=True):
            lost = -np.log(np.clip(each[np.arange(len(codes)), codes], SUREST, 1))
            scores[form].append((lost.mean(), np.mean(each.argmax(axis=1) == codes)))
    mean = {form: np.mean(values, axis=0) for form, values in scores.items()}
    lost = [float(f"{mean[form][0]:.4g}") for form in FORMS]
    values = (
        table,
        seed,
        " ".join(candidates),
        len(found.labels),
        found.n_clusters,
        *lost,
        *(round(float(mean[form][1]), 4) for form in FORMS),
        round(lost[1] / lost[0], 3),
        round(lost[1] / lost[2], 3),
        round(sent / len(shares)),
        round(seconds / len(found.labels), 2),
        round(cpu, 1),
    )
    return dict(zip(COLUMNS, values, strict=True))


def main() -> None:
    """Run what is not there yet."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", nargs="*", choices=list(TABLES), default=list(TABLES))
    parser.add_argument("--candidates", nargs="*", default=["logistic"])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--out", type=Path, default=HERE / "pays_classes.csv")
    options = parser.parse_args()
    lines = list(csv.DictReader(options.out.open())) if options.out.exists() else []
    done = {(line["table"], int(line["seed"]), line["candidates"]) for line in lines}
    warnings.simplefilter("ignore")
    for seed in range(options.seeds):
        for table in options.tables:
            if (table, seed, " ".join(options.candidates)) in done:
                continue
            lines.append(measure(table, seed, options.candidates))
            print(lines[-1], flush=True)
            with options.out.open("w", newline="") as file:
                writer = csv.DictWriter(file, COLUMNS)
                writer.writeheader()
                writer.writerows(lines)


if __name__ == "__main__":
    main()
