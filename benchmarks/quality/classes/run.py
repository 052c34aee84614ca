"""Classes on real tables: coterie as it comes beside logistic regression, boosted trees and mixtures.

    COTERIE_DATA=FOLDER python benchmarks/quality/classes/run.py [--tables ...] [--methods ...] [--seeds 2]

A run that is in ``results.csv`` is not run again, but for ``--again``. Writes ``results.csv``, ``README.md``.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
import pandas as pd
from methods import METHODS, TWO_CLASSES
from page import write_page
from scores import scores
from sklearn.metrics import adjusted_rand_score
from tables import TABLES

HERE = Path(__file__).parent
# Fields 1 to 15 of landmine are foliated, the others are bare earth.
FOLIATED = 15


def _seconds() -> float:
    """Return the processor's time of this program and of those that it has run."""
    return float(sum(os.times()[:4]))


def measured(table: str, method: str, seed: int) -> dict[str, object]:
    """Run one method on one split of a table."""
    split = TABLES[table](seed)
    if method in TWO_CLASSES and len(np.unique(split.y)) > 2:
        return {"table": table, "method": method, "seed": seed}
    start = _seconds()
    found, known = METHODS[method](split, seed)
    row: dict[str, object] = {"table": table, "method": method, "seed": seed}
    row |= scores(found, split.y_test, split.groups_test)
    row["seconds"] = _seconds() - start
    if "labels" in known:
        row["n_clusters"] = known["n_clusters"]
        if table == "landmine":
            truth = [int(field) > FOLIATED for field in known["labels"]]
            row["ari"] = adjusted_rand_score(truth, list(known["labels"].values()))
    return row


def main() -> None:
    """Run what has not been run, and write the results and the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", nargs="*", choices=list(TABLES), default=list(TABLES))
    parser.add_argument("--methods", nargs="*", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--out", type=Path, default=HERE)
    options = parser.parse_args()
    file = options.out / "results.csv"
    done = pd.read_csv(file) if file.is_file() else pd.DataFrame(columns=["table", "method", "seed"])
    for table in options.tables:
        for seed in range(options.seeds):
            for method in options.methods:
                same = (done["table"] == table) & (done["method"] == method) & (done["seed"] == seed)
                if same.any() and not options.again:
                    continue
                row = measured(table, method, seed)
                print({k: np.round(v, 4) if isinstance(v, float) else v for k, v in row.items()}, flush=True)
                done = pd.concat([done[~same], pd.DataFrame([row])], ignore_index=True)
                done.sort_values(["table", "seed", "method"]).round(6).to_csv(file, index=False)
    write_page(done, options.out)


if __name__ == "__main__":
    main()
