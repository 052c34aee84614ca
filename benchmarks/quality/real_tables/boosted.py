"""Boosted trees that see the learner's id: what most people try first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

FOLDS = 5
# The overall mean counts as much as this many rows of a learner when its level is estimated.
PRIOR_ROWS = 5
# scikit-learn takes no category with more levels than bins.
MOST_CATEGORIES = 255

LIGHTGBM = {
    "objective": "l2",
    "learning_rate": 0.05,
    "min_data_in_leaf": 10,
    "feature_fraction": 0.8,
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    "num_threads": 1,
    "seed": 0,
    "verbose": -1,
}
LEAVES = (7, 31)
MOST_ROUNDS = 800
PATIENCE = 30
PATIENCE_CATBOOST = 50


@dataclass(frozen=True)
class Ids:
    """Learners of the training rows in sorted order, each with its shrunken mean response."""

    ids: np.ndarray
    levels: np.ndarray
    overall: float

    @classmethod
    def of(cls, groups: np.ndarray, y: np.ndarray) -> Ids:
        """Return the ids and levels of these rows."""
        ids, codes = np.unique(groups, return_inverse=True)
        totals, counts = np.bincount(codes, y), np.bincount(codes)
        return cls(ids, (totals + PRIOR_ROWS * y.mean()) / (counts + PRIOR_ROWS), float(y.mean()))

    def codes(self, groups: np.ndarray) -> np.ndarray:
        """Return each row's learner as a number; NaN for a learner without training rows."""
        places = np.minimum(np.searchsorted(self.ids, groups), len(self.ids) - 1)
        return np.where(self.ids[places] == groups, places.astype(float), np.nan)

    def level(self, groups: np.ndarray) -> np.ndarray:
        """Return the level of each row's learner; the overall mean for a learner without rows."""
        codes = self.codes(groups)
        known = np.nan_to_num(codes).astype(int)
        return np.where(np.isnan(codes), self.overall, self.levels[known])


def _folds(n_rows: int) -> np.ndarray:
    return np.random.default_rng(0).integers(FOLDS, size=n_rows)


def out_of_fold_level(groups: np.ndarray, y: np.ndarray, fold: np.ndarray) -> np.ndarray:
    """Return each row's level of its learner, made without the fold that the row is in."""
    level = np.empty(len(y))
    for f in np.unique(fold):
        out = fold == f
        level[out] = Ids.of(groups[~out], y[~out]).level(groups[out])
    return level


@dataclass(frozen=True)
class WithId:
    """A fitted model that sees the predictors and the learner's code, its level, or both."""

    model: Any
    ids: Ids
    code: bool = True
    level: bool = False

    def predict(self, X: np.ndarray, groups: np.ndarray) -> np.ndarray:
        """Return predictions; a learner without training rows has no code and the overall level."""
        columns = [X]
        columns += [self.ids.codes(groups)] if self.code else []
        columns += [self.ids.level(groups)] if self.level else []
        return np.asarray(self.model.predict(np.column_stack(columns)))


def fit_hist(X, y, groups) -> WithId:
    """Fit scikit-learn's defaults: the id as a category, or its level where ids are too many."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    ids = Ids.of(groups, y)
    if len(ids.ids) > MOST_CATEGORIES:
        design = np.column_stack([X, out_of_fold_level(groups, y, _folds(len(y)))])
        model = HistGradientBoostingRegressor(random_state=0).fit(design, y)
        return WithId(model, ids, code=False, level=True)
    design = np.column_stack([X, ids.codes(groups)])
    model = HistGradientBoostingRegressor(categorical_features=[X.shape[1]], random_state=0)
    return WithId(model.fit(design, y), ids)


def fit_lightgbm(X, y, groups, level: bool = False) -> WithId:
    """Fit LightGBM with the id as a category; leaves and rounds by cross-validation."""
    import lightgbm as lgb

    ids, fold = Ids.of(groups, y), _folds(len(y))
    columns = [X, ids.codes(groups)] + ([out_of_fold_level(groups, y, fold)] if level else [])
    design = np.column_stack(columns)
    folds = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(FOLDS)]

    def rows() -> Any:
        options = {"categorical_feature": [X.shape[1]], "params": {"verbose": -1}}
        return lgb.Dataset(design, y, free_raw_data=False, **options)

    tried = []
    for leaves in LEAVES:
        settings = LIGHTGBM | {"num_leaves": leaves}
        stop = lgb.early_stopping(PATIENCE, verbose=False)
        scores = lgb.cv(settings, rows(), MOST_ROUNDS, folds=folds, callbacks=[stop])
        means = next(values for name, values in scores.items() if name.endswith("-mean"))
        tried.append((means[-1], len(means), leaves))
    _, rounds, leaves = min(tried)
    return WithId(lgb.train(LIGHTGBM | {"num_leaves": leaves}, rows(), rounds), ids, level=level)


@dataclass(frozen=True)
class CatBoosted:
    """A CatBoost model, which takes the learner's id as it is."""

    model: Any

    def predict(self, X: np.ndarray, groups: np.ndarray) -> np.ndarray:
        """Return predictions, of learners without training rows, too."""
        return np.asarray(self.model.predict(_with_names(X, groups)))


def _with_names(X: np.ndarray, groups: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])]).assign(learner=groups.astype(object))


def fit_catboost(X, y, groups) -> CatBoosted:
    """Fit CatBoost's defaults, rounds by early stopping on a fifth of the rows, then all rows."""
    from catboost import CatBoostRegressor

    frame, held_out = _with_names(X, groups), _folds(len(y)) == 0
    common = {"random_seed": 0, "thread_count": 1, "allow_writing_files": False, "verbose": False}
    first = CatBoostRegressor(cat_features=["learner"], **common)
    first.fit(
        frame[~held_out],
        y[~held_out],
        eval_set=(frame[held_out], y[held_out]),
        early_stopping_rounds=PATIENCE_CATBOOST,
    )
    found = {"iterations": first.get_best_iteration() + 1, "learning_rate": first.learning_rate_}
    return CatBoosted(CatBoostRegressor(cat_features=["learner"], **common, **found).fit(frame, y))
