"""Nested coteries where rows may not move: the shared predictors are averages of the learners' models.

Rows that are here answer as sites elsewhere would by messages, one learner at a time; see `site_rows`. A
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
from coterie.collaboration.nested.record import AverageNewcomers, NestedCollaboration
from coterie.collaboration.nested.resolutions import Recipe, average_labels, resolution_counts, share_names
from coterie.collaboration.nested.site_rows import AverageDictionary, SiteRows
from coterie.collaboration.nested.weighing import (
    agree_on_ratios,
    agree_on_weights,
    best_clusters,
    mixed_models,
    response_units,
)
from coterie.kernels.losses import predict_rows
from coterie.method.refine.averages import AverageLosses, model_weights
from coterie.method.spectral import tidy_labels
from coterie.records import Exchange, Selection
from coterie.rows.learners import Learners


@dataclass(frozen=True)
class _PredictJob:
    """One fitted model and the rows X (N, p) that it predicts."""

    model: Any
    X: Array


def _predict(job: _PredictJob) -> Array:
    """Return the predictions (N,) of a job's model; NaN where it fails."""
    return np.asarray(predict_rows(job.model, job.X)[:, 0])


class RowLosses:
    """Losses of single rows under averages of models, in the order of the rows; each labelling is cached."""

    def __init__(self, losses: AverageLosses) -> None:
        self._losses, self._row_positions = losses, np.argsort(losses.order)
        self._losses_by_labelling: dict[bytes, Array] = {}

    def of(self, labels: Array, span: slice) -> Array:
        """Return the losses (K, n) of one learner's rows under the average of each of K clusters.

        ``labels`` (L,) are the clusters and ``span`` the positions of the learner's rows. The losses of all
        rows are kept for each labelling, as every learner wants its own.
        """
        labels_key = labels.tobytes()
        if labels_key not in self._losses_by_labelling:
            self._losses_by_labelling[labels_key] = self._losses.by_row(labels)[:, self._row_positions]
        losses_of_span: Array = self._losses_by_labelling[labels_key][:, span]
        return losses_of_span


def _site_rows(
    learners: Learners,
    own: OwnByFold,
    losses: AverageLosses,
    bounds: Array,
    weights_of_models: Array,
    recipe: Recipe,
) -> list[SiteRows]:
    """Return each learner's rows, prepared to answer as a site that keeps its rows would.

    ``bounds`` (L, 2) are the limits of each model's predictions and ``weights_of_models`` (L,) what each
    model weighs in averages. ``own`` has out-of-fold predictions of the same rows.
    """
    row_losses = RowLosses(losses)
    jobs = [_PredictJob(model, learners.X) for model in losses.selection.models]
    with np.errstate(over="ignore", invalid="ignore"):
        predictions_of_models = np.array(recipe.engine.map(_predict, jobs))
    sites = []
    for position in range(len(learners)):
        span = learners.span(position)
        sites.append(
            SiteRows(
                X=learners.X[span],
                y=learners.scalar_y[span],
                folds=own.folds.held_out[span],
                n_folds=len(own.folds),
                own_predictions=own.predictions[span, 0],
                table=predictions_of_models[:, span],
                bounds=bounds,
                model_weights=weights_of_models,
                place=position,
                losses=partial(row_losses.of, span=span),
                noise=float(losses.noise[position]),
                weights=None if learners.weights is None else learners.weights[span],
            )
        )
    return sites


@dataclass(frozen=True)
class _AverageMixtures:
    """How M learners predict with averages of their models, and the residuals of that.

    ``weights`` (M, M) are those of models, ``shares`` (M, E + 1) those of the own model and E averages.
    ``corrections`` (M, p + 1) are own lines, and ``limits`` (M, 2) what their values are clipped to.
    ``residuals`` and ``averages`` are out of fold, one array for each learner.
    """

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
) -> _AverageMixtures:
    """Learn how each learner mixes its own model with averages of models, at several resolutions.

    ``labels`` (L,) are the chosen clusters and ``bounds`` (L, 2) the limits of each model's predictions.
    Learners answer with Gram matrices of out-of-fold residuals, never with rows. All losses in
    ``exchange`` are finite.
    """
    weights_of_models = model_weights(learners.sizes, selection.noise, exchange)
    losses = AverageLosses.of_all(learners, selection, exchange, recipe.engine)
    counts = resolution_counts(len(learners), int(labels.max()) + 1)
    labels_by_count = average_labels(exchange, losses, learners.sizes, recipe.seed, recipe.rounds)
    labels_by_count |= {int(labels.max()) + 1: labels}
    labellings = (*(labels_by_count[count] for count in counts), np.zeros_like(labels))
    sites = _site_rows(learners, own, losses, bounds, weights_of_models, recipe)
    units = slope_units(np.array([site.X.std(axis=0) for site in sites]))
    ratios = agree_on_ratios(np.array([site.likelihoods(labellings, units) for site in sites]))
    dictionary = AverageDictionary(labellings, units, ratios)
    grams, row_counts = zip(*(site.grams(dictionary) for site in sites), strict=True)
    means = np.array([site.y.mean() for site in sites])
    variances = np.array([site.y.var() for site in sites])
    learnt = agree_on_weights(
        np.array(grams), np.array(row_counts), response_units(learners.sizes, means, variances)
    )
    clusters_of = np.array(
        [best_clusters(losses, labels_of_resolution) for labels_of_resolution in labellings]
    )
    all_learners = slice(0, len(learners))
    losses_on_learners = exchange.source.tile(all_learners, all_learners)
    weights_of_mixtures, shares = mixed_models(
        dictionary, clusters_of, learnt.personal, weights_of_models, losses_on_learners
    )
    line_and_bounds = [
        site.correction(dictionary, learnt.personal[position]) for position, site in enumerate(sites)
    ]
    return _AverageMixtures(
        counts=counts,
        dictionary=dictionary,
        weights=weights_of_mixtures,
        shares=shares,
        corrections=np.array([line for line, _ in line_and_bounds]),
        limits=np.array([limits for _, limits in line_and_bounds]),
        residuals=[
            site.residuals(dictionary, learnt.held_out[:, position]) for position, site in enumerate(sites)
        ],
        averages=[
            np.column_stack([site.average(labels_of_resolution) for labels_of_resolution in labellings])
            for site in sites
        ],
        shrinkage=learnt.shrinkage,
    )


def own_of_finite(own: OwnByFold, learners: Learners, finite: Array) -> OwnByFold:
    """Return the own models' predictions and folds, of the learners at the positions ``finite`` only."""
    is_kept_row = np.isin(learners.owner, finite)
    folds = replace(
        own.folds, held_out=own.folds.held_out[is_kept_row], training=own.folds.training[:, is_kept_row]
    )
    return replace(own, folds=folds, predictions=own.predictions[is_kept_row], bounds=own.bounds[finite])


def shared_ranges(bounds: Array, labels: Array) -> Array:
    """Return the range (L, 2) to which each learner's predictions with others are clipped.

    It spans the ranges ``bounds`` (L, 2) of all members of its cluster. Without it, others' models may
    predict anything for rows that are unlike all that they were fitted on.
    """
    in_same_cluster = labels[:, None] == labels
    lowest = np.where(in_same_cluster, bounds[:, 0], np.inf).min(axis=1, initial=np.inf)
    highest = np.where(in_same_cluster, bounds[:, 1], -np.inf).max(axis=1, initial=-np.inf)
    return np.column_stack([lowest, highest])


def nest_averages(
    learners: Learners,
    selection: Selection,
    exchange: Exchange,
    labels: Array,
    own: OwnByFold,
    recipe: Recipe,
) -> NestedCollaboration:
    """Return how each learner mixes its own model with averages of models, and how newcomers predict.

    ``labels`` (L,) are the chosen clusters; no rows are pooled. A learner with losses that are not finite
    predicts alone.
    """
    n_learners, n_clusters, n_features = len(learners), int(labels.max()) + 1, learners.n_features
    finite = np.flatnonzero(~exchange.isolated)
    responses = [learners.scalar_y[learners.span(j)] for j in range(n_learners)]
    bounds = model_bounds(np.array([y.mean() for y in responses]), np.array([y.var() for y in responses]))
    finite_learners, finite_selection = learners.take(finite), selection.take(finite)
    finite_labels = tidy_labels(labels[finite])
    mixtures = _mix(
        finite_learners,
        finite_selection,
        exchange.take(finite),
        finite_labels,
        own_of_finite(own, learners, finite),
        bounds[finite],
        recipe,
    )
    counts, dictionary = mixtures.counts, mixtures.dictionary
    n_finite_clusters = int(finite_labels.max()) + 1
    # The column of the chosen clusters' averages; None where each cluster has one member: nothing is shared.
    cluster_column = None if n_finite_clusters == len(finite) else (*counts, 1).index(n_finite_clusters)
    weights, shares = np.eye(n_learners), np.zeros((n_learners, len(counts) + 2))
    shares[:, 0] = 1.0
    weights[np.ix_(finite, finite)], shares[finite] = mixtures.weights, mixtures.shares
    corrections, correction_bounds = np.zeros((n_learners, n_features + 1)), np.zeros((n_learners, 2))
    corrections[finite], correction_bounds[finite] = mixtures.corrections, mixtures.limits
    plausible = np.tile([-np.inf, np.inf], (n_learners + n_clusters + 1, 1))
    plausible[finite] = shared_ranges(own.bounds[finite], finite_labels)
    own_predictions = [own.predictions[learners.span(j), 0] for j in range(n_learners)]
    residuals = [y - prediction for y, prediction in zip(responses, own_predictions, strict=True)]
    plain_residuals, all_residuals = residuals.copy(), residuals.copy()
    for index, j in enumerate(finite.tolist()):
        averages = mixtures.averages[index]
        residuals[j] = mixtures.residuals[index]
        all_residuals[j] = responses[j] - averages[:, -1]
        if cluster_column is not None:
            plain_residuals[j] = responses[j] - averages[:, cluster_column]
    weights_in_averages = np.zeros(n_learners)
    weights_in_averages[finite] = model_weights(
        finite_learners.sizes, finite_selection.noise, exchange.take(finite)
    )
    newcomer_weights = np.zeros((n_clusters + 1, n_learners))
    for cluster in range(n_clusters):
        members = labels == cluster
        # Whose model is in no average predicts by itself who joins it.
        newcomer_weights[cluster] = np.where(
            members, weights_in_averages if (members & (weights_in_averages > 0)).any() else 1.0, 0.0
        )
    newcomer_weights[-1] = weights_in_averages
    newcomer_weights /= newcomer_weights.sum(axis=1, keepdims=True)
    return NestedCollaboration(
        learner_ids=learners.ids,
        method="auto",
        models=selection.models,
        names=selection.names,
        weights=np.vstack([weights, newcomer_weights]),
        weight_rows=np.arange(n_learners),
        newcomer_weight_rows=n_learners + np.arange(n_clusters),
        residuals=tuple(residuals_of_learner[:, None] for residuals_of_learner in residuals),
        bounds=bounds,
        corrections=np.vstack([corrections, np.zeros((n_clusters + 1, n_features + 1))]),
        correction_bounds=np.vstack([correction_bounds, np.zeros((n_clusters + 1, 2))]),
        limits=np.tile([[-np.inf], [np.inf]], (1, n_features)),
        plausible=plausible,
        form="average",
        plain_residuals=tuple(residuals_of_learner[:, None] for residuals_of_learner in plain_residuals),
        all_residuals=tuple(residuals_of_learner[:, None] for residuals_of_learner in all_residuals),
        all_row=n_learners + n_clusters,
        share_names=share_names(counts),
        shares=shares,
        shrinkage=mixtures.shrinkage,
        n_fits=0,
        context=np.zeros((n_learners + n_clusters + 1, 0)),
        mask=np.zeros((n_learners, 0), dtype=bool),
        newcomers=AverageNewcomers(
            ratios=np.zeros(2) if cluster_column is None else dictionary.ratios[1, cluster_column],
            units=dictionary.units,
            noise=float(np.median(selection.noise)),
        ),
    )
