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
    """Limit the number of members of an ensemble, also inside a pipeline; other models stay as they are.

    Pooled rows are many, and few trees suffice to tell clusters apart.
    """
    parameters, reduced_counts = model.get_params(deep=True) if hasattr(model, "get_params") else {}, {}
    for name, value in parameters.items():
        path_of_part, _, parameter = name.rpartition("__")
        estimator = parameters[path_of_part] if path_of_part else model
        count_name = "max_iter" if isinstance(estimator, HistGradientBoostingRegressor) else "n_estimators"
        # The number of trees, or of rounds of boosting.
        if parameter == count_name and isinstance(value, int) and value > FLEXIBLE.trees:
            reduced_counts[name] = FLEXIBLE.trees
    return model.set_params(**reduced_counts) if reduced_counts else model


def _ratios(losses: LocalLosses, residuals: Array, members: Array) -> Array:
    """Return the members' mean clipped losses in units of their noise, one for each member.

    ``residuals`` (N, C) are of all rows, ``members`` (L,) is a mask of the learners.
    """
    mean_losses = losses.learners.mean_losses(residuals, losses.clips)
    return (mean_losses / losses.noise)[members]


class RefitLosses(LocalLosses):
    """Losses of clusters that refit one family of models on their members' pooled rows.

    The members' rows are split into halves, and the model of one half predicts the other half of everybody's
    rows. ``family`` is the model that is refitted; ``fallback`` answers where it fails on pooled rows. The
    rest is as for `LocalLosses`.
    """

    def __init__(
        self,
        learners: Learners,
        selection: Selection,
        fallback: LocalLosses,
        family: Any,
    ) -> None:
        """Remember the family and the fallback, and compute the weights (N,) of rows in a fit.

        Rows of quiet learners count more, and rows that a learner's own model misses by far count less.
        """
        super().__init__(learners, selection)
        self._fallback = fallback
        self._family = family
        # As where moments are added up: quiet learners count more, wild rows less.
        weights = bounded_weights(1 / selection.noise)[learners.owner] * self.tempering
        self._row_weights = weights if self.learners.weights is None else weights * self.learners.weights
        # Residuals (N, C) by the set of members, as bytes: a refit is far too costly to make twice.
        self._fitted: dict[bytes, Array] = {}

    def take_best_family(self, families: Sequence[Any], groups: Array) -> None:
        """Choose the family that all clusters refit: the one that predicts groups of learners best.

        A family is a kind of model, such as forests, as an unfitted or fitted example that is cloned.
        ``groups`` (L,) gives each learner's group, whose rows are fitted together; learners alone in theirs
        are left out. Of equally good ``families`` the first is taken.
        """
        if len(families) > 1:
            self._family = min(families, key=lambda family: self._loss_of_groups(groups, family))

    def _loss_of_groups(self, groups: Array, model: Any) -> float:
        """Return the mean over learners of a model's out-of-fold loss in units of noise, fitted by group.

        It is infinite for a model that fails on some group.
        """
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
        known_ratios = ratios[np.isfinite(ratios)]
        return float(known_ratios.mean()) if len(known_ratios) else np.inf

    def residuals(self, labels: Array, n_clusters: int) -> Array:
        """Return residuals (K, N, C) of each cluster's model; NaN for a learner alone in its cluster."""
        residuals = np.full((n_clusters, *self.learners.y.shape), np.nan)
        for k in range(n_clusters):
            members = labels == k
            if members.any():
                residuals[k] = self.cluster_residuals(members)
        return residuals

    def cluster_residuals(self, members: Array) -> Array:
        """Return the residuals (N, C) of one cluster's model, given by its members, a mask (L,).

        They are fitted once for each set of members and then remembered. A learner alone predicts others by
        its own model.
        """
        key = np.packbits(members).tobytes()
        if key not in self._fitted:
            positions = np.flatnonzero(members)
            if len(positions) == 1:
                own_model = self.selection.models[positions[0]]
                own_residuals = self.learners.y - predict_rows(own_model, self.learners.X, self.learners.loss)
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
        """Return residuals (N, C), each half of the rows predicted by a model of the members' other half.

        ``members`` (L,) is a mask of the learners, ``wanted`` (N,) one of the rows to predict; other rows
        have NaN.
        """
        is_members_row = members[self.learners.owner]
        residuals = np.full(self.learners.y.shape, np.nan)
        for half in (0, 1):
            training_rows = np.flatnonzero(is_members_row & (self.second != half))
            # Some rows, evenly spaced, are enough to judge a cluster by.
            if len(training_rows) > FLEXIBLE.rows:
                training_rows = training_rows[
                    np.linspace(0, len(training_rows) - 1, FLEXIBLE.rows).astype(int)
                ]
            held_out = wanted & (self.second == half)
            fitted = self._fit(model, training_rows)
            prediction = predict_rows(fitted, self.learners.X[held_out], self.learners.loss)
            residuals[held_out] = self.learners.y[held_out] - prediction
        return residuals

    def _fit(self, model: Any, rows: Array) -> Any:
        """Fit a fresh, lighter copy of a model to the rows at some positions, by their weights."""
        fresh = _lighter(clone(model, safe=False))
        with quiet_fits():
            target = self.learners.loss.target(self.learners.y[rows])
            return fit_model(fresh, self.learners.X[rows], target, self._row_weights[rows])


class BestFormLosses(LocalLosses):
    """Losses of clusters that predict by the better of two forms, cluster by cluster.

    One form is linear on pooled rows, the other a flexible family refitted on them. All clusters refit the
    one of ``families`` that predicts ``groups`` best, as `RefitLosses.take_best_family` says.
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
        """Return residuals (K, N, C), for each cluster of the form that loses less on its members.

        Clusters of fewer than two members keep the linear form.
        """
        residuals = self.lines.residuals(labels, n_clusters)
        for k in range(n_clusters):
            members = labels == k
            if members.sum() < 2:
                continue
            flexible_residuals = self._flexible.cluster_residuals(members)
            if (
                _ratios(self, flexible_residuals, members).mean()
                < _ratios(self, residuals[k], members).mean()
            ):
                residuals[k] = flexible_residuals
        return residuals


def _frequent_models(selection: Selection, n_features: int) -> tuple[list[Any], list[Any]]:
    """Return one fitted model of each candidate that learners chose, the most frequent first.

    The first list has the models that are linear, or linear in log-odds; the second has all others.
    """
    names = list(selection.names)
    names_by_frequency = sorted(set(names), key=lambda name: (-names.count(name), name))
    models = [selection.models[names.index(name)] for name in names_by_frequency]
    lines = [model for model in models if is_line(model, n_features)]
    return lines, [model for model in models if all(model is not line for line in lines)]


def pooled_losses(
    learners: Learners,
    selection: Selection,
    exchange: Exchange,
    engine: Engine,
    candidates: Sequence[Mapping[str, Any]] | None = None,
) -> tuple[LocalLosses, LocalRows]:
    """Choose how clusters predict from pooled rows, by the models that learners chose.

    A linear model's sums can be added and subtracted, so that its search is cheap; a flexible one, such as a
    forest, must be fitted again for each set of members.

    Where all candidates are linear, clusters predict by linear models from sums X'X and X'y; with very many
    predictors, by refitting. Otherwise each cluster predicts by the better of a linear and a flexible model:
    from the start if nobody chose a linear one, else as a second form beside the linear one.

    ``candidates`` is what each learner chose from: a flexible candidate that nobody chose may still pay on
    pooled rows. Returns the losses, and what else rows that are here add to a search.
    """
    linear_models, flexible_models = _frequent_models(selection, learners.n_features)
    # Who has one class only chose nothing.
    flexible_models = [model for model in flexible_models if type(model) is not OneClass]
    if learners.n_features > FLEXIBLE.predictors:
        families = [*linear_models[:1], *flexible_models[:1]]
        averages = AverageLosses.of_all(learners, selection, exchange, engine)
        refits = RefitLosses(learners, selection, averages, families[0])
        refits.take_best_family(families, neighbourhoods(exchange))
        return refits, LocalRows(quick=averages)
    any_flexible = bool(flexible_models) or has_curve(learners, selection, candidates)
    if not any_flexible and learners.loss.bounds is not None:
        logistic = LogisticLosses(learners, selection)
        return logistic, logistic.local
    if not any_flexible:
        moments = PooledLosses(learners, selection)
        return moments, moments.local
    # A learner alone is judged by its own family. Were clusters judged by a family that expresses less,
    # learners would be set apart.
    # A default forest is no family of its own here: random cuts express as much at a third of its cost.
    own_family = [
        model for model in flexible_models[:1] if type(getattr(model, "regressor", None)) is not QuickForest
    ]
    best_form = BestFormLosses(
        learners, selection, [quick_forest(learners.loss), *own_family], neighbourhoods(exchange)
    )
    searched_by_lines = LocalRows(
        quick=best_form.lines, suggest=best_form.lines.local.suggest, anybody_beyond=best_form.anybody_beyond
    )
    if not linear_models:
        return best_form, searched_by_lines
    is_flexible = [not is_line(model, learners.n_features) for model in selection.models]
    second_form = SecondForm(
        best_form, searched_by_lines, always=bool(np.mean(is_flexible) >= FLEXIBLE.share)
    )
    return best_form.lines, replace(best_form.lines.local, second=second_form)
