"""Nested coteries where rows may not move: the shared predictors are averages of the learners' models.

Rows that are here answer as parties elsewhere would by messages, one learner at a time; see `parties`. A
learner's own model is left out of the averages that predict it, for it is weighed apart, and so is a peer's
model that is wild on its rows. Models travel with the mean and the variance of the response that they were
fitted on, and are kept within what these make plausible.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie.collaboration.nested.effects import slope_units
from coterie.collaboration.nested.guard import model_bounds
from coterie.collaboration.nested.own import OwnByFold
from coterie.collaboration.nested.parties import AverageDictionary, RowParty
from coterie.collaboration.nested.record import AverageNewcomers, NestedCollaboration
from coterie.collaboration.nested.resolutions import Recipe, average_labels, resolution_counts, share_names
from coterie.collaboration.nested.weighing import (
    agree_on_ratios,
    agree_on_weights,
    homes_of,
    mixed_models,
    response_units,
)
from coterie.kernels.losses import predict_rows
from coterie.method.refine.averages import AverageLosses, model_weights
from coterie.method.spectral import tidy_labels
from coterie.records import Exchange, Selection
from coterie.rows.learners import Learners


@dataclass(frozen=True)
class _Prediction:
    model: Any
    X: Array


def _predict(job: _Prediction) -> Array:
    return np.asarray(predict_rows(job.model, job.X)[:, 0])


class RowLosses:
    """What averages lose by row, in the order of the rows; each labelling is looked at once."""

    def __init__(self, losses: AverageLosses) -> None:
        self._losses, self._places = losses, np.argsort(losses.order)
        self._known: dict[bytes, Array] = {}

    def of(self, labels: Array, span: slice) -> Array:
        """Return the losses (K, n) of one learner's rows."""
        key = labels.tobytes()
        if key not in self._known:
            self._known[key] = self._losses.by_row(labels)[:, self._places]
        found: Array = self._known[key][:, span]
        return found


def _parties(
    learners: Learners, own: OwnByFold, losses: AverageLosses, bounds: Array, weights: Array, recipe: Recipe
) -> list[RowParty]:
    """Return the learners as parties; ``own`` is of the same rows."""
    by_row = RowLosses(losses)
    jobs = [_Prediction(model, learners.X) for model in losses.selection.models]
    with np.errstate(over="ignore", invalid="ignore"):
        table = np.array(recipe.engine.map(_predict, jobs))
    parties = []
    for j in range(len(learners)):
        span = learners.span(j)
        parties.append(
            RowParty(
                X=learners.X[span],
                y=learners.scalar_y[span],
                folds=own.folds.held_out[span],
                n_folds=len(own.folds),
                alone=own.predictions[span, 0],
                table=table[:, span],
                bounds=bounds,
                model_weights=weights,
                place=j,
                losses=partial(by_row.of, span=span),
                noise=float(losses.noise[j]),
                weights=None if learners.weights is None else learners.weights[span],
            )
        )
    return parties


@dataclass(frozen=True)
class _Mixtures:
    """How M learners predict: weights of models (M, M), shares of averages, corrections and residuals."""

    counts: tuple[int, ...]
    dictionary: AverageDictionary
    weights: Array
    shares: Array
    corrections: Array
    limits: Array
    residuals: list[Array]
    averages: list[Array]
    shrinkage: float


def _mix(
    learners: Learners,
    selection: Selection,
    exchange: Exchange,
    labels: Array,
    own: OwnByFold,
    bounds: Array,
    recipe: Recipe,
) -> _Mixtures:
    """Mix own models and averages of models, for learners whose losses are finite."""
    weights = model_weights(learners.sizes, selection.noise, exchange)
    losses = AverageLosses.of_all(learners, selection, exchange, recipe.engine)
    counts = resolution_counts(len(learners), int(labels.max()) + 1)
    found = average_labels(exchange, losses, learners.sizes, recipe.seed, recipe.rounds)
    found |= {int(labels.max()) + 1: labels}
    labellings = (*(found[count] for count in counts), np.zeros_like(labels))
    parties = _parties(learners, own, losses, bounds, weights, recipe)
    units = slope_units(np.array([party.X.std(axis=0) for party in parties]))
    ratios = agree_on_ratios(np.array([party.likelihoods(labellings, units) for party in parties]))
    dictionary = AverageDictionary(labellings, units, ratios)
    grams, rows = zip(*(party.grams(dictionary) for party in parties), strict=True)
    means = np.array([party.y.mean() for party in parties])
    variances = np.array([party.y.var() for party in parties])
    agreed = agree_on_weights(
        np.array(grams), np.array(rows), response_units(learners.sizes, means, variances)
    )
    homes = np.array([homes_of(losses, each) for each in labellings])
    everybody = slice(0, len(learners))
    tile = exchange.source.tile(everybody, everybody)
    models, shares = mixed_models(dictionary, homes, agreed.personal, weights, tile)
    own_lines = [party.correction(dictionary, agreed.personal[j]) for j, party in enumerate(parties)]
    return _Mixtures(
        counts,
        dictionary,
        models,
        shares,
        np.array([line for line, _ in own_lines]),
        np.array([limits for _, limits in own_lines]),
        [party.residuals(dictionary, agreed.held_out[:, j]) for j, party in enumerate(parties)],
        [np.column_stack([party.average(each) for each in labellings]) for party in parties],
        agreed.shrinkage,
    )


def own_of_kept(own: OwnByFold, learners: Learners, kept: Array) -> OwnByFold:
    """Return the own models' predictions and folds of the learners that are kept."""
    rows = np.isin(learners.owner, kept)
    folds = replace(own.folds, held_out=own.folds.held_out[rows], training=own.folds.training[:, rows])
    return replace(own, folds=folds, predictions=own.predictions[rows], bounds=own.bounds[kept])


def shared_ranges(bounds: Array, labels: Array) -> Array:
    """Return what learners' predictions with others are kept within, (L, 2).

    It is the widest of their cluster's ``bounds`` (L, 2), within which each keeps its own model. For rows
    that are unlike all that anybody has seen, others' models may predict anything.
    """
    same = labels[:, None] == labels
    low = np.where(same, bounds[:, 0], np.inf).min(axis=1, initial=np.inf)
    high = np.where(same, bounds[:, 1], -np.inf).max(axis=1, initial=-np.inf)
    return np.column_stack([low, high])


def nest_averages(
    learners: Learners,
    selection: Selection,
    exchange: Exchange,
    labels: Array,
    own: OwnByFold,
    recipe: Recipe,
) -> NestedCollaboration:
    """Mix own models and averages of models; whose losses are not finite predicts alone."""
    n, n_clusters, n_features = len(learners), int(labels.max()) + 1, learners.n_features
    kept = np.flatnonzero(~exchange.isolated)
    ys = [learners.scalar_y[learners.span(j)] for j in range(n)]
    bounds = model_bounds(np.array([y.mean() for y in ys]), np.array([y.var() for y in ys]))
    inside, chosen = learners.take(kept), selection.take(kept)
    home = tidy_labels(labels[kept])
    mixtures = _mix(
        inside, chosen, exchange.take(kept), home, own_of_kept(own, learners, kept), bounds[kept], recipe
    )
    counts, dictionary = mixtures.counts, mixtures.dictionary
    n_kept_clusters = int(home.max()) + 1
    # Where everybody stands alone, a cluster shares nothing.
    joined = None if n_kept_clusters == len(kept) else (*counts, 1).index(n_kept_clusters)
    weights, shares = np.eye(n), np.zeros((n, len(counts) + 2))
    shares[:, 0] = 1.0
    weights[np.ix_(kept, kept)], shares[kept] = mixtures.weights, mixtures.shares
    corrections, limits = np.zeros((n, n_features + 1)), np.zeros((n, 2))
    corrections[kept], limits[kept] = mixtures.corrections, mixtures.limits
    plausible = np.tile([-np.inf, np.inf], (n + n_clusters + 1, 1))
    plausible[kept] = shared_ranges(own.bounds[kept], home)
    alone = [own.predictions[learners.span(j), 0] for j in range(n)]
    residuals = [y - mine for y, mine in zip(ys, alone, strict=True)]
    plain, everybody = residuals.copy(), residuals.copy()
    for place, j in enumerate(kept.tolist()):
        averages = mixtures.averages[place]
        residuals[j] = mixtures.residuals[place]
        everybody[j] = ys[j] - averages[:, -1]
        if joined is not None:
            plain[j] = ys[j] - averages[:, joined]
    in_averages = np.zeros(n)
    in_averages[kept] = model_weights(inside.sizes, chosen.noise, exchange.take(kept))
    newcomers = np.zeros((n_clusters + 1, n))
    for k in range(n_clusters):
        members = labels == k
        # Whose model is in no average predicts by itself who joins it.
        newcomers[k] = np.where(members, in_averages if (members & (in_averages > 0)).any() else 1.0, 0.0)
    newcomers[-1] = in_averages
    newcomers /= newcomers.sum(axis=1, keepdims=True)
    return NestedCollaboration(
        learner_ids=learners.ids,
        method="auto",
        models=selection.models,
        names=selection.names,
        weights=np.vstack([weights, newcomers]),
        weight_rows=np.arange(n),
        newcomer_weight_rows=n + np.arange(n_clusters),
        residuals=tuple(left[:, None] for left in residuals),
        bounds=bounds,
        corrections=np.vstack([corrections, np.zeros((n_clusters + 1, n_features + 1))]),
        correction_bounds=np.vstack([limits, np.zeros((n_clusters + 1, 2))]),
        limits=np.tile([[-np.inf], [np.inf]], (1, n_features)),
        plausible=plausible,
        form="average",
        plain_residuals=tuple(left[:, None] for left in plain),
        all_residuals=tuple(left[:, None] for left in everybody),
        all_row=n + n_clusters,
        share_names=share_names(counts),
        shares=shares,
        shrinkage=mixtures.shrinkage,
        n_fits=0,
        told=np.zeros((n + n_clusters + 1, 0)),
        sees=np.zeros((n, 0), dtype=bool),
        newcomers=AverageNewcomers(
            np.zeros(2) if joined is None else dictionary.ratios[1, joined],
            dictionary.units,
            float(np.median(selection.noise)),
        ),
    )
