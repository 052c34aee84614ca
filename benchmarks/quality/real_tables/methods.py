"""What a user could do with such a table: rows in, predictions of the test rows out."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy.optimize import nnls
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tables import Halves

from coterie import CoterieRegressor, select_models
from coterie.candidates import make_candidates

Predictions = dict[str, np.ndarray]

FOREST = RandomForestRegressor(100, min_samples_leaf=2, random_state=0)
RIDGE = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 4, 15)))
MARGIN = 0.3
FOLDS = 4


def _codes(data: Halves) -> tuple[np.ndarray, np.ndarray]:
    ids = np.unique(data.groups)
    return np.searchsorted(ids, data.groups), np.searchsorted(ids, data.groups_test)


def _means(y: np.ndarray, codes: np.ndarray) -> np.ndarray:
    return np.bincount(codes, y) / np.bincount(codes)


def _alone(X, y, codes, names, X_new, new):
    """Every learner's own candidate, clipped to its range with a margin."""
    candidates, prediction = make_candidates(), np.empty(len(new))
    for j, name in enumerate(names):
        mine, ahead = codes == j, new == j
        if not ahead.any():
            continue
        low, high = y[mine].min(), y[mine].max()
        margin = MARGIN * (high - low)
        model = clone(candidates[name]).fit(X[mine], y[mine])
        prediction[ahead] = np.clip(model.predict(X_new[ahead]), low - margin, high + margin)
    return prediction


def _centred(model, X, y, codes, X_new, new):
    """One model of how far y is from its learner's mean."""
    means = _means(y, codes)
    return clone(model).fit(X, y - means[codes]).predict(X_new) + means[new]


def plain(data: Halves) -> Predictions:
    """Alone, one global model, one centred global model, and the three stacked."""
    codes, new = _codes(data)
    selection = select_models(data.X, data.y, groups=data.groups)
    place = {learner: p for p, learner in enumerate(selection.learner_ids.tolist())}
    names = [selection.names[place[learner]] for learner in np.unique(data.groups).tolist()]

    def columns(X, y, codes, X_new, new):
        parts = [_alone(X, y, codes, names, X_new, new)]
        for model in (FOREST, RIDGE):
            parts += [clone(model).fit(X, y).predict(X_new), _centred(model, X, y, codes, X_new, new)]
        return np.column_stack(parts)

    final = columns(data.X, data.y, codes, data.X_test, new)
    fold = np.empty(len(codes), dtype=int)
    generator = np.random.default_rng(0)
    for j in range(len(names)):
        mine = np.flatnonzero(codes == j)
        fold[mine] = generator.permutation(len(mine)) % FOLDS
    held_out = np.empty((len(codes), final.shape[1]))
    for f in range(FOLDS):
        kept = fold != f
        held_out[~kept] = columns(data.X[kept], data.y[kept], codes[kept], data.X[~kept], codes[~kept])
    # Learners count alike: each in units of its own spread, from its own mean.
    means = _means(data.y, codes)
    spread = np.sqrt(_means((data.y - means[codes]) ** 2, codes))[codes]
    weights, _ = nnls((held_out - means[codes, None]) / spread[:, None], (data.y - means[codes]) / spread)
    return {
        "alone": final[:, 0],
        "global (forest)": final[:, 1],
        "centred global (forest)": final[:, 2],
        "global (ridge)": final[:, 3],
        "centred global (ridge)": final[:, 4],
        "alone and global stacked": final @ (weights / weights.sum()),
    }


def ours(data: Halves) -> Predictions:
    """coterie as it comes."""
    model = CoterieRegressor().fit(data.X, data.y, groups=data.groups)
    return {"coterie": model.predict(data.X_test, groups=data.groups_test)}


def gpboost(data: Halves) -> Predictions:
    """Boosted trees with random intercepts, and with random slopes of all predictors."""
    import gpboost as gpb

    scaler = StandardScaler().fit(data.X)
    X, X_test = scaler.transform(data.X), scaler.transform(data.X_test)
    settings = {"learning_rate": 0.05, "num_leaves": 8, "min_data_in_leaf": 10}
    settings |= {"verbose": -1, "num_threads": 1}
    n_features = X.shape[1]
    forms = {"GPBoost, random intercepts": {}, "GPBoost, random slopes": {"slopes": True}}
    found = {}
    for name, options in forms.items():
        effects, at = {}, {}
        if options:
            effects = {
                "group_rand_coef_data": X,
                "ind_effect_group_rand_coef": [1] * n_features,
            }
            at = {"group_rand_coef_data_pred": X_test}
        mixed = gpb.GPModel(group_data=data.groups, likelihood="gaussian", **effects)
        booster = gpb.train(settings, gpb.Dataset(X, data.y), gp_model=mixed, num_boost_round=150)
        answer = booster.predict(X_test, group_data_pred=data.groups_test, pred_latent=False, **at)
        found[name] = np.asarray(answer["response_mean"])
    return found


def merf(data: Halves) -> Predictions:
    """Mixed-effects random forest with random intercepts."""
    from merf import MERF

    model = MERF(clone(FOREST).set_params(n_estimators=50), max_iterations=10)
    model.fit(data.X, np.ones((len(data.X), 1)), pd.Series(data.groups), data.y)
    prediction = model.predict(data.X_test, np.ones((len(data.X_test), 1)), pd.Series(data.groups_test))
    return {"MERF": np.asarray(prediction)}


def scikit_lego(data: Halves) -> Predictions:
    """A ridge and a forest per learner, and the two-level hierarchy with shrinkage."""
    from sklego.meta import GroupedPredictor, HierarchicalRegressor

    def frame(X, groups):
        return pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])]).assign(learner=groups)

    table, ahead = frame(data.X, data.groups), frame(data.X_test, data.groups_test)
    found = {}
    for name, model in (("ridge", RIDGE), ("forest", clone(FOREST).set_params(n_estimators=50))):
        grouped = GroupedPredictor(clone(model), groups="learner").fit(table, data.y)
        found[f"scikit-lego grouped ({name})"] = np.asarray(grouped.predict(ahead))
    hierarchy = HierarchicalRegressor(
        clone(RIDGE), groups="learner", shrinkage="relative", fallback_method="parent"
    ).fit(table, data.y)
    found["scikit-lego hierarchical (ridge)"] = np.asarray(hierarchy.predict(ahead))
    return found


METHODS: dict[str, Callable[[Halves], Predictions]] = {
    "coterie": ours,
    "plain": plain,
    "gpboost": gpboost,
    "merf": merf,
    "scikit-lego": scikit_lego,
}


def run(method: str, data: Halves) -> Predictions:
    """Run one method without its chatter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return METHODS[method](data)
