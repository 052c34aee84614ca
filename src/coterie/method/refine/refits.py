"""Clusters that predict by refitting a flexible family on their members' pooled rows.

A forest has no moments to subtract, so rows are cross-fitted instead: the model of one half of the members'
rows predicts the other half of everybody's. A set of members is fitted once, however many labellings it
occurs in. All clusters refit the same family, the one that predicts groups of similar learners best. Were it
the members' most frequent one, setting apart those who chose the better family would look like a discovery.
With few enough predictors a cluster predicts by a line instead where that is better.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor

from coterie._arrays import Array
from coterie.engines import Engine
from coterie.kernels.logistic import is_line
from coterie.kernels.losses import predict_rows
from coterie.method.fitting import fit_model, quiet_fits
from coterie.method.refine.averages import AverageLosses, bounded_weights
from coterie.method.refine.flexible import FLEXIBLE, has_curve, neighbourhoods, quick_forest
from coterie.method.refine.logistic import LogisticLosses
from coterie.method.refine.losses import LocalLosses, LocalRows, SecondForm
from coterie.method.refine.pooled import PooledLosses
from coterie.models.classes import OneClass
from coterie.models.forest import QuickForest
from coterie.records import Exchange, Selection
from coterie.rows.learners import Learners


def _lighter(model: Any) -> Any:
    """Return an ensemble with fewer members, anything else as it is."""
    parameters, large = model.get_params(deep=True) if hasattr(model, "get_params") else {}, {}
    for name, value in parameters.items():
        holder, _, parameter = name.rpartition("__")
        part = parameters[holder] if holder else model
        counts = "max_iter" if isinstance(part, HistGradientBoostingRegressor) else "n_estimators"
        if parameter == counts and isinstance(value, int) and value > FLEXIBLE.trees:
            large[name] = FLEXIBLE.trees
    return model.set_params(**large) if large else model


def _ratios(losses: LocalLosses, residuals: Array, members: Array) -> Array:
    """Return the members' clipped mean losses in units of their noise."""
    means = losses.learners.mean_losses(residuals, losses.clips)
    return (means / losses.noise)[members]


class RefitLosses(LocalLosses):
    """Losses of one family, refitted on the pooled rows of each cluster by halves.

    ``fallback`` answers where the family fails on pooled rows. The rest is as for `LocalLosses`.
    """

    def __init__(
        self,
        learners: Learners,
        selection: Selection,
        fallback: LocalLosses,
        family: Any,
    ) -> None:
        """Remember the family, what stands in where it fails, and how rows count."""
        super().__init__(learners, selection)
        self._fallback = fallback
        self._family = family
        # As where moments are added up: quiet learners count more, wild rows less.
        weights = bounded_weights(1 / selection.noise)[learners.owner] * self.tempering
        self._row_weights = weights if self.learners.weights is None else weights * self.learners.weights
        self._fitted: dict[bytes, Array] = {}

    def take_best_family(self, families: Sequence[Any], groups: Array) -> None:
        """Let all clusters refit the family that predicts some groups of learners best; of equals the first.

        Learners of the same group, of shape (L,), are fitted together; those alone in theirs are left out.
        """
        if len(families) > 1:
            self._family = min(families, key=lambda family: self._loss_of_groups(groups, family))

    def _loss_of_groups(self, groups: Array, model: Any) -> float:
        """Return the mean over learners of the loss with their group, in units of noise."""
        ratios = np.full(len(groups), np.nan)
        for group in np.unique(groups):
            members = groups == group
            if members.sum() < 2:
                continue
            try:
                residuals = self._cross_fitted(model, members, members[self.learners.owner])
            except Exception:  # a family that fails on pooled rows is nobody's
                return np.inf
            ratios[members] = _ratios(self, residuals, members)
        known = ratios[np.isfinite(ratios)]
        return float(known.mean()) if len(known) else np.inf

    def residuals(self, labels: Array, n_clusters: int) -> Array:
        """Return residuals of shape (K, N, C); NaN for the rows of a learner alone in its cluster."""
        residuals = np.full((n_clusters, *self.learners.y.shape), np.nan)
        for k in range(n_clusters):
            members = labels == k
            if members.any():
                residuals[k] = self.cluster_residuals(members)
        return residuals

    def cluster_residuals(self, members: Array) -> Array:
        """Return the residuals of shape (N, C) of one cluster, given by a mask of shape (L,)."""
        key = np.packbits(members).tobytes()
        if key not in self._fitted:
            positions = np.flatnonzero(members)
            if len(positions) == 1:
                own = self.selection.models[positions[0]]
                own_residuals = self.learners.y - predict_rows(own, self.learners.X, self.learners.loss)
                own_residuals[self.learners.span(positions[0])] = np.nan
                self._fitted[key] = own_residuals
            else:
                try:
                    everywhere = np.ones(len(self.learners.y), bool)
                    self._fitted[key] = self._cross_fitted(self._family, members, everywhere)
                except Exception:  # a family may fail on pooled rows though it fits every learner's
                    self._fitted[key] = self._fallback.residuals((~members).astype(int), 2)[0]
        return self._fitted[key]

    def _cross_fitted(self, model: Any, members: Array, wanted: Array) -> Array:
        """Return residuals of members' models, each half predicted by a model of the other half."""
        theirs = members[self.learners.owner]
        residuals = np.full(self.learners.y.shape, np.nan)
        for half in (0, 1):
            rows = np.flatnonzero(theirs & (self.second != half))
            if len(rows) > FLEXIBLE.rows:
                rows = rows[np.linspace(0, len(rows) - 1, FLEXIBLE.rows).astype(int)]
            held_out = wanted & (self.second == half)
            fitted = self._fit(model, rows)
            prediction = predict_rows(fitted, self.learners.X[held_out], self.learners.loss)
            residuals[held_out] = self.learners.y[held_out] - prediction
        return residuals

    def _fit(self, model: Any, rows: Array) -> Any:
        """Fit a fresh copy of a model on some rows."""
        fresh = _lighter(clone(model, safe=False))
        with quiet_fits():
            target = self.learners.loss.target(self.learners.y[rows])
            return fit_model(fresh, self.learners.X[rows], target, self._row_weights[rows])


class BestFormLosses(LocalLosses):
    """Losses of each cluster's better form: a line by moments, or a flexible family on its members' rows.

    All clusters refit the one of ``families`` that predicts ``groups`` best, as
    `RefitLosses.take_best_family` says.
    """

    def __init__(
        self, learners: Learners, selection: Selection, families: Sequence[Any], groups: Array
    ) -> None:
        """Prepare both forms: lines, and the flexible family that predicts best."""
        super().__init__(learners, selection)
        of_classes = learners.loss.bounds is not None
        self.lines = (LogisticLosses if of_classes else PooledLosses)(learners, selection)
        self._flexible = RefitLosses(learners, selection, self.lines, families[0])
        self._flexible.take_best_family(families, groups)

    def residuals(self, labels: Array, n_clusters: int) -> Array:
        """Return residuals of shape (K, N, C) of the form with the lower loss on the cluster's members."""
        residuals = self.lines.residuals(labels, n_clusters)
        for k in range(n_clusters):
            members = labels == k
            if members.sum() < 2:
                continue
            flexible = self._flexible.cluster_residuals(members)
            if _ratios(self, flexible, members).mean() < _ratios(self, residuals[k], members).mean():
                residuals[k] = flexible
        return residuals


def _frequent_models(selection: Selection, n_features: int) -> tuple[list[Any], list[Any]]:
    """Return one model of every family that learners chose, the most frequent first: lines, and curves."""
    names = list(selection.names)
    frequent = sorted(set(names), key=lambda name: (-names.count(name), name))
    models = [selection.models[names.index(name)] for name in frequent]
    lines = [model for model in models if is_line(model, n_features)]
    return lines, [model for model in models if all(model is not line for line in lines)]


def pooled_losses(
    learners: Learners,
    selection: Selection,
    exchange: Exchange,
    engine: Engine,
    candidates: Sequence[Mapping[str, Any]] | None = None,
) -> tuple[LocalLosses, LocalRows]:
    """Return the pooled form that fits the learners' models, and what its rows add to a search.

    ``candidates`` is what each learner chose from: a flexible candidate that nobody chose may still pay on
    pooled rows. Where all candidates are affine, clusters predict by moments; with very many predictors, by
    refitting. Otherwise each cluster predicts by the better of both: from the start if nobody chose an affine
    model, else as a second form beside moments.
    """
    lines, curves = _frequent_models(selection, learners.n_features)
    # Who has one class only chose nothing.
    curves = [model for model in curves if type(model) is not OneClass]
    if learners.n_features > FLEXIBLE.predictors:
        families = [*lines[:1], *curves[:1]]
        averages = AverageLosses.of_all(learners, selection, exchange, engine)
        refits = RefitLosses(learners, selection, averages, families[0])
        refits.take_best_family(families, neighbourhoods(exchange))
        return refits, LocalRows(quick=averages)
    curved = bool(curves) or has_curve(learners, selection, candidates)
    if not curved and learners.loss.bounds is not None:
        logistic = LogisticLosses(learners, selection)
        return logistic, logistic.local
    if not curved:
        moments = PooledLosses(learners, selection)
        return moments, moments.local
    # A learner alone is judged by its own family. Were clusters judged by a family that expresses less,
    # learners would be set apart.
    # A default forest is no family of its own here: random cuts express as much at a third of its cost.
    own = [model for model in curves[:1] if type(getattr(model, "regressor", None)) is not QuickForest]
    best = BestFormLosses(learners, selection, [quick_forest(learners.loss), *own], neighbourhoods(exchange))
    searched_by_lines = LocalRows(
        quick=best.lines, suggest=best.lines.local.suggest, anybody_beyond=best.anybody_beyond
    )
    if not lines:
        return best, searched_by_lines
    curve = [not is_line(model, learners.n_features) for model in selection.models]
    second = SecondForm(best, searched_by_lines, always=bool(np.mean(curve) >= FLEXIBLE.share))
    return best.lines, replace(best.lines.local, second=second)
