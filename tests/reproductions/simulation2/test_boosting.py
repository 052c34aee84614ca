"""Boosting with bins made at once is scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

import reproductions.simulation2.boosting as module
from reproductions.simulation2.boosting import Boosting

OPTIONS = {"max_iter": 10, "max_depth": 3, "min_samples_leaf": 5, "max_bins": 32, "early_stopping": False}


def rows(n: int, p: int = 30) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, p))
    return X, np.sin(X[:, 0]) + X[:, 1] ** 2 + rng.normal(size=n)


def assert_same_trees(mine: Boosting, theirs: HistGradientBoostingRegressor) -> None:
    for ours, other in zip(mine._predictors, theirs._predictors, strict=True):
        assert ours[0].nodes.tobytes() == other[0].nodes.tobytes()


@pytest.mark.parametrize("n", [33, 50, 77, 100, 1000])
def test_the_trees_are_those_of_scikit_learn(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = rows(n)

    def refuse(*_: object) -> None:
        raise AssertionError("bins were made one by one")

    theirs = HistGradientBoostingRegressor(**OPTIONS, random_state=0).fit(X, y)
    monkeypatch.setattr(module.HistGradientBoostingRegressor, "_bin_data", refuse)
    assert_same_trees(Boosting(**OPTIONS, random_state=0).fit(X, y), theirs)


@pytest.mark.parametrize("spoil", ["tied", "missing", "few"])
def test_other_tables_are_left_to_scikit_learn(spoil: str) -> None:
    X, y = rows(20 if spoil == "few" else 60)
    if spoil == "tied":
        X = np.round(X, 1)
    if spoil == "missing":
        X[3, 2] = np.nan
    theirs = HistGradientBoostingRegressor(**OPTIONS, random_state=0).fit(X, y)
    assert_same_trees(Boosting(**OPTIONS, random_state=0).fit(X, y), theirs)
