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
    """One fitted classifier and the rows X (N, p) that it predicts."""

    model: Any
    X: Array
    loss: Loss


def _predict(job: _ClassPredictJob) -> Array:
    """Return the probabilities (N, C) of a job's classifier; NaN where it fails."""
    return np.asarray(predict_rows(job.model, job.X, job.loss))


def own_bounds_of(loss: Loss, sizes: Array) -> Array:
    """Return the lowest and highest probability, (L, 2), allowed to classifiers of ``sizes`` (L,) rows."""
    return np.array([loss.own_bounds(int(n_rows)) for n_rows in sizes])


def agree_on_class_weights(grams: Array, counts: Array) -> LearntWeights:
    """Learn weights of predictors from their Gram matrices by learner and fold, (L, F, K, K).

    Unlike responses in numbers, probabilities have the same unit for all learners, so nothing is divided.
    """
    return agree_on_weights(grams, counts, np.ones(len(grams)))


def mixed_parts(
    dictionary: AverageDictionary, clusters_of: Array, weights: Array, model_weights: Array, losses: Array
) -> tuple[Array, Array]:
    """Return the weights of models in each learner's predictors, (L, E + 1, M), and their shares, (L, E + 1).

    The first predictor is the learner's own model, the others are the E averages of models in the dictionary.
    ``clusters_of`` (E, L) is the cluster whose average each learner takes, ``weights`` (L, 2 E + 1) what it
    weighs the predictors by. ``model_weights`` (M,) are those of models in averages, ``losses`` (M, L) those
    of models on learners. Parts are kept apart, as averages are moved in log-odds before they are mixed.
    """
    n_averages, n_learners = len(dictionary.labellings), len(weights)
    parts = np.zeros((n_learners, n_averages + 1, len(model_weights)))
    shares = np.column_stack([weights[:, 0], weights[:, 1:].reshape(n_learners, 2, n_averages).sum(axis=1)])
    parts[np.arange(n_learners), 0, np.arange(n_learners)] = 1.0
    for learner in range(n_learners):
        for column, (labels, cluster) in enumerate(
            zip(dictionary.labellings, clusters_of[:, learner], strict=True), 1
        ):
            positions, weights_in_average = average_of(
                labels == cluster, model_weights, losses[:, learner], learner
            )
            parts[learner, column, positions] = weights_in_average
            if positions.tolist() == [learner]:
                # Nobody else is of use there: the average is the learner's own model.
                shares[learner, 0] += shares[learner, column]
                shares[learner, column] = 0.0
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
    """Return each learner's rows, prepared to answer as a site that keeps its rows would.

    ``weights`` (L,) are what models weigh in averages; ``own`` has out-of-fold probabilities of the same
    rows. Both worlds thus run the same arithmetic, and give the same answer.
    """
    row_losses, loss = RowLosses(losses), learners.loss
    jobs = [_ClassPredictJob(model, learners.X, loss) for model in losses.selection.models]
    predictions_of_models, bounds = (
        np.array(recipe.engine.map(_predict, jobs)),
        own_bounds_of(loss, learners.sizes),
    )
    return [
        ClassSiteRows(
            X=learners.X[span],
            y=learners.y[span],
            folds=own.folds.held_out[span],
            n_folds=len(own.folds),
            own_predictions=own.predictions[span],
            table=predictions_of_models[:, span],
            bounds=bounds,
            model_weights=weights,
            place=position,
            losses=partial(row_losses.of, span=span),
            loss=loss,
            weights=None if learners.weights is None else learners.weights[span],
        )
        for position, span in enumerate(map(learners.span, range(len(learners))))
    ]


def _mix(
    learners: Learners,
    selection: Selection,
    exchange: Exchange,
    labels: Array,
    own: OwnByFold,
    recipe: Recipe,
) -> _ClassAverageMixtures:
    """Learn how each learner mixes its own classifier with averages of classifiers, at several resolutions.

    A resolution is a number of clusters: averages over few or many learners. ``labels`` (L,) are the chosen
    clusters. Learners answer with Gram matrices of out-of-fold residuals, never with rows. All losses in
    ``exchange`` (everybody's models on everybody's rows) are finite.
    """
    weights_of_models = model_weights(learners.sizes, selection.noise, exchange)
    losses = AverageLosses.of_all(learners, selection, exchange, recipe.engine)
    counts = resolution_counts(len(learners), int(labels.max()) + 1)
    labels_by_count = average_labels(exchange, losses, learners.sizes, recipe.seed, recipe.rounds)
    # The clusters that were chosen stand for their number; last comes the average of everybody's models.
    labels_by_count |= {int(labels.max()) + 1: labels}
    labellings = (*(labels_by_count[count] for count in counts), np.zeros_like(labels))
    sites = _site_rows(learners, own, losses, weights_of_models, recipe)
    units = slope_units(np.array([site.X.std(axis=0) for site in sites]))
    ratios = agree_on_ratios(np.array([site.likelihoods(labellings, units) for site in sites]))
    dictionary = AverageDictionary(labellings, units, ratios)
    grams, row_counts = zip(*(site.grams(dictionary) for site in sites), strict=True)
    learnt = agree_on_class_weights(np.array(grams), np.array(row_counts))
    clusters_of = np.array([best_clusters(losses, labelling) for labelling in labellings])
    all_learners = slice(0, len(learners))
    losses_on_learners = exchange.source.tile(all_learners, all_learners)
    parts, shares = mixed_parts(
        dictionary, clusters_of, learnt.personal, weights_of_models, losses_on_learners
    )
    own_lines = [site.own_lines(dictionary) for site in sites]
    return _ClassAverageMixtures(
        counts=counts,
        dictionary=dictionary,
        parts=parts,
        part_shares=learnt.personal,
        lines=np.array([site_lines.lines for site_lines in own_lines]),
        limits=np.array([site_lines.limits for site_lines in own_lines]),
        shares=shares,
        shrinkage=learnt.shrinkage,
        residuals=[
            site.residuals(dictionary, learnt.held_out[:, position]) for position, site in enumerate(sites)
        ],
        averages=[np.stack([site.average(labelling) for labelling in labellings], axis=1) for site in sites],
    )


def nest_class_averages(
    learners: Learners,
    selection: Selection,
    exchange: Exchange,
    labels: Array,
    own: OwnByFold,
    recipe: Recipe,
) -> ClassAverages:
    """Return how each learner mixes its own classifier with averages, and how newcomers predict.

    ``labels`` (L,) are the chosen clusters; no rows are pooled. ``selection`` has the models that learners
    chose by cross-validation, ``exchange`` everybody's losses on everybody's rows. A learner with losses that
    are not finite predicts alone: its row of weights has its own model only.
    """
    n_learners, n_clusters, loss = len(learners), int(labels.max()) + 1, learners.loss
    finite = np.flatnonzero(~exchange.isolated)
    finite_learners, finite_selection, finite_exchange = (
        learners.take(finite),
        selection.take(finite),
        exchange.take(finite),
    )
    finite_labels = tidy_labels(labels[finite])
    mixtures = _mix(
        finite_learners,
        finite_selection,
        finite_exchange,
        finite_labels,
        own_of_finite(own, learners, finite),
        recipe,
    )
    n_finite_clusters, n_averages = int(finite_labels.max()) + 1, len(mixtures.dictionary.labellings)
    # Where everybody stands alone, a cluster shares nothing.
    cluster_column = (
        None if n_finite_clusters == len(finite) else (*mixtures.counts, 1).index(n_finite_clusters)
    )
    # Rows of weights: the learners, the clusters (for newcomers), and last what all learners share.
    n_rows = n_learners + n_clusters + 1
    parts, part_shares = (
        np.zeros((n_rows, n_averages + 1, n_learners)),
        np.zeros((n_rows, 2 * n_averages + 1)),
    )
    lines = np.zeros((n_rows, *mixtures.lines.shape[1:]))
    limits, shares = np.zeros((n_rows, *mixtures.limits.shape[1:])), np.zeros((n_learners, n_averages + 1))
    # Everybody begins with its own model alone; what was mixed is written over that.
    parts[np.arange(n_learners), 0, np.arange(n_learners)], part_shares[:n_learners, 0], shares[:, 0] = (
        1.0,
        1.0,
        1.0,
    )
    parts[np.ix_(finite, np.arange(n_averages + 1), finite)] = mixtures.parts
    part_shares[finite], lines[finite], limits[finite] = mixtures.part_shares, mixtures.lines, mixtures.limits
    shares[finite] = mixtures.shares
    spans = [learners.span(j) for j in range(n_learners)]
    residuals = [learners.y[span] - own.predictions[span] for span in spans]
    plain_residuals, all_residuals = residuals.copy(), residuals.copy()
    for index, j in enumerate(finite.tolist()):
        y, averages = learners.y[spans[j]], mixtures.averages[index]
        residuals[j], all_residuals[j] = mixtures.residuals[index], y - averages[:, -1]
        if cluster_column is not None:
            plain_residuals[j] = y - averages[:, cluster_column]
    weights_in_averages = np.zeros(n_learners)
    weights_in_averages[finite] = model_weights(
        finite_learners.sizes, finite_selection.noise, finite_exchange
    )
    for cluster in range(n_clusters + 1):
        # Whose model is in no average predicts by itself who joins it.
        members = (labels == cluster) | (cluster == n_clusters)
        is_in_average = members & (weights_in_averages > 0)
        model_shares = (
            np.where(is_in_average, weights_in_averages, 0.0)
            if is_in_average.any()
            else members.astype(float)
        )
        parts[n_learners + cluster, 1], part_shares[n_learners + cluster, 1] = (
            model_shares / model_shares.sum(),
            1.0,
        )
    bounds = own_bounds_of(loss, selection.n_rows)
    return ClassAverages(
        learner_ids=learners.ids,
        method="auto",
        models=selection.models,
        names=selection.names,
        weights=ClassAverages.totals(parts, part_shares),
        weight_rows=np.arange(n_learners),
        newcomer_weight_rows=n_learners + np.arange(n_clusters),
        residuals=tuple(residuals),
        loss=loss,
        parts=parts,
        part_shares=part_shares,
        lines=lines,
        limits=limits,
        bounds=bounds,
        plausible=np.vstack([bounds, np.tile([0.0, 1.0], (n_clusters + 1, 1))]),
        plain_residuals=tuple(plain_residuals),
        all_residuals=tuple(all_residuals),
        all_row=n_learners + n_clusters,
        share_names=share_names(mixtures.counts),
        shares=shares,
        shrinkage=mixtures.shrinkage,
        ratios=np.zeros(2) if cluster_column is None else mixtures.dictionary.ratios[1, cluster_column],
        units=mixtures.dictionary.units,
    )
