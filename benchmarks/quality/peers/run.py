"""coterie and its peers on the same simulated learners: is K right, is every label, and what does it predict?

    python benchmarks/quality/peers/run.py [--draws 5] [--settings NAME ...] [--out FOLDER]

Appends to ``results.csv`` a row per setting, draw and method; rows that are there are not made again, so
that a run can be interrupted and continued. Then writes ``README.md`` and ``peers.svg``.
"""

from __future__ import annotations

import os

# Small matrices: more threads only wait for each other, and times would depend on the machine's cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import csv
import time
import warnings
from pathlib import Path

import baselines
import flexmix
import ifca
import k_models
import numpy as np
import ours
import vectors
from page import write_page
from problem import LINES, Answer, Problem
from settings import SETTINGS, Draw, draw
from sklearn.metrics import adjusted_rand_score

from coterie.rows.learners import gather_learners

HERE = Path(__file__).parent
COLUMNS = ("setting", "draw", "method", "k", "ari", "exact", "mse", "seconds")
OURS = {
    "ours": ("coterie", "default"),
    "ours, linear": ("coterie, linear candidates", "linear"),
    "ours, standardised": ("coterie, standardised", "default"),
}
# Each part answers for one or more methods and is run again only if its rows are missing.
PARTS = ("baselines", *OURS, "vectors", "ifca", "k_models", "flexmix")


def in_shared_units(name: str, drawn: Draw, most: int, seed: int) -> tuple[Problem, np.ndarray, object]:
    """Return the problem as peers see it, the test rows in the same units, and the way back."""
    setting, train = SETTINGS[name], drawn.train
    learners = gather_learners(train.X, train.y, train.groups, caller="benchmark")
    owner = np.searchsorted(learners.ids, drawn.groups_test)
    X_test, back = drawn.X_test, lambda y: y
    if setting.standardize:
        learners, units = learners.standardized()
        X_test = units.forward_X(X_test, owner)
        back = lambda y: units.backward_y(y[:, None], owner)[:, 0]  # noqa: E731
    spans = [learners.span(j) for j in range(len(learners))]
    X, y = [learners.X[s] for s in spans], [learners.scalar_y[s] for s in spans]
    return Problem(X, y, setting.n_clusters, most, setting.family, seed), X_test, back


def predict_pooled(problem: Problem, labels: np.ndarray, X_test: np.ndarray, owner: np.ndarray) -> np.ndarray:
    """Predict each learner's test rows by one model on its cluster's rows."""
    predicted = np.empty(len(X_test))
    for k in np.unique(labels):
        rows = labels[owner] == k
        predicted[rows] = problem.fit(np.flatnonzero(labels == k)).predict(X_test[rows])
    return predicted


def answers_of(part: str, name: str, drawn: Draw, problem: Problem) -> list[Answer]:
    """Run one part."""
    if part in OURS:
        setting, train = SETTINGS[name], drawn.train
        linear, standardised = part == "ours, linear", part == "ours, standardised"
        if (linear and setting.family is not LINES) or (standardised and not setting.standardize):
            return []
        label, candidates = OURS[part]
        rows = ours.Rows(train.X, train.y, train.groups, standardised)
        found = ours.run(rows, drawn.X_test, drawn.groups_test, problem.n_clusters, candidates, label)
        # The paper's SEC sees the rows as the peers do.
        return found if not linear and standardised == setting.standardize else found[:2]
    if part == "baselines":
        return baselines.run(problem, drawn.train.truth)
    if part == "flexmix" and flexmix.missing():
        return []
    peer = {"vectors": vectors, "ifca": ifca, "k_models": k_models, "flexmix": flexmix}[part]
    return peer.run(problem)


def measure(name: str, seed: int, parts: list[str]) -> list[dict]:
    """Run some parts on one draw, and score their answers."""
    drawn = draw(name, seed)
    most = max(8, SETTINGS[name].n_clusters + 5)
    problem, X_test, back = in_shared_units(name, drawn, most, seed)
    truth = drawn.train.truth
    owner = np.searchsorted(drawn.train.learner_ids, drawn.groups_test)
    rows = []
    for part in parts:
        for answer in answers_of(part, name, drawn, problem):
            predicted = answer.predictions
            if predicted is None:
                predicted = back(predict_pooled(problem, answer.labels, X_test, owner))
            k = len(np.unique(answer.labels))
            ari = adjusted_rand_score(truth, answer.labels)
            mse = np.mean((predicted - drawn.signal_test) ** 2)
            numbers = (k, f"{ari:.4f}", int(ari == 1), f"{mse:.5f}", f"{answer.seconds:.2f}")
            rows.append(dict(zip(COLUMNS, (name, seed, answer.method, *numbers), strict=True), part=part))
    return rows


def read(path: Path) -> list[dict]:
    """Return the rows measured so far."""
    if not path.exists():
        return []
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def append(path: Path, rows: list[dict]) -> None:
    """Add rows at once, so that an interruption loses one draw at most."""
    new = not path.exists()
    with open(path, "a", newline="") as file:
        writer = csv.DictWriter(file, (*COLUMNS, "part"), lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerows(rows)


def run(settings: list[str], draws: int, out: Path, parts: tuple[str, ...] = PARTS) -> list[dict]:
    """Measure what is missing and return all rows."""
    out.mkdir(parents=True, exist_ok=True)
    path = out / "results.csv"
    done = {(row["setting"], int(row["draw"]), row["part"]) for row in read(path)}
    if flexmix.missing():
        print(flexmix.missing(), flush=True)
    # Draw by draw over all settings: a run that is interrupted has seen them all.
    for seed in range(draws):
        for name in settings:
            lacking = [part for part in parts if (name, seed, part) not in done]
            start = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                rows = measure(name, seed, lacking) if lacking else []
            if rows:
                append(path, rows)
                print(f"{name}, draw {seed}: {time.perf_counter() - start:.0f} s", flush=True)
    return read(path)


def main() -> None:
    """Run the settings, write the table and the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--settings", nargs="*", choices=list(SETTINGS), default=list(SETTINGS))
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=list(PARTS))
    parser.add_argument("--out", type=Path, default=HERE)
    arguments = parser.parse_args()
    rows = run(arguments.settings, arguments.draws, arguments.out, tuple(arguments.parts))
    write_page(rows, list(SETTINGS), (HERE / "README.head.md").read_text(), arguments.out)


if __name__ == "__main__":
    main()
