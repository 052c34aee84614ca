"""Results that are kept: a line for every table, seed and method, and the error of every learner."""

from __future__ import annotations

import csv
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
from measure import Outcome
from methods import METHODS
from more_tables import NAMES, OFFICIAL, error
from scipy.stats import norm
from tables import Halves

COLUMNS = {
    "table": str,
    "seed": int,
    "method": str,
    "error": float,
    "learners": int,
    "worse_by_2_se": int,
    "worse_bonferroni": int,
    "cpu_fit": float,
    "cpu_predict": float,
    "size": int,
    "note": str,
}
Key = tuple[str, int, str]


def read_csv(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a file of results, without empty cells; none where there is no such file."""
    if not path.is_file():
        return []
    with open(path, newline="") as file:
        lines = list(csv.DictReader(file))
    return [{name: COLUMNS.get(name, str)(cell) for name, cell in line.items() if cell} for line in lines]


def _write_csv(path: Path, columns: list[str], lines: list[dict[str, Any]]) -> None:
    draft = path.with_suffix(".draft")
    with open(draft, "w", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)
    os.replace(draft, path)


def worse_than_alone(squares: np.ndarray, alone: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Return by how many standard errors each learner does worse than alone, paired over its rows."""
    scores = []
    for learner in np.unique(groups):
        excess = (squares - alone)[groups == learner]
        deviation = excess.std(ddof=1) / np.sqrt(len(excess))
        scores.append(excess.mean() / deviation if deviation > 0 else 0.0)
    return np.array(scores)


class Ledger:
    """The results of a folder: ``results.csv`` and ``learners.csv``.

    Squared errors of single test rows are in `rows`, a folder that need not be kept. The comparison of a
    method with *alone* needs those of both.
    """

    def __init__(self, folder: Path, rows: Path) -> None:
        self.folder, self.rows = folder, rows
        self.lines = {self.key(line): line for line in read_csv(folder / "results.csv")}
        self.learners = {self.key(line): line for line in read_csv(folder / "learners.csv")}

    @staticmethod
    def key(line: dict[str, Any]) -> Key:
        """Return what tells one run from another."""
        return line["table"], line["seed"], line["method"]

    def _file(self, key: Key) -> Path:
        words = re.sub(r"[^a-z0-9]+", "-", key[2].lower()).strip("-")
        return self.rows / f"{key[0]}_{key[1]}_{words}.npz"

    def _squares(self, key: Key) -> np.ndarray | None:
        path = self._file(key)
        return np.load(path, allow_pickle=False)["squares"] if path.is_file() else None

    def add(self, key: Key, data: Halves, outcome: Outcome) -> dict[str, Any]:
        """Keep a run, replacing an older one, and write the files."""
        table, seed, method = key
        line = {"table": table, "seed": seed, "method": method, "note": outcome.note}
        self.learners.pop(key, None)
        self._file(key).unlink(missing_ok=True)
        if outcome.prediction is not None:
            squares = (data.y_test - outcome.prediction) ** 2
            self.rows.mkdir(parents=True, exist_ok=True)
            np.savez_compressed(self._file(key), squares=squares.astype(np.float32))
            line |= {"error": error(table, data, squares), "size": outcome.size}
            line |= {"cpu_fit": round(outcome.cpu_fit, 3), "cpu_predict": round(outcome.cpu_predict, 3)}
            line["learners"] = len(np.unique(data.groups_test))
            if table != OFFICIAL:
                by_learner = " ".join(f"{value:.4g}" for value in data.by_learner(squares))
                self.learners[key] = {"table": table, "seed": seed, "method": method, "errors": by_learner}
        self.lines[key] = line
        for name in METHODS if method == "alone" else [method]:
            self._compare((table, seed, name), data)
        self.write()
        return line

    def _compare(self, key: Key, data: Halves) -> None:
        """Count the learners that do worse than alone."""
        alone, squares = self._squares((*key[:2], "alone")), self._squares(key)
        if key not in self.lines or alone is None or squares is None:
            return
        worse = worse_than_alone(squares, alone, data.groups_test)
        # One-sided 2.3 per cent, shared out among the learners.
        bound = float(norm.isf(norm.sf(2.0) / len(worse)))
        self.lines[key]["worse_by_2_se"] = int(np.sum(worse > 2))
        self.lines[key]["worse_bonferroni"] = int(np.sum(worse > bound))

    def write(self) -> None:
        """Write both files, in the order of the tables and methods."""
        methods = list(METHODS)

        def place(key: Key) -> tuple[int, int, int, str]:
            known = methods.index(key[2]) if key[2] in methods else len(methods)
            return NAMES.index(key[0]), key[1], known, key[2]

        for name, columns, lines in (
            ("results.csv", list(COLUMNS), self.lines),
            ("learners.csv", ["table", "seed", "method", "errors"], self.learners),
        ):
            ordered = [lines[key] for key in sorted(lines, key=place)]
            _write_csv(self.folder / name, columns, ordered)
