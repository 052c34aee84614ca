"""Ways to predict classes of many learners: coterie, and what else a user could do."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from rivals import catboost_with_id, flexmix, gpboost
from sklearn.model_selection import StratifiedKFold
from tables import Split

from coterie import CoterieClassifier
from coterie.models.logistic import QuickLogistic

Answer = tuple[Any, dict[str, Any]]


def _spread(model: Any, X: Any, classes: Any) -> Any:
    """Return probabilities of all classes, of which a model may know some."""
    whole = np.zeros((len(X), len(classes)))
    whole[:, np.searchsorted(classes, model.classes_)] = model.predict_proba(X)
    return whole


def coterie(split: Split, seed: int, **options: Any) -> Answer:
    """Return what the estimator predicts as it comes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = CoterieClassifier(random_state=seed, **options).fit(split.X, split.y, groups=split.groups)
        found = model.predict_proba(split.X_test, groups=split.groups_test)
    labels = dict(zip(model.learner_ids_.tolist(), model.learner_labels_.tolist(), strict=True))
    return found, {"n_clusters": model.n_clusters_, "labels": labels}


def alone(split: Split, seed: int) -> Answer:
    """Return what each learner's own logistic regression predicts; shares, where there is one class."""
    classes = np.unique(split.y)
    found = np.empty((len(split.X_test), len(classes)))
    for learner in np.unique(split.groups_test):
        mine, validation = split.groups == learner, split.groups_test == learner
        seen, counts = np.unique(split.y[mine], return_counts=True)
        # A class that few rows have not shown is not impossible.
        shares = (np.bincount(np.searchsorted(classes, seen), counts, len(classes)) + 1) / (
            counts.sum() + len(classes)
        )
        found[validation] = shares
        if len(seen) > 1:
            model = QuickLogistic().fit(split.X[mine], split.y[mine])
            missing = 1 - shares[np.isin(classes, seen)].sum()
            own = _spread(model, split.X_test[validation], classes)
            found[validation] = np.where(np.isin(classes, seen), own * (1 - missing), shares)
    return found, {}


def for_all(split: Split, seed: int) -> Answer:
    """Return what one logistic regression for all predicts."""
    return QuickLogistic().fit(split.X, split.y).predict_proba(split.X_test), {}


def with_id(split: Split, seed: int) -> Answer:
    """Return the same with a column for each learner."""
    ids = np.unique(split.groups)
    rows = [
        np.column_stack([X, (groups[:, None] == ids).astype(float)])
        for X, groups in ((split.X, split.groups), (split.X_test, split.groups_test))
    ]
    return QuickLogistic().fit(rows[0], split.y).predict_proba(rows[1]), {}


def lightgbm_with_id(split: Split, seed: int) -> Answer:
    """Return what LightGBM predicts with the id as a category: leaves and rounds by cross-validation."""
    import lightgbm as lgb

    classes, codes = np.unique(split.y, return_inverse=True)
    ids = np.unique(split.groups)
    X = np.column_stack([split.X, np.searchsorted(ids, split.groups)])
    validation = np.column_stack([split.X_test, np.searchsorted(ids, split.groups_test)])
    several = len(classes) > 2
    base = {
        "objective": "multiclass" if several else "binary",
        "metric": "multi_logloss" if several else "binary_logloss",
        "learning_rate": 0.05,
        "verbosity": -1,
        "num_threads": 1,
        "seed": seed,
        **({"num_class": len(classes)} if several else {}),
    }
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    best: tuple[float, int, int] = (np.inf, 7, 100)
    for leaves in (7, 31):
        data = lgb.Dataset(X, codes, categorical_feature=[X.shape[1] - 1], free_raw_data=False)
        curve = lgb.cv(
            {**base, "num_leaves": leaves},
            data,
            1000,
            folds=list(folds.split(X, codes)),
            callbacks=[lgb.early_stopping(30, verbose=False)],
        )
        losses = next(values for name, values in curve.items() if name.endswith("-mean"))
        best = min(best, (losses[-1], leaves, len(losses)))
    data = lgb.Dataset(X, codes, categorical_feature=[X.shape[1] - 1])
    model = lgb.train({**base, "num_leaves": best[1]}, data, int(best[2] * 1.25))
    found = np.asarray(model.predict(validation))
    return (found if several else np.column_stack([1 - found, found])), {}


METHODS: dict[str, Callable[[Split, int], Answer]] = {
    "coterie": coterie,
    "logistic alone": alone,
    "logistic for all": for_all,
    "logistic with id": with_id,
    "LightGBM with id": lightgbm_with_id,
    "CatBoost with id": catboost_with_id,
    "GPBoost": gpboost,
    "flexmix": flexmix,
}
# They have no more than two classes.
TWO_CLASSES = ("GPBoost", "flexmix")
