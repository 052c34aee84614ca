"""Real tables of classes, each split into rows to learn from and rows to be scored on."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

# The folder of the tables.
HOME = Path(os.environ.get("COTERIE_DATA", "."))
MOST_LEARNERS, MOST_ROWS, FEWEST_ROWS = 80, 300, 40


@dataclass(frozen=True)
class Split:
    """Predictors, classes and learners, to learn from and to be scored on."""

    X: Any
    y: Any
    groups: Any
    X_test: Any
    y_test: Any
    groups_test: Any


def _split(X: pd.DataFrame, y: Any, groups: Any, train: Any, test: Any) -> Split:
    values = X.to_numpy(dtype=float)
    # Missing predictors take the column's median among the rows to learn from.
    medians = np.nanmedian(values[train], axis=0)
    values = np.where(np.isnan(values), medians, values)
    y, groups = np.asarray(y), np.asarray(groups).astype(str)
    return Split(values[train], y[train], groups[train], values[test], y[test], groups[test])


def _halves(keys: pd.Series, seed: int, most: int | None = None) -> tuple[Any, Any]:
    """Return positions of a random half of the rows with each key, and of the others."""
    rng, train, test = np.random.default_rng(seed), [], []
    for _, rows in sorted(keys.groupby(keys).indices.items()):
        order = rng.permutation(rows)[:most]
        half = len(order) // 2 + (len(order) % 2 and int(rng.integers(2)))
        train.append(order[:half])
        test.append(order[half:])
    return np.sort(np.concatenate(train)), np.sort(np.concatenate(test))


def landmine(seed: int) -> Split:
    """29 fields, 6 % mines; half of each field's rows of either class."""
    table = pd.read_parquet(HOME / "landmine.parquet")
    keys = table["field"].astype(str) + " " + table["mine"].astype(str)
    X = table[[f"f{k}" for k in range(1, 10)]]
    return _split(X, table["mine"], table["field"], *_halves(keys, seed))


def heart(seed: int) -> Split:
    """Four centres in FLamby's split, the same for every seed."""
    table = pd.read_parquet(HOME / "heart_disease.parquet")
    table = table[table["flamby"].fillna("") != ""].reset_index(drop=True)
    X = pd.get_dummies(
        table.drop(columns=["slope", "ca", "thal", "num", "disease", "centre", "flamby"]),
        columns=["cp", "restecg"],
        drop_first=True,
    )
    train = np.flatnonzero(table["flamby"] == "train")
    test = np.flatnonzero(table["flamby"] == "test")
    return _split(X, table["disease"], table["centre"], train, test)


def tv16(seed: int) -> Split:
    """Who voted for Trump, by state: at most 300 rows of each."""
    table = pd.read_parquet(HOME / "tv16.parquet")
    sizes = table["state"].value_counts()
    kept = sorted(sizes.index[sizes >= FEWEST_ROWS])[:MOST_LEARNERS]
    table = table[table["state"].isin(kept)].reset_index(drop=True)
    X = pd.get_dummies(table.drop(columns=["uid", "state", "votetrump"]), columns=["racef"], drop_first=True)
    return _split(X, table["votetrump"], table["state"], *_halves(table["state"], seed, MOST_ROWS))


def verbagg(seed: int) -> Split:
    """No, perhaps or yes: 316 persons who answer 24 items each."""
    table = pd.read_parquet(HOME / "verbagg.parquet")
    X = pd.get_dummies(
        table.drop(columns=["id", "resp", "r2"]), columns=["Gender", "item", "btype", "situ", "mode"]
    )
    return _split(X, table["resp"].astype(str), table["id"], *_halves(table["id"].astype(str), seed))


TABLES: dict[str, Callable[[int], Split]] = {
    "landmine": landmine,
    "heart": heart,
    "tv16": tv16,
    "verbagg": verbagg,
}
