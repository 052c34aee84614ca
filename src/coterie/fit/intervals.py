"""Prediction intervals of a fit, or sets of labels: from which honest residuals, and who joins or leaves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie.collaboration.classes import NestedClassResult
from coterie.collaboration.nested import NestedForm, NestedResult
from coterie.collaboration.nested.folds import random_folds
from coterie.fit.record import Fit
from coterie.records import Collaboration, OwnResiduals, Selection, share_of_rows
from coterie.rows.ids import positions_of
from coterie.rows.learners import Learners, joined_learners
from coterie.verdicts import Admission, LabelSets
from coterie.verdicts.intervals import Intervals, measure_intervals
from coterie.verdicts.label_sets import measure_label_sets, missed_chances
from coterie.verdicts.spread import Residuals
from coterie.verdicts.verdict import STAY_ALONE

# Folds of newcomers' rows: each is predicted by the newcomer as the other rows describe it.
FOLDS = 4


def narrowing(selection: Selection, own: OwnResiduals) -> float:
    """Return the residuals of final models as a share of those out of fold, which saw fewer rows.

    Own models tell how residuals shrink as rows are added: they were fitted on half of the rows in Select,
    and on more in the folds of Collaborate. Residuals are taken to fall by a power of the number of rows.
    """
    fewer, more = share_of_rows(selection), own.share
    sizes = [
        np.array([np.nanmean(np.abs(part)) if np.isfinite(part).any() else np.nan for part in parts])
        for parts in (selection.residuals, own.residuals)
    ]
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(sizes[0] / sizes[1])
    logs = logs[np.isfinite(logs)]
    if more <= fewer or not len(logs):
        return 1.0
    slope = max(float(np.median(logs)), 0.0) / np.log(more / fewer)
    return float(more**slope)


def _stays_alone(fit: Fit, ids: Array) -> Array:
    """Tell which learners predict with their own models."""
    stays: Array = fit.gains.of(ids.tolist())["verdict"] == STAY_ALONE
    return stays


def measured_intervals(fit: Fit, nested: NestedResult | NestedClassResult | None) -> Intervals | LabelSets:
    """Return what intervals, or sets of labels, are made from.

    These are the residuals of those who shape clusters, and of pooled few rows.
    """
    learners = fit.learners
    coterie, with_all = (record.aligned_to(learners.ids) for record in (fit.collaboration, fit.with_all))
    own_models = fit.own.aligned_to(learners.ids)
    clusters = fit.partition.aligned_to(learners.ids).labels
    pairs = zip(_stays_alone(fit, learners.ids), own_models.residuals, coterie.residuals, strict=True)
    residuals, shared = [own if stays else mixed for stays, own, mixed in pairs], list(with_all.residuals)
    n_shaping = len(learners)
    if nested is not None and fit.few is not None and nested.few_residuals:
        learners = joined_learners(learners, fit.few)
        assert fit.admission is not None, "learners with few rows were placed"
        clusters = np.r_[clusters, fit.admission.aligned_to(fit.few.ids).nearest]
        residuals += nested.few_residuals
        shared += nested.few_all_residuals
    if learners.loss.bounds is not None:
        return measure_label_sets(learners, clusters, residuals, shared)
    # Own models tell nothing of those that have none.
    narrowed = np.ones(len(learners))
    narrowed[:n_shaping] = narrowing(fit.selection, fit.own)
    return measure_intervals(
        learners.ids,
        clusters,
        [part[:, 0] for part in residuals],
        [part[:, 0] for part in shared],
        learners.X,
        learners.scalar_y,
        learners.weights,
        narrowed=narrowed,
        seed=fit.seed,
    )


def _held_out(newcomers: Learners, nearest: Array, collaboration: NestedForm, seed: int) -> Array:
    """Return residuals (N, C) of newcomers, each described by its other rows; NaN where it has none."""
    residuals, several = np.full_like(newcomers.y, np.nan), np.flatnonzero(newcomers.sizes > 1)
    if not len(several):
        return residuals
    subset, clusters = newcomers.take(several), nearest[several]
    indices = np.flatnonzero(np.isin(newcomers.owner, several))
    folds = random_folds(subset, FOLDS, seed)
    for training in folds.training:
        described, weight_rows = collaboration.with_newcomers(subset.only(training), clusters)
        predicted = described.predict_columns(subset.X[~training], weight_rows[subset.owner[~training]])
        residuals[indices[~training]] = subset.y[~training] - predicted
    return residuals


def newcomer_residuals(
    newcomers: Learners,
    placed: Admission,
    own: Selection | None,
    collaboration: Collaboration,
    verdicts: Array,
    seed: int,
) -> Residuals:
    """Return honest residuals of newcomers under what they will predict with, as their verdicts (M,) have it.

    ``collaboration`` is that before they joined. Where responses are classes, the values are the scores
    behind sets of labels.
    """
    if isinstance(collaboration, NestedForm):
        residuals_of = _held_out(newcomers, placed.nearest, collaboration, seed)
    else:
        weight_rows = collaboration.newcomer_weight_rows[placed.nearest][newcomers.owner]
        residuals_of = newcomers.y - collaboration.predict_columns(newcomers.X, weight_rows)
    for j in np.flatnonzero(verdicts == STAY_ALONE).tolist():
        assert own is not None, "only a learner with a model of its own can stay alone"
        residuals_of[newcomers.span(j)] = own.residuals[j]
    known, loss = np.isfinite(residuals_of).all(axis=1), newcomers.loss
    y, residuals_of, X = newcomers.y[known], residuals_of[known], newcomers.X[known]
    if loss.bounds is not None:
        values, features = missed_chances(y, residuals_of, loss), X
    else:
        values = residuals_of[:, 0]
        features = np.column_stack([X, y[:, 0] - values])
    weights = np.ones(len(newcomers.y)) if newcomers.weights is None else newcomers.weights
    return Residuals(values, newcomers.owner[known], placed.labels, features, weights[known])


def intervals_without(
    before: Fit, fit: Fit, nested: NestedResult | NestedClassResult | None, *, again: bool
) -> Fit:
    """Return a fit that some have left with its intervals; ``again`` says that models were fitted anew.

    The residuals of those who were placed late are kept: their rows are not.
    """
    if before.intervals is None:
        return fit
    there = [*fit.learners.ids.tolist(), *(new.learner_id for new in fit.newcomers)]
    if not again:
        kept: Any = before.intervals.take(positions_of(there, before.intervals.learner_ids.tolist()))
        return replace(fit, intervals=kept)
    measured: Any = measured_intervals(fit, nested)
    known = set(measured.learner_ids.tolist())
    late = positions_of([i for i in there if i not in known], before.intervals.learner_ids.tolist())
    if len(late):
        labels = dict(zip(fit.learner_ids.tolist(), fit.labels.tolist(), strict=True))
        others: Any = before.intervals.take(late)
        clusters = np.array([labels[learner] for learner in others.learner_ids.tolist()])
        measured = measured.beside(replace(others, clusters=clusters))
    return replace(fit, intervals=measured.take(positions_of(there, measured.learner_ids.tolist())))
