"""What a user does without a method for learners: alone, one model for all, and both stacked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import nnls
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from coterie import select_models
from coterie.candidates import make_candidates

FOREST = RandomForestRegressor(100, min_samples_leaf=2, random_state=0)
RIDGE = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 4, 15)))
MARGIN = 0.3
FOLDS = 4


@dataclass(frozen=True)
class OwnResiduals:
    """A model of its own for every learner, clipped to the range of its responses with a margin."""

    models: dict[str, tuple[Any, float, float]]

    def predict(self, X: np.ndarray, groups: np.ndarray) -> np.ndarray:
        """Return predictions for rows of learners that were in the training rows."""
        prediction = np.empty(len(X))
        for learner in np.unique(groups):
            rows = groups == learner
            model, low, high = self.models[learner]
            prediction[rows] = np.clip(model.predict(X[rows]), low, high)
        return prediction


@dataclass(frozen=True)
class ForAll:
    """One model for all learners; with `means`, of how far y is from its learner's mean."""

    model: Any
    means: dict[str, float] | None = None

    def predict(self, X: np.ndarray, groups: np.ndarray) -> np.ndarray:
        """Return predictions; only a centred model needs to know the learner."""
        prediction = self.model.predict(X)
        if self.means is None:
            return prediction
        return prediction + np.array([self.means[learner] for learner in groups])


@dataclass(frozen=True)
class StackedWeights:
    """Several models and the weight of each."""

    parts: tuple[Any, ...]
    weights: np.ndarray

    def predict(self, X: np.ndarray, groups: np.ndarray) -> np.ndarray:
        """Return the weighted mean of the parts' predictions."""
        return np.column_stack([part.predict(X, groups) for part in self.parts]) @ self.weights


def _chosen(X: np.ndarray, y: np.ndarray, groups: np.ndarray) -> dict[str, str]:
    """Return the name of the candidate that each learner chooses."""
    selection = select_models(X, y, groups=groups)
    return dict(zip(selection.learner_ids.tolist(), selection.names, strict=True))


def _seeded(model: Any) -> Any:
    """Return a copy of a candidate whose random numbers are the same in every run."""
    names = [name for name in model.get_params() if name.endswith("random_state")]
    return clone(model).set_params(**dict.fromkeys(names, 0))


def fit_alone(X, y, groups, names: dict[str, str] | None = None) -> OwnResiduals:
    """Fit every learner's own choice among the default candidates."""
    names = names or _chosen(X, y, groups)
    candidates, models = make_candidates(), {}
    for learner in np.unique(groups):
        rows = groups == learner
        low, high = y[rows].min(), y[rows].max()
        margin = MARGIN * (high - low)
        model = _seeded(candidates[names[learner]]).fit(X[rows], y[rows])
        models[learner] = (model, low - margin, high + margin)
    return OwnResiduals(models)


def fit_global(X, y, groups, model: Any) -> ForAll:
    """Fit one model to all rows."""
    return ForAll(clone(model).fit(X, y))


def fit_centred(X, y, groups, model: Any) -> ForAll:
    """Fit one model to how far y is from its learner's mean."""
    ids, codes = np.unique(groups, return_inverse=True)
    means = np.bincount(codes, y) / np.bincount(codes)
    return ForAll(clone(model).fit(X, y - means[codes]), dict(zip(ids, means, strict=True)))


def fit_stacked(X, y, groups) -> StackedWeights:
    """Weigh alone and global models by non-negative least squares on held-out predictions."""
    names = _chosen(X, y, groups)

    def parts(rows: np.ndarray) -> tuple[Any, ...]:
        own = fit_alone(X[rows], y[rows], groups[rows], names)
        both = [
            fit(X[rows], y[rows], groups[rows], m)
            for m in (FOREST, RIDGE)
            for fit in (fit_global, fit_centred)
        ]
        return (own, *both)

    _, codes = np.unique(groups, return_inverse=True)
    generator, fold = np.random.default_rng(0), np.empty(len(y), dtype=int)
    for j in range(codes.max() + 1):
        mine = np.flatnonzero(codes == j)
        fold[mine] = generator.permutation(len(mine)) % FOLDS
    final = parts(np.full(len(y), True))
    held_out = np.empty((len(y), len(final)))
    for f in range(FOLDS):
        out = fold == f
        held_out[out] = np.column_stack([part.predict(X[out], groups[out]) for part in parts(~out)])
    # Learners count alike: each in units of its own spread, from its own mean.
    counts = np.bincount(codes)
    means = (np.bincount(codes, y) / counts)[codes]
    spread = np.sqrt(np.bincount(codes, (y - means) ** 2) / counts)[codes]
    spread[spread == 0] = 1.0
    weights, _ = nnls((held_out - means[:, None]) / spread[:, None], (y - means) / spread)
    return StackedWeights(final, weights / weights.sum())


def _frame(X: np.ndarray, groups: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])]).assign(learner=groups)


@dataclass(frozen=True)
class Lego:
    """A model of scikit-lego, which takes the learner as a column of the frame."""

    model: Any

    def predict(self, X: np.ndarray, groups: np.ndarray) -> np.ndarray:
        """Return predictions for rows of learners that were in the training rows."""
        return np.asarray(self.model.predict(_frame(X, groups)))


def fit_grouped(X, y, groups, model: Any) -> Lego:
    """Fit scikit-lego's one model per learner."""
    from sklego.meta import GroupedPredictor

    return Lego(GroupedPredictor(clone(model), groups="learner").fit(_frame(X, groups), y))


def fit_hierarchical(X, y, groups) -> Lego:
    """Fit scikit-lego's two-level hierarchy of ridge models with shrinkage."""
    from sklego.meta import HierarchicalRegressor

    options = {"groups": "learner", "shrinkage": "relative", "fallback_method": "parent"}
    return Lego(HierarchicalRegressor(clone(RIDGE), **options).fit(_frame(X, groups), y))
