"""Nested coteries of classifiers where rows may not move: shared predictors are averages of models.

As `nested.averaging`: rows that are here answer as parties elsewhere would by messages, one learner at a
time; see `parties`. Weights are on probabilities, by Brier scores out of fold.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie.collaboration.classes.average_record import ClassAverages
from coterie.collaboration.classes.parties import ClassParty
from coterie.collaboration.nested import Recipe
from coterie.collaboration.nested.averaging import RowLosses, own_of_kept
from coterie.collaboration.nested.effects import slope_units
from coterie.collaboration.nested.own import OwnByFold
from coterie.collaboration.nested.parties import AverageDictionary, average_of
from coterie.collaboration.nested.resolutions import average_labels, resolution_counts, share_names
from coterie.collaboration.nested.weighing import agree_on_ratios, agree_on_weights, homes_of
from coterie.collaboration.nested.weights import Weights
from coterie.kernels.losses import predict_rows
from coterie.loss import Loss
from coterie.method.refine.averages import AverageLosses, model_weights
from coterie.method.spectral import tidy_labels
from coterie.records import Exchange, Selection
from coterie.rows.learners import Learners


@dataclass(frozen=True)
class _Prediction:
    model: Any
    X: Array
    loss: Loss


def _predict(job: _Prediction) -> Array:
    return np.asarray(predict_rows(job.model, job.X, job.loss))


def own_bounds_of(loss: Loss, sizes: Array) -> Array:
    """Return what classifiers of so many rows (L,) are kept within, (L, 2): no surer than rows allow."""
    return np.array([loss.own_bounds(int(n)) for n in sizes])


def agree_on_class_weights(grams: Array, counts: Array) -> Weights:
    """Learn weights from Gram matrices (L, F, K, K): probabilities have the same unit everywhere."""
    return agree_on_weights(grams, counts, np.ones(len(grams)))


def mixed_parts(
    dictionary: AverageDictionary, homes: Array, weights: Array, model_weights: Array, losses: Array
) -> tuple[Array, Array]:
    """Return the models (L, E + 1, M) behind each learner's predictors, and the shares (L, E + 1) shown.

    The first predictor is its own model, the others are the averages of labellings. Arguments are as for
    `nested.weighing.mixed_models`.
    """
    n_shared, n = len(dictionary.labellings), len(weights)
    parts = np.zeros((n, n_shared + 1, len(model_weights)))
    shares = np.column_stack([weights[:, 0], weights[:, 1:].reshape(n, 2, n_shared).sum(axis=1)])
    parts[np.arange(n), 0, np.arange(n)] = 1.0
    for place in range(n):
        for column, (labels, home) in enumerate(zip(dictionary.labellings, homes[:, place], strict=True), 1):
            positions, some = average_of(labels == home, model_weights, losses[:, place], place)
            parts[place, column, positions] = some
            if positions.tolist() == [place]:
                # Nobody else is of use there: the average is the learner's own model.
                shares[place, 0] += shares[place, column]
                shares[place, column] = 0.0
    return parts, shares


@dataclass(frozen=True)
class _Mixed:
    """How M learners predict; see `ClassAverages`, and what was measured of them."""

    counts: tuple[int, ...]
    dictionary: AverageDictionary
    parts: Array
    part_shares: Array
    lines: Array
    limits: Array
    shares: Array
    shrinkage: float
    residuals: list[Array] = field(repr=False)
    averages: list[Array] = field(repr=False)


def _parties(
    learners: Learners, own: OwnByFold, losses: AverageLosses, weights: Array, recipe: Recipe
) -> list[ClassParty]:
    by_row, loss = RowLosses(losses), learners.loss
    jobs = [_Prediction(model, learners.X, loss) for model in losses.selection.models]
    table, bounds = np.array(recipe.engine.map(_predict, jobs)), own_bounds_of(loss, learners.sizes)
    return [
        ClassParty(
            X=learners.X[span],
            y=learners.y[span],
            folds=own.folds.held_out[span],
            n_folds=len(own.folds),
            alone=own.predictions[span],
            table=table[:, span],
            bounds=bounds,
            model_weights=weights,
            place=j,
            losses=partial(by_row.of, span=span),
            loss=loss,
            weights=None if learners.weights is None else learners.weights[span],
        )
        for j, span in enumerate(map(learners.span, range(len(learners))))
    ]


def _mix(
    learners: Learners,
    selection: Selection,
    exchange: Exchange,
    labels: Array,
    own: OwnByFold,
    recipe: Recipe,
) -> _Mixed:
    """Mix own models and averages of models, for learners whose losses are finite."""
    weights = model_weights(learners.sizes, selection.noise, exchange)
    losses = AverageLosses.of_all(learners, selection, exchange, recipe.engine)
    counts = resolution_counts(len(learners), int(labels.max()) + 1)
    found = average_labels(exchange, losses, learners.sizes, recipe.seed, recipe.rounds)
    found |= {int(labels.max()) + 1: labels}
    labellings = (*(found[count] for count in counts), np.zeros_like(labels))
    parties = _parties(learners, own, losses, weights, recipe)
    units = slope_units(np.array([party.X.std(axis=0) for party in parties]))
    ratios = agree_on_ratios(np.array([party.likelihoods(labellings, units) for party in parties]))
    dictionary = AverageDictionary(labellings, units, ratios)
    grams, rows = zip(*(party.grams(dictionary) for party in parties), strict=True)
    agreed = agree_on_class_weights(np.array(grams), np.array(rows))
    homes = np.array([homes_of(losses, each) for each in labellings])
    everybody = slice(0, len(learners))
    tile = exchange.source.tile(everybody, everybody)
    parts, shares = mixed_parts(dictionary, homes, agreed.personal, weights, tile)
    own_lines = [party.own_lines(dictionary) for party in parties]
    return _Mixed(
        counts,
        dictionary,
        parts,
        agreed.personal,
        np.array([each.lines for each in own_lines]),
        np.array([each.limits for each in own_lines]),
        shares,
        agreed.shrinkage,
        [party.residuals(dictionary, agreed.held_out[:, j]) for j, party in enumerate(parties)],
        [np.stack([party.average(each) for each in labellings], axis=1) for party in parties],
    )


def nest_class_averages(
    learners: Learners,
    selection: Selection,
    exchange: Exchange,
    labels: Array,
    own: OwnByFold,
    recipe: Recipe,
) -> ClassAverages:
    """Mix own models and averages of models; whose losses are not finite predicts alone."""
    n, n_clusters, loss = len(learners), int(labels.max()) + 1, learners.loss
    kept = np.flatnonzero(~exchange.isolated)
    inside, chosen, known = learners.take(kept), selection.take(kept), exchange.take(kept)
    home = tidy_labels(labels[kept])
    mixed = _mix(inside, chosen, known, home, own_of_kept(own, learners, kept), recipe)
    n_home, n_shared = int(home.max()) + 1, len(mixed.dictionary.labellings)
    # Where everybody stands alone, a cluster shares nothing.
    joined = None if n_home == len(kept) else (*mixed.counts, 1).index(n_home)
    n_rows = n + n_clusters + 1
    parts, part_shares = np.zeros((n_rows, n_shared + 1, n)), np.zeros((n_rows, 2 * n_shared + 1))
    lines = np.zeros((n_rows, *mixed.lines.shape[1:]))
    limits, shares = np.zeros((n_rows, *mixed.limits.shape[1:])), np.zeros((n, n_shared + 1))
    parts[np.arange(n), 0, np.arange(n)], part_shares[:n, 0], shares[:, 0] = 1.0, 1.0, 1.0
    parts[np.ix_(kept, np.arange(n_shared + 1), kept)] = mixed.parts
    part_shares[kept], lines[kept], limits[kept] = mixed.part_shares, mixed.lines, mixed.limits
    shares[kept] = mixed.shares
    spans = [learners.span(j) for j in range(n)]
    residuals = [learners.y[span] - own.predictions[span] for span in spans]
    plain, everybody = residuals.copy(), residuals.copy()
    for place, j in enumerate(kept.tolist()):
        y, averages = learners.y[spans[j]], mixed.averages[place]
        residuals[j], everybody[j] = mixed.residuals[place], y - averages[:, -1]
        if joined is not None:
            plain[j] = y - averages[:, joined]
    in_averages = np.zeros(n)
    in_averages[kept] = model_weights(inside.sizes, chosen.noise, known)
    for k in range(n_clusters + 1):
        # Whose model is in no average predicts by itself who joins it.
        members = (labels == k) | (k == n_clusters)
        heard = members & (in_averages > 0)
        mine = np.where(heard, in_averages, 0.0) if heard.any() else members.astype(float)
        parts[n + k, 1], part_shares[n + k, 1] = mine / mine.sum(), 1.0
    bounds = own_bounds_of(loss, selection.n_rows)
    return ClassAverages(
        learner_ids=learners.ids,
        method="auto",
        models=selection.models,
        names=selection.names,
        weights=ClassAverages.totals(parts, part_shares),
        weight_rows=np.arange(n),
        newcomer_weight_rows=n + np.arange(n_clusters),
        residuals=tuple(residuals),
        loss=loss,
        parts=parts,
        part_shares=part_shares,
        lines=lines,
        limits=limits,
        bounds=bounds,
        plausible=np.vstack([bounds, np.tile([0.0, 1.0], (n_clusters + 1, 1))]),
        plain_residuals=tuple(plain),
        all_residuals=tuple(everybody),
        all_row=n + n_clusters,
        share_names=share_names(mixed.counts),
        shares=shares,
        shrinkage=mixed.shrinkage,
        ratios=np.zeros(2) if joined is None else mixed.dictionary.ratios[1, joined],
        units=mixed.dictionary.units,
    )
