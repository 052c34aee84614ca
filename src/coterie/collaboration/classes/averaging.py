"""Nested coteries of classifiers where rows may not move: shared predictors are averages of models.

As `nested.averaging`: rows that are here answer as sites elsewhere would by messages, one learner at a
time; see `sites`. Weights are on probabilities, by Brier scores out of fold.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie.collaboration.classes.average_record import ClassAverages
from coterie.collaboration.classes.site_rows import ClassSiteRows
from coterie.collaboration.nested import Recipe
from coterie.collaboration.nested.averaging import RowLosses, own_of_finite
from coterie.collaboration.nested.effects import slope_units
from coterie.collaboration.nested.own import OwnByFold
from coterie.collaboration.nested.resolutions import average_labels, resolution_counts, share_names
from coterie.collaboration.nested.site_rows import AverageDictionary, average_of
from coterie.collaboration.nested.weighing import agree_on_ratios, agree_on_weights, best_clusters
from coterie.collaboration.nested.weights import LearntWeights
from coterie.kernels.losses import predict_rows
from coterie.loss import Loss
from coterie.method.refine.averages import AverageLosses, model_weights
from coterie.method.spectral import tidy_labels
from coterie.records import Exchange, Selection
from coterie.rows.learners import Learners


@dataclass(frozen=True)
class _ClassPredictJob:
    model: Any
    X: Array
    loss: Loss


def _predict(job: _ClassPredictJob) -> Array:
    return np.asarray(predict_rows(job.model, job.X, job.loss))


def own_bounds_of(loss: Loss, sizes: Array) -> Array:
    """Return what classifiers of so many rows (L,) are kept within, (L, 2): no surer than rows allow."""
    return np.array([loss.own_bounds(int(n)) for n in sizes])


def agree_on_class_weights(grams: Array, counts: Array) -> LearntWeights:
    """Learn weights from Gram matrices (L, F, K, K): probabilities have the same unit everywhere."""
    return agree_on_weights(grams, counts, np.ones(len(grams)))


def mixed_parts(
    dictionary: AverageDictionary, clusters_of: Array, weights: Array, model_weights: Array, losses: Array
) -> tuple[Array, Array]:
    """Return the models (L, E + 1, M) behind each learner's predictors, and the shares (L, E + 1) shown.

    The first predictor is its own model, the others are the averages of labellings. Arguments are as for
    `nested.weighing.mixed_models`.
    """
    n_shared, n = len(dictionary.labellings), len(weights)
    parts = np.zeros((n, n_shared + 1, len(model_weights)))
    shares = np.column_stack([weights[:, 0], weights[:, 1:].reshape(n, 2, n_shared).sum(axis=1)])
    parts[np.arange(n), 0, np.arange(n)] = 1.0
    for index in range(n):
        for column, (labels, cluster) in enumerate(
            zip(dictionary.labellings, clusters_of[:, index], strict=True), 1
        ):
            positions, subset = average_of(labels == cluster, model_weights, losses[:, index], index)
            parts[index, column, positions] = subset
            if positions.tolist() == [index]:
                # Nobody else is of use there: the average is the learner's own model.
                shares[index, 0] += shares[index, column]
                shares[index, column] = 0.0
    return parts, shares


@dataclass(frozen=True)
class _ClassAverageMixtures:
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


def _site_rows(
    learners: Learners, own: OwnByFold, losses: AverageLosses, weights: Array, recipe: Recipe
) -> list[ClassSiteRows]:
    """Return each learner's rows as a site's, with everybody's predictions on them."""
    by_row, loss = RowLosses(losses), learners.loss
    jobs = [_ClassPredictJob(model, learners.X, loss) for model in losses.selection.models]
    table, bounds = np.array(recipe.engine.map(_predict, jobs)), own_bounds_of(loss, learners.sizes)
    return [
        ClassSiteRows(
            X=learners.X[span],
            y=learners.y[span],
            folds=own.folds.held_out[span],
            n_folds=len(own.folds),
            own_predictions=own.predictions[span],
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
) -> _ClassAverageMixtures:
    """Mix own models and averages of models, for learners whose losses are finite."""
    weights = model_weights(learners.sizes, selection.noise, exchange)
    losses = AverageLosses.of_all(learners, selection, exchange, recipe.engine)
    counts = resolution_counts(len(learners), int(labels.max()) + 1)
    result = average_labels(exchange, losses, learners.sizes, recipe.seed, recipe.rounds)
    result |= {int(labels.max()) + 1: labels}
    labellings = (*(result[count] for count in counts), np.zeros_like(labels))
    sites = _site_rows(learners, own, losses, weights, recipe)
    units = slope_units(np.array([site.X.std(axis=0) for site in sites]))
    ratios = agree_on_ratios(np.array([site.likelihoods(labellings, units) for site in sites]))
    dictionary = AverageDictionary(labellings, units, ratios)
    grams, rows = zip(*(site.grams(dictionary) for site in sites), strict=True)
    agreed = agree_on_class_weights(np.array(grams), np.array(rows))
    clusters_of = np.array([best_clusters(losses, each) for each in labellings])
    all_learners = slice(0, len(learners))
    tile = exchange.source.tile(all_learners, all_learners)
    parts, shares = mixed_parts(dictionary, clusters_of, agreed.personal, weights, tile)
    own_lines = [site.own_lines(dictionary) for site in sites]
    return _ClassAverageMixtures(
        counts,
        dictionary,
        parts,
        agreed.personal,
        np.array([each.lines for each in own_lines]),
        np.array([each.limits for each in own_lines]),
        shares,
        agreed.shrinkage,
        [site.residuals(dictionary, agreed.held_out[:, j]) for j, site in enumerate(sites)],
        [np.stack([site.average(each) for each in labellings], axis=1) for site in sites],
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
    finite = np.flatnonzero(~exchange.isolated)
    inside, chosen, known = learners.take(finite), selection.take(finite), exchange.take(finite)
    finite_labels = tidy_labels(labels[finite])
    mixed = _mix(inside, chosen, known, finite_labels, own_of_finite(own, learners, finite), recipe)
    n_finite_clusters, n_shared = int(finite_labels.max()) + 1, len(mixed.dictionary.labellings)
    # Where everybody stands alone, a cluster shares nothing.
    joined = None if n_finite_clusters == len(finite) else (*mixed.counts, 1).index(n_finite_clusters)
    n_rows = n + n_clusters + 1
    parts, part_shares = np.zeros((n_rows, n_shared + 1, n)), np.zeros((n_rows, 2 * n_shared + 1))
    lines = np.zeros((n_rows, *mixed.lines.shape[1:]))
    limits, shares = np.zeros((n_rows, *mixed.limits.shape[1:])), np.zeros((n, n_shared + 1))
    parts[np.arange(n), 0, np.arange(n)], part_shares[:n, 0], shares[:, 0] = 1.0, 1.0, 1.0
    parts[np.ix_(finite, np.arange(n_shared + 1), finite)] = mixed.parts
    part_shares[finite], lines[finite], limits[finite] = mixed.part_shares, mixed.lines, mixed.limits
    shares[finite] = mixed.shares
    spans = [learners.span(j) for j in range(n)]
    residuals = [learners.y[span] - own.predictions[span] for span in spans]
    plain, of_all = residuals.copy(), residuals.copy()
    for index, j in enumerate(finite.tolist()):
        y, averages = learners.y[spans[j]], mixed.averages[index]
        residuals[j], of_all[j] = mixed.residuals[index], y - averages[:, -1]
        if joined is not None:
            plain[j] = y - averages[:, joined]
    in_averages = np.zeros(n)
    in_averages[finite] = model_weights(inside.sizes, chosen.noise, known)
    for k in range(n_clusters + 1):
        # Whose model is in no average predicts by itself who joins it.
        members = (labels == k) | (k == n_clusters)
        in_average = members & (in_averages > 0)
        model_shares = np.where(in_average, in_averages, 0.0) if in_average.any() else members.astype(float)
        parts[n + k, 1], part_shares[n + k, 1] = model_shares / model_shares.sum(), 1.0
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
        all_residuals=tuple(of_all),
        all_row=n + n_clusters,
        share_names=share_names(mixed.counts),
        shares=shares,
        shrinkage=mixed.shrinkage,
        ratios=np.zeros(2) if joined is None else mixed.dictionary.ratios[1, joined],
        units=mixed.dictionary.units,
    )
