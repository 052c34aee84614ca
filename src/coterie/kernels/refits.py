"""Clusters that predict by refitting a flexible family on their members' pooled rows.

A forest has no moments to subtract, so rows are cross-fitted instead: the model of one half of the members'
rows predicts the other half of everybody's. A set of members is fitted once, however many labellings it
occurs in. Where flexible and linear models are both in use, a cluster takes the form that predicts its
members better.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor

from coterie._rows import Learners
from coterie.engines import Engine
from coterie.kernels.affine import affine_matrix
from coterie.kernels.averages import AverageLosses, bounded_weights
from coterie.kernels.blocks import predict_rows
from coterie.kernels.fitting import quiet_fits, weight_parameter
from coterie.kernels.pooled import PooledLosses
from coterie.kernels.together import LocalLosses
from coterie.records import Exchange, Selection

Array = NDArray[Any]

# More rows than this make a cluster's model slower, not its labels better.
MOST_ROWS = 4_000
# Enough trees to tell clusters apart; the coterie's own model has as many as its candidate asks for.
MOST_TREES = 20
# Below this share of learners with a flexible model, linear models decide who belongs together.
FLEXIBLE_SHARE = 0.25
# Solving for more predictors than this, once per learner and labelling, costs more than refitting.
MOST_PREDICTORS = 150


def _lighter(model: Any) -> Any:
    """Return an ensemble with fewer members, anything else as it is."""
    parameters, large = model.get_params(deep=True), {}
    for name, value in parameters.items():
        holder, _, parameter = name.rpartition("__")
        part = parameters[holder] if holder else model
        counts = "max_iter" if isinstance(part, HistGradientBoostingRegressor) else "n_estimators"
        if parameter == counts and isinstance(value, int) and value > MOST_TREES:
            large[name] = MOST_TREES
    return model.set_params(**large) if large else model


class RefitLosses(LocalLosses):
    """Losses of the members' most frequent family, refitted on their pooled rows by halves.

    Parameters
    ----------
    learners : Learners
        Everybody's rows.
    selection : Selection
        Of the same learners, in the same order.
    proxy : LocalLosses
        A cheaper form, which does most of the searching.
    """

    def __init__(self, learners: Learners, selection: Selection, proxy: LocalLosses) -> None:
        super().__init__(learners, selection)
        self.proxy: LocalLosses = proxy
        # As where moments are added up: quiet learners count more, wild rows less.
        weights = bounded_weights(1 / selection.noise)[learners.owner] * self.tempering
        self._row_weights = weights if self.learners.weights is None else weights * self.learners.weights
        self._fitted: dict[bytes, Array] = {}

    def residuals(self, labels: Array, n_clusters: int) -> Array:
        """Return residuals of shape (K, N); NaN for the rows of a learner alone in its cluster."""
        residuals = np.full((n_clusters, len(self.learners.y)), np.nan)
        for k in range(n_clusters):
            members = labels == k
            if members.any():
                residuals[k] = self.cluster_residuals(members)
        return residuals

    def family(self, members: Array) -> str:
        """Return the most frequent family of the members."""
        names = Counter(self.selection.names[j] for j in np.flatnonzero(members))
        return min(names, key=lambda name: (-names[name], name))

    def cluster_residuals(self, members: Array) -> Array:
        """Return the residuals of shape (N,) of one cluster, given by a mask of shape (L,)."""
        key = np.packbits(members).tobytes()
        if key not in self._fitted:
            positions = np.flatnonzero(members)
            if len(positions) == 1:
                alone = self.learners.y - predict_rows(self.selection.models[positions[0]], self.learners.X)
                alone[self.learners.span(positions[0])] = np.nan
                self._fitted[key] = alone
            else:
                try:
                    self._fitted[key] = self._cross_fitted(members, positions)
                except Exception:  # a family may fail on pooled rows though it fits every learner's
                    self._fitted[key] = self.proxy.residuals((~members).astype(int), 2)[0]
        return self._fitted[key]

    def _cross_fitted(self, members: Array, positions: Array) -> Array:
        family = self.family(members)
        model = next(self.selection.models[j] for j in positions if self.selection.names[j] == family)
        theirs = members[self.learners.owner]
        residuals = np.empty(len(self.learners.y))
        for half in (0, 1):
            rows = np.flatnonzero(theirs & (self.second != half))
            if len(rows) > MOST_ROWS:
                rows = rows[np.linspace(0, len(rows) - 1, MOST_ROWS).astype(int)]
            held_out = self.second == half
            fitted = self._fit(model, rows)
            prediction = predict_rows(fitted, self.learners.X[held_out])
            residuals[held_out] = self.learners.y[held_out] - prediction
        return residuals

    def _fit(self, model: Any, rows: Array) -> Any:
        fresh = _lighter(clone(model))
        name = weight_parameter(fresh)
        extra = {} if name is None else {name: self._row_weights[rows]}
        with quiet_fits():
            return fresh.fit(self.learners.X[rows], self.learners.y[rows], **extra)


class BestFormLosses(LocalLosses):
    """Losses of each cluster's better form: linear by moments, or its flexible family refitted.

    Parameters
    ----------
    learners : Learners
        Everybody's rows.
    selection : Selection
        Of the same learners, in the same order.
    """

    def __init__(self, learners: Learners, selection: Selection) -> None:
        super().__init__(learners, selection)
        self.proxy: LocalLosses = PooledLosses(learners, selection)
        self._flexible = RefitLosses(learners, selection, self.proxy)
        affine = affine_matrix(selection.models, learners.n_features)[1]
        self._linear_families = {selection.names[j] for j in np.flatnonzero(affine)}

    def _mean_ratio(self, residuals: Array, members: Array) -> float:
        losses = self.learners.mean_by_learner(np.minimum(residuals**2, self.clips))
        return float((losses / self.noise)[members].mean())

    def residuals(self, labels: Array, n_clusters: int) -> Array:
        """Return residuals of shape (K, N) of the form with the lower loss on the cluster's members."""
        residuals = self.proxy.residuals(labels, n_clusters)
        for k in range(n_clusters):
            members = labels == k
            # Where most members are linear, moments have said it already: refitting would only cost time.
            if members.sum() < 2 or self._flexible.family(members) in self._linear_families:
                continue
            flexible = self._flexible.cluster_residuals(members)
            if self._mean_ratio(flexible, members) < self._mean_ratio(residuals[k], members):
                residuals[k] = flexible
        return residuals


def pooled_losses(
    learners: Learners, selection: Selection, exchange: Exchange, engine: Engine
) -> LocalLosses:
    """Return the pooled form that fits the learners' models.

    Parameters
    ----------
    learners : Learners
        Everybody's rows.
    selection : Selection
        Of the same learners, in the same order.
    exchange : Exchange
        Of the same learners, in the same order.
    engine : Engine
        Who predicts, where models are not affine.

    Returns
    -------
    LocalLosses
        By moments where models are linear, by refitting where they are not, by the better of both
        where both are in use.
    """
    _, affine = affine_matrix(selection.models, learners.n_features)
    if exchange.landmarks is not None and learners.n_features <= MOST_PREDICTORS:
        # Averages of everybody's models would take the evaluations that landmarks save.
        return BestFormLosses(learners, selection)
    if learners.n_features > MOST_PREDICTORS or not affine.any():
        return RefitLosses(learners, selection, AverageLosses(learners, selection, exchange, engine))
    if np.mean(~affine) < FLEXIBLE_SHARE:
        return PooledLosses(learners, selection)
    return BestFormLosses(learners, selection)
