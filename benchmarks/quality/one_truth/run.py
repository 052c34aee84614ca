"""How often is one truth taken for several? Many draws of it, with noise and sizes of many kinds.

    python benchmarks/quality/one_truth/run.py [--draws 100] [--out FOLDER] [--again]

Writes ``results.csv`` and ``README.md``; settings that are in ``results.csv`` already are not run again.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from coterie import cluster_learners, cross_evaluate, select_models
from coterie.rows.learners import gather_learners

HERE = Path(__file__).parent
COLUMNS = ("setting", "draws", "one", "ruled_out")

Generator = np.random.Generator
Array = np.ndarray
Noise = Callable[[Generator, Array, Array], Array]


def _normal(rng: Generator, X: Array, owner: Array) -> Array:
    return rng.normal(size=len(X))


def _student(degrees: float) -> Noise:
    return lambda rng, X, owner: rng.standard_t(degrees, len(X))


def _skew(rng: Generator, X: Array, owner: Array) -> Array:
    return rng.exponential(size=len(X)) - 1


def _outliers(rng: Generator, X: Array, owner: Array) -> Array:
    noise = rng.normal(size=len(X))
    return np.where(rng.random(len(X)) < 0.02, 20 * noise, noise)


def _growing(rng: Generator, X: Array, owner: Array) -> Array:
    """Return noise that grows with a predictor and differs between learners."""
    levels = np.exp(rng.normal(size=owner.max() + 1))
    return rng.normal(size=len(X)) * (1 + np.abs(X[:, 0])) * levels[owner]


def _uneven(rng: Generator, X: Array, owner: Array) -> Array:
    levels = rng.permutation(np.geomspace(0.3, 3, owner.max() + 1))
    return rng.normal(size=len(X)) * levels[owner]


def _zeros(rng: Generator, X: Array, owner: Array) -> Array:
    """Return noise that is nought in four rows of five, as claims are."""
    return np.where(rng.random(len(X)) < 0.8, 0.0, rng.lognormal(0, 1, len(X)))


def _lognormal(rng: Generator, X: Array, owner: Array) -> Array:
    return rng.lognormal(0, 1.5, len(X))


# Learners, rows of each, predictors, noise, and how far learners' predictors are apart.
SETTINGS: dict[str, tuple[int, int, int, Noise, float]] = {
    "30 learners of 60 rows, 5 predictors": (30, 60, 5, _normal, 0),
    "20 of 50, 5, Student t3": (20, 50, 5, _student(3), 0),
    "20 of 50, 5, Student t2": (20, 50, 5, _student(2), 0),
    "20 of 50, 5, exponential": (20, 50, 5, _skew, 0),
    "20 of 50, 5, 2% outliers x 20": (20, 50, 5, _outliers, 0),
    "20 of 50, 5, noise grows with a predictor": (20, 50, 5, _growing, 0),
    "30 of 60, 5, noise .3 to 3": (30, 60, 5, _uneven, 0),
    "20 of 50, 5, predictors shifted": (20, 50, 5, _normal, 2),
    "20 of 50, 20": (20, 50, 20, _normal, 0),
    "50 of 25, 20": (50, 25, 20, _normal, 0),
    "100 of 30, 4": (100, 30, 4, _normal, 0),
    "6 of 20, 3": (6, 20, 3, _normal, 0),
    "4 of 30, 2": (4, 30, 2, _normal, 0),
    "8 of 12, 5": (8, 12, 5, _normal, 0),
    "3 of 40, 2": (3, 40, 2, _normal, 0),
    "20 of 50, 5, lognormal": (20, 50, 5, _lognormal, 0),
    "20 of 50, responses mostly nought": (20, 50, 5, _zeros, 0),
}


def draw(setting: str, seed: int) -> tuple[Array, Array, Array]:
    """Return predictors, response and the learner of each row."""
    n_learners, n_rows, n_features, noise, shift = SETTINGS[setting]
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(n_learners), n_rows)
    X = (
        rng.normal(size=(len(owner), n_features))
        + shift * rng.uniform(-1, 1, (n_learners, n_features))[owner]
    )
    signal, left = X @ rng.normal(size=n_features), noise(rng, X, owner)
    # Amounts that are mostly nought do not depend on the predictors.
    return X, left if noise is _zeros else signal + left, owner


def one_draw(setting: str, seed: int) -> tuple[int, bool]:
    """Return the number of clusters, and whether one truth was ruled out."""
    X, y, owner = draw(setting, seed)
    learners = gather_learners(X, y, owner, caller="benchmark")
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        selection = select_models(learners, candidates="ridge")
        exchange = cross_evaluate(selection, learners)
        partition = cluster_learners(exchange, learners, selection=selection, candidates="ridge")
    return partition.n_clusters, partition.curves["held-out"].one_truth_z is not None


def read(path: Path) -> list[dict]:
    """Return the rows of an earlier run; none where there was none."""
    if not path.is_file():
        return []
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def page(rows: list[dict]) -> str:
    """Return the rows as a Markdown table, with their sum."""
    lines = [
        "| learners of rows, predictors | draws | one cluster | one truth ruled out |",
        "|---|---|---|---|",
    ]
    sums = [sum(int(row[name]) for row in rows) for name in COLUMNS[1:]]
    whole = {"setting": "all", **dict(zip(COLUMNS[1:], sums, strict=True))}
    for row in [*rows, whole]:
        share = int(row["one"]) / int(row["draws"])
        lines.append(f"| {row['setting']} | {row['draws']} | {share:.3f} | {row['ruled_out']} |")
    return "\n".join(lines)


def main() -> None:
    """Run the settings that have not been run, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--again", action="store_true", help="run settings again that have been run")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    results = arguments.out / "results.csv"
    rows = [] if arguments.again else read(results)
    for setting in SETTINGS:
        if any(row["setting"] == setting for row in rows):
            continue
        start = time.perf_counter()
        found = Parallel(n_jobs=2)(delayed(one_draw)(setting, seed) for seed in range(arguments.draws))
        counts = (len(found), sum(k == 1 for k, _ in found), sum(ruled_out for _, ruled_out in found))
        rows.append(dict(zip(COLUMNS, (setting, *counts), strict=True)))
        print(setting, *counts, f"{time.perf_counter() - start:.0f} s", flush=True)
        with open(results, "w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    text = (HERE / "README.head.md").read_text() + "\n" + page(rows) + "\n"
    (arguments.out / "README.md").write_text(text)


if __name__ == "__main__":
    main()
