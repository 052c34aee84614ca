"""Intervals or sets of labels of a fit: from which out-of-fold residuals, and who joins or leaves."""

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
N_FOLDS = 4


def narrowing(selection: Selection, own: OwnResiduals) -> float:
    """Return the residuals of final models as a share of those out of fold, which saw fewer rows.

    Own models tell how residuals shrink as rows are added: they were fitted on half of the rows in Select,
    and on more in the folds of Collaborate. Residuals are taken to fall by a power of the number of rows. The
    answer is at most one, and one where the two shares show no difference.
    """
    smaller_share, larger_share = share_of_rows(selection), own.share
    # Mean absolute residuals (L,) at the smaller and at the larger share.
    sizes_at_smaller, sizes_at_larger = (
        np.array([np.nanmean(np.abs(part)) if np.isfinite(part).any() else np.nan for part in residuals])
        for residuals in (selection.residuals, own.residuals)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        log_ratios = np.log(sizes_at_smaller / sizes_at_larger)
    log_ratios = log_ratios[np.isfinite(log_ratios)]
    if larger_share <= smaller_share or not len(log_ratios):
        return 1.0
    exponent = max(float(np.median(log_ratios)), 0.0) / np.log(larger_share / smaller_share)
    return float(larger_share**exponent)


def _stays_alone(fit: Fit, ids: Array) -> Array:
    """Tell which of the learners ``ids`` (L,) predict with their own models, by their verdicts."""
    stays: Array = fit.gains.of(ids.tolist())["verdict"] == STAY_ALONE
    return stays


def measured_intervals(fit: Fit, nested: NestedResult | NestedClassResult | None) -> Intervals | LabelSets:
    """Return the record behind prediction intervals, or behind sets of labels where responses are classes.

    It holds out-of-fold residuals of the learners that shape clusters, with what each of them predicts by:
    its own model or others. Learners whose few rows were pooled (``nested`` has their residuals) are behind.
    """
    learners = fit.learners
    coterie, with_all = (record.aligned_to(learners.ids) for record in (fit.collaboration, fit.with_all))
    own_models = fit.own.aligned_to(learners.ids)
    clusters = fit.partition.aligned_to(learners.ids).labels
    triples = zip(_stays_alone(fit, learners.ids), own_models.residuals, coterie.residuals, strict=True)
    residuals, shared = (
        [alone if stays_alone else with_others for stays_alone, alone, with_others in triples],
        list(with_all.residuals),
    )
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
        learner_ids=learners.ids,
        clusters=clusters,
        residuals=[part[:, 0] for part in residuals],
        shared=[part[:, 0] for part in shared],
        X=learners.X,
        y=learners.scalar_y,
        weights=learners.weights,
        narrowed=narrowed,
        seed=fit.seed,
    )


def _held_out(newcomers: Learners, nearest: Array, collaboration: NestedForm, seed: int) -> Array:
    """Return out-of-fold residuals (N, C) of newcomers' rows; NaN for a newcomer with a single row.

    A nested collaboration weighs its models by the newcomer's own rows. Each row is predicted with weights
    that were found without its fold. ``nearest`` (M,) are the newcomers' clusters.
    """
    residuals, with_several_rows = np.full_like(newcomers.y, np.nan), np.flatnonzero(newcomers.sizes > 1)
    if not len(with_several_rows):
        return residuals
    subset, clusters = newcomers.take(with_several_rows), nearest[with_several_rows]
    rows_of_subset = np.flatnonzero(np.isin(newcomers.owner, with_several_rows))
    folds = random_folds(subset, N_FOLDS, seed)
    for training in folds.training:
        weighted, weight_rows = collaboration.with_newcomers(subset.only(training), clusters)
        predicted = weighted.predict_columns(subset.X[~training], weight_rows[subset.owner[~training]])
        residuals[rows_of_subset[~training]] = subset.y[~training] - predicted
    return residuals


def newcomer_residuals(
    newcomers: Learners,
    placed: Admission,
    own: Selection | None,
    collaboration: Collaboration,
    verdicts: Array,
    seed: int,
) -> Residuals:
    """Return out-of-fold residuals of M newcomers under what they will predict with, by their verdicts (M,).

    That is the own model for those who stay alone, and the ``collaboration``, as it was before they joined,
    for the others. Where responses are classes, the values are the scores behind sets of labels.
    """
    if isinstance(collaboration, NestedForm):
        residuals = _held_out(newcomers, placed.nearest, collaboration, seed)
    else:
        # No model of the clusters was fitted on newcomers' rows: plain residuals are out of sample.
        weight_rows = collaboration.newcomer_weight_rows[placed.nearest][newcomers.owner]
        residuals = newcomers.y - collaboration.predict_columns(newcomers.X, weight_rows)
    for j in np.flatnonzero(verdicts == STAY_ALONE).tolist():
        assert own is not None, "only a learner with a model of its own can stay alone"
        residuals[newcomers.span(j)] = own.residuals[j]
    known, loss = np.isfinite(residuals).all(axis=1), newcomers.loss
    y, residuals, X = newcomers.y[known], residuals[known], newcomers.X[known]
    if loss.bounds is not None:
        values, features = missed_chances(y, residuals, loss), X
    else:
        values = residuals[:, 0]
        features = np.column_stack([X, y[:, 0] - values])
    weights = np.ones(len(newcomers.y)) if newcomers.weights is None else newcomers.weights
    return Residuals(
        values=values,
        owner=newcomers.owner[known],
        clusters=placed.labels,
        features=features,
        weights=weights[known],
    )


def intervals_without(
    before: Fit, fit: Fit, nested: NestedResult | NestedClassResult | None, *, again: bool
) -> Fit:
    """Return a fit that some learners have left, with the intervals of those who stay.

    ``before`` is the fit with all of them, and ``again`` says that models were fitted anew: residuals are
    then measured anew. Newcomers keep theirs, as their rows are not kept.
    """
    if before.intervals is None:
        return fit
    ids_before, remaining_ids = (
        before.intervals.learner_ids.tolist(),
        [*fit.learners.ids.tolist(), *(new.learner_id for new in fit.newcomers)],
    )
    if not again:
        kept: Any = before.intervals.take(positions_of(remaining_ids, ids_before))
        return replace(fit, intervals=kept)
    measured: Any = measured_intervals(fit, nested)
    measured_ids = set(measured.learner_ids.tolist())
    placed_late = positions_of([i for i in remaining_ids if i not in measured_ids], ids_before)
    if len(placed_late):
        cluster_of = dict(zip(fit.learner_ids.tolist(), fit.labels.tolist(), strict=True))
        newcomers: Any = before.intervals.take(placed_late)
        clusters = np.array([cluster_of[learner] for learner in newcomers.learner_ids.tolist()])
        measured = measured.beside(replace(newcomers, clusters=clusters))
    return replace(fit, intervals=measured.take(positions_of(remaining_ids, measured.learner_ids.tolist())))
