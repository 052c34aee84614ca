"""The families that coteries fit on pooled rows: linear ones by moments, others as their candidates are.

All least-squares candidates (linear regression, ridge, lasso, LARS, elastic net) become one family: on
pooled rows they hardly differ, and moments of rows add up. Of the others the best three on pooled rows are
kept, and none that linear models beat clearly, both among all and inside the chosen clusters. A default
forest competes with one whose cuts are random and with boosted trees, which are better where much is noise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import (
    HuberRegressor,
    LinearRegression,
    QuantileRegressor,
    SGDRegressor,
    TheilSenRegressor,
)
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.svm import LinearSVR

from coterie._arrays import Array
from coterie._seeds import seeded_copy
from coterie.collaboration.nested.linear import as_line
from coterie.kernels.affine import AFFINE_PREDICTIONS
from coterie.method.fitting import fit_model
from coterie.models.boosting import BoostedTrees
from coterie.models.forest import QuickForest, RandomCuts

# Affine, but not by least squares: moments would not do what they do.
_OTHER_LOSSES = (HuberRegressor, LinearSVR, QuantileRegressor, SGDRegressor, TheilSenRegressor)
_SCALERS = (StandardScaler, RobustScaler, MinMaxScaler, MaxAbsScaler)
_OF_BOOTSTRAP = ("bootstrap", "max_samples", "oob_score")
# More families than these cost fits and were not seen to bring anything.
MOST_FLEXIBLE = 3
# A family whose loss is this much above the best one's gets no weight worth its fits.
CLEARLY_WORSE = 1.1
CLEARLY_BETTER = 0.95
# Enough trees to choose by are not enough to predict with: fifty cost about a hundredth of the error.
TREES_THAT_STAY = 100


@dataclass(frozen=True)
class Family:
    """A kind of model that coteries fit.

    ``name`` is that of the candidate, or ``"linear"``; without a candidate it is linear, by moments. A
    ``coarse`` family is for many rows: fitted for the chosen clusters and for all, not for finer clusters.
    """

    name: str
    candidate: BaseEstimator | None = None
    coarse: bool = False


@dataclass(frozen=True)
class ModelFit:
    """A candidate and its rows; ``otherwise``, or else their mean, stands in where the candidate fails."""

    candidate: BaseEstimator
    X: Array
    y: Array
    weights: Array | None
    seed: int
    otherwise: Any = None


def fit_or_replace(job: ModelFit) -> Any:
    """Return the fitted candidate, or what stands in for it."""
    try:
        return fit_model(seeded_copy(job.candidate, job.seed), job.X, job.y, job.weights)
    except Exception:  # a family may fail on few rows: what stands in weighs what it deserves
        if job.otherwise is not None:
            return job.otherwise
        return as_line(np.zeros(job.X.shape[1]), float(job.y.mean()))


def by_least_squares(candidate: Any) -> bool:
    """Tell whether a candidate, not fitted yet, is linear by least squares, with or without a penalty."""
    if type(candidate) is Pipeline:
        steps = [step for _, step in candidate.steps[:-1]]
        plain = all(step in (None, "passthrough") or type(step) in _SCALERS for step in steps)
        return plain and by_least_squares(candidate.steps[-1][1])
    if type(candidate) is TransformedTargetRegressor:
        inside = LinearRegression() if candidate.regressor is None else candidate.regressor
        return type(candidate.transformer) in _SCALERS and by_least_squares(inside)
    affine = getattr(type(candidate), "predict", None) in AFFINE_PREDICTIONS
    if not affine or isinstance(candidate, _OTHER_LOSSES):
        return False
    return not getattr(candidate, "positive", False) and bool(getattr(candidate, "fit_intercept", True))


def _inside(candidate: Any) -> Any:
    return candidate.regressor if type(candidate) is TransformedTargetRegressor else candidate


def with_more_trees(candidate: BaseEstimator) -> BaseEstimator:
    """Return a default forest, not fitted, with more trees, which a model that stays is worth.

    Only a default forest, or one behind a transformed response, is changed, and then a copy of it.
    """
    if type(_inside(candidate)) not in (QuickForest, RandomCuts):
        return candidate
    larger = clone(candidate)
    forest = _inside(larger)
    forest.set_params(n_estimators=max(forest.n_estimators, TREES_THAT_STAY))
    return larger


def _random_cuts(forest: QuickForest) -> BaseEstimator:
    """Return a forest with cuts drawn at random instead of searched for.

    Each tree is worse and they agree less: on the pooled rows of many learners their mean is smoother, and
    often better, than a forest's.
    """
    # Trees of random cuts see all rows: a bootstrap would only blur them.
    shared = {name: value for name, value in forest.get_params().items() if name not in _OF_BOOTSTRAP}
    return RandomCuts(**shared)


def _boosted(forest: QuickForest) -> BaseEstimator:
    """Return small trees, each fitted to what the others left: smooth where a forest follows the noise."""
    return BoostedTrees(
        learning_rate=0.05,
        max_iter=100,
        max_leaf_nodes=8,
        min_samples_leaf=10,
        early_stopping=False,
        random_state=forest.random_state,
    )


def rivals(candidate: Any) -> dict[str, BaseEstimator]:
    """Return what competes with a default forest on pooled rows, by name.

    Only a `QuickForest`, or one behind a transformed response, has rivals: what the user brought is what the
    user wants.
    """
    inside = _inside(candidate)
    if type(inside) is not QuickForest:
        return {}
    made = {"random cuts": _random_cuts(inside), "boosted": _boosted(inside)}
    if inside is candidate:
        return made
    return {name: clone(candidate).set_params(regressor=rival) for name, rival in made.items()}


def possible_families(sets: Iterable[Mapping[str, Any]], *, by_moments: bool) -> tuple[Family, ...]:
    """Return the families of everybody's candidates, linear ones first.

    Where predictors are too many to go ``by_moments``, linear candidates are fitted as they are.
    """
    candidates: dict[str, Any] = {}
    for own in sets:
        for name, candidate in own.items():
            candidates.setdefault(name, candidate)
    linear = [name for name, candidate in candidates.items() if by_moments and by_least_squares(candidate)]
    rest = [Family(name, candidate) for name, candidate in candidates.items() if name not in linear]
    more = [
        Family(f"{family.name}, {name}", rival, coarse=name == "boosted")
        for family in rest
        for name, rival in rivals(family.candidate).items()
    ]
    return (*([Family("linear")] if linear else []), *rest, *more)


def family_for_traits(families: tuple[Family, ...]) -> Family:
    """Return the family whose models are told the learners' traits: random cuts, else the best.

    Traits are many predictors more. Random cuts take them at a third of a forest's cost, and with them a
    second family told brought next to nothing.
    """
    return next((f for f in families if isinstance(_inside(f.candidate), RandomCuts)), families[0])


def worth_fitting(families: tuple[Family, ...], losses: Array, linear: Array | None) -> tuple[Family, ...]:
    """Return the flexible families that are worth fitting everywhere.

    ``losses`` (families, places) is what each loses inside the chosen clusters, and among all; not finite
    where it failed. ``linear`` (places,) is what the linear family loses there; None: there is none. Kept are
    the best three of those that come near the linear family inside the chosen clusters or are ahead of it
    among all; without a linear family at least one.
    """
    finite = np.where(np.isfinite(losses), losses, np.inf)
    order = np.argsort(finite.sum(axis=1), kind="stable")
    if linear is not None:
        near = finite[:, 0] <= CLEARLY_WORSE * linear[0]
        ahead = finite[:, -1] <= CLEARLY_BETTER * linear[-1]
        order = order[(near | ahead)[order]]
    return tuple(families[p] for p in order[:MOST_FLEXIBLE])
