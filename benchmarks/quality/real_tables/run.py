"""Does it pay on real tables? coterie as it comes beside what else a user could do.

    COTERIE_DATA=FOLDER python benchmarks/quality/real_tables/run.py [--tables ...] [--seeds 5]
    python benchmarks/quality/real_tables/run.py --untouched [--seeds 2]

One protocol for all tables and no setting of any of them: learners with at least 40 rows, the first 80; at
most 300 rows each, half to learn from, half to be scored on. Each (table, seed, method) that is in
``predictions`` already is not run again, so that an interrupted run goes on where it stopped. Writes
``results.csv``, ``README.md`` and ``figure.png``; with ``--untouched``, which runs tables that come with
packages of R instead, ``untouched.csv``.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from pathlib import Path

import numpy as np
from methods import METHODS, run
from page import write_page
from tables import TABLES, halves
from threadpoolctl import threadpool_limits
from untouched import NAMES, untouched_tables

from coterie.datasets import data_home

HERE = Path(__file__).parent
# Test errors of every learner, kept between runs; results.csv is made from them.
KEPT = data_home() / "real_tables"


def _errors(table: str, seed: int, method: str, folder: Path) -> None:
    """Run one method on one split and keep the squared errors of the test rows."""
    data = halves(table, seed)
    start = time.process_time()
    with threadpool_limits(1):
        predictions = run(method, data)
    seconds = time.process_time() - start
    squares = {name: (data.y_test - prediction) ** 2 for name, prediction in predictions.items()}
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f"{table}_{seed}_{method}.draft.npz"
    np.savez(draft, __seconds__=seconds, __groups__=data.groups_test, **squares)
    os.replace(draft, folder / f"{table}_{seed}_{method}.npz")
    for name, values in squares.items():
        print(f"{table} {seed} {name}: {data.by_learner(values).mean():.4f}  {seconds:.0f} s", flush=True)


def worse_than_alone(squares: np.ndarray, alone: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Return by how many standard errors each learner does worse than alone, paired over its rows."""
    scores = []
    for learner in np.unique(groups):
        excess = (squares - alone)[groups == learner]
        error = excess.std(ddof=1) / np.sqrt(len(excess))
        scores.append(excess.mean() / error if error > 0 else 0.0)
    return np.array(scores)


def gather(folder: Path, tables: list[str], seeds: range) -> list[dict]:
    """Return a row for every table, seed and method that has been run."""
    rows = []
    for table in tables:
        for seed in seeds:
            files = [folder / f"{table}_{seed}_{method}.npz" for method in METHODS]
            loaded = [np.load(file, allow_pickle=False) for file in files if file.is_file()]
            alone = next((part["alone"] for part in loaded if "alone" in part), None)
            for part in loaded:
                groups = part["__groups__"]
                _, codes = np.unique(groups, return_inverse=True)
                for name in (name for name in part.files if not name.startswith("__")):
                    row = {"table": table, "seed": seed, "method": name}
                    row["mse"] = float(np.mean(np.bincount(codes, part[name]) / np.bincount(codes)))
                    if alone is not None:
                        worse = worse_than_alone(part[name], alone, groups)
                        row["learners"] = len(worse)
                        row["worse_by_2_se"] = int(np.sum(worse > 2))
                        # One-sided 2.5 per cent, shared out among the learners.
                        row["worse_bonferroni"] = int(np.sum(worse > _bonferroni(len(worse))))
                    row["cpu_seconds"] = round(float(part["__seconds__"]), 1)
                    rows.append(row)
    return rows


def _bonferroni(n_learners: int) -> float:
    from scipy.stats import norm

    return float(norm.isf(0.0228 / n_learners))


def main() -> None:
    """Run what has not been run, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="*", choices=[*TABLES, *NAMES], default=None)
    parser.add_argument("--untouched", action="store_true", help="the tables that come with packages of R")
    parser.add_argument("--methods", nargs="*", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--seeds", type=int, default=None, help="5; of the untouched tables 2")
    parser.add_argument("--keep", type=Path, default=KEPT)
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--again", action="store_true", help="run again what has been run")
    arguments = parser.parse_args()
    known = list(TABLES)
    if arguments.untouched:
        TABLES.update(untouched_tables())
        known = [name for name in TABLES if name not in known]
    elsewhere = [name for name in arguments.tables or () if name not in known]
    if elsewhere:
        parser.error(
            f"{', '.join(elsewhere)}: not among {', '.join(known)}; --untouched changes which are run"
        )
    for seed in range(arguments.seeds or (2 if arguments.untouched else 5)):
        for table in arguments.tables or known:
            for method in arguments.methods:
                kept = arguments.keep / f"{table}_{seed}_{method}.npz"
                if arguments.again or not kept.is_file():
                    _errors(table, seed, method, arguments.keep)
    rows = gather(arguments.keep, known, range(100))
    columns = [
        "table",
        "seed",
        "method",
        "mse",
        "learners",
        "worse_by_2_se",
        "worse_bonferroni",
        "cpu_seconds",
    ]
    name = "untouched.csv" if arguments.untouched else "results.csv"
    with open(arguments.out / name, "w", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)
    write_page(HERE / "README.head.md", arguments.out)


if __name__ == "__main__":
    main()
