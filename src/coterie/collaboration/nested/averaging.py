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
    model: Any
    X: Array


def _predict(job: _PredictJob) -> Array:
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
        result: Array = self._known[key][:, span]
        return result


def _site_rows(
    learners: Learners, own: OwnByFold, losses: AverageLosses, bounds: Array, weights: Array, recipe: Recipe
) -> list[SiteRows]:
    """Return each learner's rows as a site's; ``own`` is of the same rows."""
    by_row = RowLosses(losses)
    jobs = [_PredictJob(model, learners.X) for model in losses.selection.models]
    with np.errstate(over="ignore", invalid="ignore"):
        table = np.array(recipe.engine.map(_predict, jobs))
    sites = []
    for j in range(len(learners)):
        span = learners.span(j)
        sites.append(
            SiteRows(
                X=learners.X[span],
                y=learners.scalar_y[span],
                folds=own.folds.held_out[span],
                n_folds=len(own.folds),
                own_predictions=own.predictions[span, 0],
                table=table[:, span],
                bounds=bounds,
                model_weights=weights,
                place=j,
                losses=partial(by_row.of, span=span),
                noise=float(losses.noise[j]),
                weights=None if learners.weights is None else learners.weights[span],
            )
        )
    return sites


@dataclass(frozen=True)
class _AverageMixtures:
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
) -> _AverageMixtures:
    """Mix own models and averages of models, for learners whose losses are finite."""
    weights = model_weights(learners.sizes, selection.noise, exchange)
    losses = AverageLosses.of_all(learners, selection, exchange, recipe.engine)
    counts = resolution_counts(len(learners), int(labels.max()) + 1)
    result = average_labels(exchange, losses, learners.sizes, recipe.seed, recipe.rounds)
    result |= {int(labels.max()) + 1: labels}
    labellings = (*(result[count] for count in counts), np.zeros_like(labels))
    sites = _site_rows(learners, own, losses, bounds, weights, recipe)
    units = slope_units(np.array([site.X.std(axis=0) for site in sites]))
    ratios = agree_on_ratios(np.array([site.likelihoods(labellings, units) for site in sites]))
    dictionary = AverageDictionary(labellings, units, ratios)
    grams, rows = zip(*(site.grams(dictionary) for site in sites), strict=True)
    means = np.array([site.y.mean() for site in sites])
    variances = np.array([site.y.var() for site in sites])
    agreed = agree_on_weights(
        np.array(grams), np.array(rows), response_units(learners.sizes, means, variances)
    )
    clusters_of = np.array([best_clusters(losses, each) for each in labellings])
    all_learners = slice(0, len(learners))
    tile = exchange.source.tile(all_learners, all_learners)
    models, shares = mixed_models(dictionary, clusters_of, agreed.personal, weights, tile)
    own_lines = [site.correction(dictionary, agreed.personal[j]) for j, site in enumerate(sites)]
    return _AverageMixtures(
        counts,
        dictionary,
        models,
        shares,
        np.array([line for line, _ in own_lines]),
        np.array([limits for _, limits in own_lines]),
        [site.residuals(dictionary, agreed.held_out[:, j]) for j, site in enumerate(sites)],
        [np.column_stack([site.average(each) for each in labellings]) for site in sites],
        agreed.shrinkage,
    )


def own_of_finite(own: OwnByFold, learners: Learners, finite: Array) -> OwnByFold:
    """Return the own models' predictions and folds of the learners that are kept."""
    rows = np.isin(learners.owner, finite)
    folds = replace(own.folds, held_out=own.folds.held_out[rows], training=own.folds.training[:, rows])
    return replace(own, folds=folds, predictions=own.predictions[rows], bounds=own.bounds[finite])


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
    finite = np.flatnonzero(~exchange.isolated)
    ys = [learners.scalar_y[learners.span(j)] for j in range(n)]
    bounds = model_bounds(np.array([y.mean() for y in ys]), np.array([y.var() for y in ys]))
    inside, chosen = learners.take(finite), selection.take(finite)
    finite_labels = tidy_labels(labels[finite])
    mixtures = _mix(
        inside,
        chosen,
        exchange.take(finite),
        finite_labels,
        own_of_finite(own, learners, finite),
        bounds[finite],
        recipe,
    )
    counts, dictionary = mixtures.counts, mixtures.dictionary
    n_finite_clusters = int(finite_labels.max()) + 1
    # Where everybody stands alone, a cluster shares nothing.
    joined = None if n_finite_clusters == len(finite) else (*counts, 1).index(n_finite_clusters)
    weights, shares = np.eye(n), np.zeros((n, len(counts) + 2))
    shares[:, 0] = 1.0
    weights[np.ix_(finite, finite)], shares[finite] = mixtures.weights, mixtures.shares
    corrections, limits = np.zeros((n, n_features + 1)), np.zeros((n, 2))
    corrections[finite], limits[finite] = mixtures.corrections, mixtures.limits
    plausible = np.tile([-np.inf, np.inf], (n + n_clusters + 1, 1))
    plausible[finite] = shared_ranges(own.bounds[finite], finite_labels)
    own_predictions = [own.predictions[learners.span(j), 0] for j in range(n)]
    residuals = [y - prediction for y, prediction in zip(ys, own_predictions, strict=True)]
    plain, of_all = residuals.copy(), residuals.copy()
    for index, j in enumerate(finite.tolist()):
        averages = mixtures.averages[index]
        residuals[j] = mixtures.residuals[index]
        of_all[j] = ys[j] - averages[:, -1]
        if joined is not None:
            plain[j] = ys[j] - averages[:, joined]
    in_averages = np.zeros(n)
    in_averages[finite] = model_weights(inside.sizes, chosen.noise, exchange.take(finite))
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
        residuals=tuple(part[:, None] for part in residuals),
        bounds=bounds,
        corrections=np.vstack([corrections, np.zeros((n_clusters + 1, n_features + 1))]),
        correction_bounds=np.vstack([limits, np.zeros((n_clusters + 1, 2))]),
        limits=np.tile([[-np.inf], [np.inf]], (1, n_features)),
        plausible=plausible,
        form="average",
        plain_residuals=tuple(part[:, None] for part in plain),
        all_residuals=tuple(part[:, None] for part in of_all),
        all_row=n + n_clusters,
        share_names=share_names(counts),
        shares=shares,
        shrinkage=mixtures.shrinkage,
        n_fits=0,
        context=np.zeros((n + n_clusters + 1, 0)),
        mask=np.zeros((n, 0), dtype=bool),
        newcomers=AverageNewcomers(
            np.zeros(2) if joined is None else dictionary.ratios[1, joined],
            dictionary.units,
            float(np.median(selection.noise)),
        ),
    )
