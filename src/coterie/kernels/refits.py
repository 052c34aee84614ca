"""Clusters that predict by refitting a flexible family on their members' pooled rows.

A forest has no moments to subtract, so rows are cross-fitted instead: the model of one half of the members'
rows predicts the other half of everybody's. A set of members is fitted once, however many labellings it
occurs in. Where flexible and linear models are both in use, a cluster takes the form that predicts its
members better. Where every form is refitted, all clusters take the same one, that which predicts groups of
learners best: were it the members' most frequent one, setting apart those who chose the better family would
look like a discovery.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor

from coterie._rows import Learners
from coterie.engines import Engine
from coterie.kernels.affine import affine_form, affine_matrix
from coterie.kernels.averages import AverageLosses, bounded_weights
from coterie.kernels.blocks import predict_rows
from coterie.kernels.curves import flexible_model, most_frequent, neighbourhoods
from coterie.kernels.fitting import fit_model, quiet_fits
from coterie.kernels.pooled import PooledLosses
from coterie.kernels.together import LocalLosses
from coterie.records import Exchange, Selection

Array = NDArray[Any]

# More rows than this make a cluster's model slower, not its labels better.
MOST_ROWS = 2_000
# Enough trees to tell clusters apart; the coterie's own model has as many as its candidate asks for.
MOST_TREES = 20
# Where fewer learners than this chose a curve, lines search first; and curves must predict better where at
# least this share of the learners is. Lines cost far less.
FLEXIBLE_SHARE = 0.25
# By how many standard errors they must, or noise would have every second group refitted.
SURE = 2.0
# More predictions than this of every model for every row are not kept: a gibibyte.
MOST_PREDICTIONS = 2**27
# Solving for more predictors than this, once per learner and labelling, costs more than refitting.
MOST_PREDICTORS = 150
# Of the flexible families that learners chose so many, the most frequent ones, may become everybody's; and of
# the lines, which are much alike on pooled rows, one.
MOST_CURVES = 2


def _lighter(model: Any) -> Any:
    """Return an ensemble with fewer members, anything else as it is."""
    parameters, large = model.get_params(deep=True) if hasattr(model, "get_params") else {}, {}
    for name, value in parameters.items():
        holder, _, parameter = name.rpartition("__")
        part = parameters[holder] if holder else model
        counts = "max_iter" if isinstance(part, HistGradientBoostingRegressor) else "n_estimators"
        if parameter == counts and isinstance(value, int) and value > MOST_TREES:
            large[name] = MOST_TREES
    return model.set_params(**large) if large else model


def _ratios(losses: LocalLosses, residuals: Array, members: Array) -> Array:
    """Return the members' clipped mean losses in units of their noise."""
    means = losses.learners.mean_by_learner(np.minimum(residuals**2, losses.clips))
    ratios: Array = (means / losses.noise)[members]
    return ratios


class RefitLosses(LocalLosses):
    """Losses of one family, everybody's or the members' most frequent one, refitted on pooled rows by halves.

    Parameters
    ----------
    learners : Learners
        Everybody's rows.
    selection : Selection
        Of the same learners, in the same order.
    proxy : LocalLosses
        A cheaper form, which does most of the searching.
    curve : estimator or None, default=None
        What is refitted where no member chose anything but a line; with it, lines are not refitted.
    most_rows : int, default=2000
        On how many of a cluster's rows a half's model is fitted at most.
    """

    def __init__(
        self,
        learners: Learners,
        selection: Selection,
        proxy: LocalLosses,
        curve: Any = None,
        most_rows: int = MOST_ROWS,
    ) -> None:
        super().__init__(learners, selection)
        self._most_rows = most_rows
        self.proxy: LocalLosses = proxy
        self._curve = curve
        self._refitted = np.ones(len(selection.models), dtype=bool)
        if curve is not None:
            self._refitted = ~affine_matrix(selection.models, learners.n_features)[1]
        # As where moments are added up: quiet learners count more, wild rows less.
        weights = bounded_weights(1 / selection.noise)[learners.owner] * self.tempering
        self._row_weights = weights if self.learners.weights is None else weights * self.learners.weights
        self._fitted: dict[bytes, Array] = {}
        # What every cluster refits; None: its members' most frequent family.
        self._everybodys: Any = None

    def take_one_family(self, groups: Array) -> None:
        """Let all clusters refit the family that predicts some groups of learners best.

        Parameters
        ----------
        groups : ndarray of shape (L,)
            Learners of the same group are fitted together; those alone in theirs are not asked.
        """
        names = list(self.selection.names)
        if len(set(names)) == 1:
            return
        models = {name: self.selection.models[names.index(name)] for name in sorted(set(names))}
        frequent = sorted(models, key=lambda name: -names.count(name))
        lines = [name for name in frequent if affine_form(models[name], self.learners.n_features) is not None]
        curves = [name for name in frequent if name not in lines]
        asked = [models[name] for name in (*lines[:1], *curves[:MOST_CURVES])]
        self._everybodys = min(asked, key=lambda model: self._loss_of_groups(groups, model))

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
        """Return residuals of shape (K, N); NaN for the rows of a learner alone in its cluster."""
        residuals = np.full((n_clusters, len(self.learners.y)), np.nan)
        for k in range(n_clusters):
            members = labels == k
            if members.any():
                residuals[k] = self.cluster_residuals(members)
        return residuals

    def _model(self, members: Array) -> Any:
        """Return a model of everybody's family, or of the members' most frequent one."""
        if self._everybodys is not None:
            return self._everybodys
        kept = np.flatnonzero(members & self._refitted)
        if not len(kept):
            return self._curve
        family = most_frequent(self.selection.names[j] for j in kept)
        return next(self.selection.models[j] for j in kept if self.selection.names[j] == family)

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
                    everywhere = np.ones(len(self.learners.y), bool)
                    self._fitted[key] = self._cross_fitted(self._model(members), members, everywhere)
                except Exception:  # a family may fail on pooled rows though it fits every learner's
                    self._fitted[key] = self.proxy.residuals((~members).astype(int), 2)[0]
        return self._fitted[key]

    def own_residuals(self, members: Array) -> Array:
        """Return the residuals of a cluster on its members' rows alone, NaN elsewhere."""
        return self._cross_fitted(self._model(members), members, members[self.learners.owner])

    def _cross_fitted(self, model: Any, members: Array, wanted: Array) -> Array:
        theirs = members[self.learners.owner]
        residuals = np.full(len(self.learners.y), np.nan)
        for half in (0, 1):
            rows = np.flatnonzero(theirs & (self.second != half))
            if len(rows) > self._most_rows:
                rows = rows[np.linspace(0, len(rows) - 1, self._most_rows).astype(int)]
            held_out = wanted & (self.second == half)
            fitted = self._fit(model, rows)
            prediction = predict_rows(fitted, self.learners.X[held_out])
            residuals[held_out] = self.learners.y[held_out] - prediction
        return residuals

    def _fit(self, model: Any, rows: Array) -> Any:
        fresh = _lighter(clone(model, safe=False))
        with quiet_fits():
            return fit_model(fresh, self.learners.X[rows], self.learners.y[rows], self._row_weights[rows])


class BestFormLosses(LocalLosses):
    """Losses of each cluster's better form: linear by moments, or its flexible family refitted.

    Parameters
    ----------
    learners : Learners
        Everybody's rows.
    selection : Selection
        Of the same learners, in the same order.
    curve : estimator
        The flexible family of clusters all of whose members chose lines.
    """

    def __init__(self, learners: Learners, selection: Selection, curve: Any) -> None:
        super().__init__(learners, selection)
        self.proxy: LocalLosses = PooledLosses(learners, selection)
        self._flexible = RefitLosses(learners, selection, self.proxy, curve)
        # Which clusters of a labelling predict better by their flexible family.
        self._flexible_clusters: dict[bytes, Array] = {}

    def curves_pay(self, labels: Array) -> bool:
        """Tell whether curves predict better where a good share of the learners is."""
        lines = self.proxy.residuals(labels, int(labels.max()) + 1)
        better = 0
        for k in np.unique(labels):
            members = labels == k
            if members.sum() > 1:
                try:
                    curve = self._flexible.own_residuals(members)
                except Exception:  # a family that fails on pooled rows pays for nobody
                    continue
                gains = _ratios(self, lines[k], members) - _ratios(self, curve, members)
                if gains.mean() > SURE * gains.std(ddof=1) / np.sqrt(len(gains)):
                    better += len(gains)
        return better >= FLEXIBLE_SHARE * len(labels)

    def residuals(self, labels: Array, n_clusters: int) -> Array:
        """Return residuals of shape (K, N) of the form with the lower loss on the cluster's members."""
        residuals = self.proxy.residuals(labels, n_clusters)
        better = np.zeros(n_clusters, dtype=bool)
        for k in range(n_clusters):
            members = labels == k
            if members.sum() < 2:
                continue
            flexible = self._flexible.cluster_residuals(members)
            if _ratios(self, flexible, members).mean() < _ratios(self, residuals[k], members).mean():
                residuals[k], better[k] = flexible, True
        self._flexible_clusters[labels.tobytes()] = better
        return residuals

    def estimation_price(self, labels: Array) -> Array:
        """Return the price of linear models; not known in clusters that predict better by their family."""
        if labels.tobytes() not in self._flexible_clusters:
            self.residuals(labels, int(labels.max()) + 1)
        flexible = self._flexible_clusters[labels.tobytes()][labels]
        return np.where(flexible, np.nan, self.proxy.estimation_price(labels))


def pooled_losses(
    learners: Learners,
    selection: Selection,
    exchange: Exchange,
    engine: Engine,
    candidates: Sequence[Mapping[str, Any]] | None = None,
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
    candidates : sequence of mapping or None, default=None
        What each learner chose from. A flexible candidate that nobody chose may yet pay on pooled rows.

    Returns
    -------
    LocalLosses
        By moments where lines will do, by refitting where nobody chose a line, by the better of both
        where curves pay on pooled rows. Where few learners chose curves, by moments, with the better of
        both as its costlier form.
    """
    _, affine = affine_matrix(selection.models, learners.n_features)
    many = learners.n_features > MOST_PREDICTORS
    # Averages of everybody's models would take the evaluations that landmarks save, and a table of them all.
    few = exchange.landmarks is None and len(learners) * len(learners.y) <= MOST_PREDICTIONS
    if many or (few and not affine.any()):
        refits = RefitLosses(learners, selection, AverageLosses(learners, selection, exchange, engine))
        together = np.zeros(len(learners), dtype=np.int64)
        groups = together if exchange.landmarks is not None else neighbourhoods(exchange)
        refits.take_one_family(groups if len(np.unique(groups)) < len(groups) else together)
        return refits
    curve = flexible_model(learners, selection, affine, candidates)
    if curve is None:
        return PooledLosses(learners, selection)
    best = BestFormLosses(learners, selection, curve)
    if np.mean(~affine) < FLEXIBLE_SHARE:
        best.proxy.costlier = best
        if len(learners.y) >= 2 * MOST_ROWS:
            best.rehearsals = [
                RefitLosses(learners, selection, best.proxy, curve, MOST_ROWS // share) for share in (16, 4)
            ]
        return best.proxy
    if exchange.landmarks is not None:
        return best
    together = np.zeros(len(learners), dtype=np.int64)
    pays = best.curves_pay(together) or best.curves_pay(neighbourhoods(exchange))
    return best if pays else best.proxy
