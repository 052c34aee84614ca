"""Four public tables with a learner column, and one split for all tables of the benchmark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from coterie.datasets import local_copy

LEAST_ROWS = 40
MOST_LEARNERS = 80
MOST_ROWS = 300

# Tables whose learners are all small: the least rows of a learner there, instead of LEAST_ROWS.
FEWER_ROWS: dict[str, int] = {}


@dataclass(frozen=True)
class Halves:
    """Rows to learn from and rows to be scored on, of the same learners."""

    X: np.ndarray
    y: np.ndarray
    groups: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    groups_test: np.ndarray

    def by_learner(self, values: np.ndarray) -> np.ndarray:
        """Return the mean of values of the test rows for every learner, in sorted order."""
        _, codes = np.unique(self.groups_test, return_inverse=True)
        return np.bincount(codes, values) / np.bincount(codes)


def local_file(folder: str, name: str) -> Path:
    """Return a file of the folder that COTERIE_DATA names."""
    path = local_copy(folder, name)
    if path is None:
        raise SystemExit(f"COTERIE_DATA must name a folder that has {Path(folder) / name}.")
    return path


def _gapminder() -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    table = pd.read_csv(local_file("gapminder", "gapminder.csv")).dropna(subset=["life_expectancy"])
    predictors = ["year", "infant_mortality", "fertility", "population"]
    return table[predictors], table["life_expectancy"], table["country"]


def _beijing_air() -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    table = pd.read_parquet(local_file("beijing_air", "beijing_air.parquet"))
    table = table.dropna(subset=["PM2.5"]).sample(24_000, random_state=0)
    predictors = ["month", "hour", "TEMP", "PRES", "DEWP", "RAIN", "WSPM"]
    learners = table["station"].astype(str) + table["year"].astype(str)
    return table[predictors], np.log1p(table["PM2.5"].astype(float)), learners


def _exam_london() -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    table = pd.read_csv(local_file("exam_london", "exam_london.csv"))
    kinds = pd.get_dummies(table[["sex", "intake", "vr"]].astype(str))
    return table[["standLRT"]].join(kinds), table["normexam"], table["school"]


def _parkinsons() -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    table = pd.read_csv(local_file("parkinsons_telemonitoring", "parkinsons_updrs.csv"))
    others = ["subject#", "age", "sex", "test_time", "motor_UPDRS", "total_UPDRS"]
    return table.drop(columns=others), table["total_UPDRS"], table["subject#"]


TABLES: dict[str, Callable[[], tuple[pd.DataFrame, pd.Series, pd.Series]]] = {
    "gapminder": _gapminder,
    "exam_london": _exam_london,
    "parkinsons_telemonitoring": _parkinsons,
    "beijing_air": _beijing_air,
}


def halves(name: str, seed: int) -> Halves:
    """Return a table's training and test rows.

    Learners with at least 40 rows (or what `FEWER_ROWS` says), in sorted order of their names, the first
    80; of each at most 300 rows in random order, the first half to learn from. Missing predictors take
    the column's median.
    """
    frame, response, learners = TABLES[name]()
    frame = frame.astype(float)
    X = frame.fillna(frame.median()).to_numpy()
    y, groups = response.to_numpy(float), np.asarray(learners.astype(str), dtype=str)
    ids, counts = np.unique(groups, return_counts=True)
    generator = np.random.default_rng(seed)
    train, test = [], []
    for learner in ids[counts >= FEWER_ROWS.get(name, LEAST_ROWS)][:MOST_LEARNERS]:
        rows = generator.permutation(np.flatnonzero(groups == learner))[:MOST_ROWS]
        half = len(rows) // 2
        train.append(rows[:half])
        test.append(rows[half:])
    a, b = np.concatenate(train), np.concatenate(test)
    return Halves(X[a], y[a], groups[a], X[b], y[b], groups[b])
