"""What the plain forms of collaboration lose on rows that neither models nor clusters have seen.

The clusters are made again without each fold, as those of nested coteries are. With averages, the models of
others have never seen a learner's rows; with pooled rows, models are chosen and fitted again without the
fold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie.collaboration.forms import average_weights, averaged_residuals, plausible_ranges, pool_rows
from coterie.collaboration.nested.own import OwnByFold
from coterie.collaboration.nested.resolutions import Recipe, labels_without_fold, selection_without
from coterie.loss import Loss
from coterie.method.refine.averages import model_averages
from coterie.records import Selection
from coterie.rows.learners import Learners


def _averaged(
    learners: Learners, selection: Selection, own: OwnByFold, labels: Array, recipe: Recipe
) -> Array:
    """Return out-of-fold residuals (N, C) under averages of models, with clusters ``labels`` (F, L) by fold.

    Rows that fold f holds out are predicted by the averages of the clusters ``labels[f]``. Rows that no
    fold holds out are NaN.
    """
    averages = model_averages(selection.models, learners, recipe.engine)
    own_residuals = learners.y - own.predictions
    residuals = np.full_like(learners.y, np.nan)
    for fold, labels_of_fold in enumerate(labels):
        validation = own.folds.held_out == fold
        weights = average_weights(selection.n_rows, labels_of_fold)
        residuals[validation] = averaged_residuals(
            averages, weights, labels_of_fold, learners.owner, learners.y, own_residuals
        )[validation]
    return residuals


def _folds_with_rows(selection: Selection) -> Selection:
    """Return the selection with only those of its folds that have rows to train on and to hold out.

    Candidates compete on these folds, and some lose all rows when a fold is left out. Where a learner has
    no usable fold left, its rows are cut into two blocks.
    """
    folds, training = [], []
    for held_out, training_of_folds in zip(selection.folds, selection.training, strict=True):
        folds_with_rows = [
            k
            for k, training_rows in enumerate(training_of_folds)
            if training_rows.any() and (held_out == k).any()
        ]
        if folds_with_rows:
            folds.append(
                np.where(np.isin(held_out, folds_with_rows), np.searchsorted(folds_with_rows, held_out), -1)
            )
            training.append(training_of_folds[folds_with_rows])
        else:
            folds.append(np.arange(len(held_out)) * 2 // max(len(held_out), 1))
            training.append(folds[-1] != np.arange(2)[:, None])
    return replace(selection, folds=tuple(folds), training=tuple(training))


def _pooled(
    learners: Learners,
    selection: Selection,
    own: OwnByFold,
    labels: Array,
    candidate_sets: Sequence[dict[str, Any]],
    recipe: Recipe,
) -> Array:
    """Return out-of-fold residuals (N, C) under models of pooled rows.

    ``labels`` (F, L) are the clusters by fold. For each fold, models are chosen and fitted without the
    rows that it holds out. Rows that no fold holds out are NaN.
    """
    residuals = np.full_like(learners.y, np.nan)
    for fold, (labels_of_fold, training) in enumerate(zip(labels, own.folds.training, strict=True)):
        validation = own.folds.held_out == fold
        training_selection = _folds_with_rows(
            selection_without(selection, learners, training, own.models[fold])
        )
        collaboration = pool_rows(
            training_selection,
            learners.only(training),
            labels_of_fold,
            list(candidate_sets),
            recipe.seed,
            recipe.engine,
        )
        predictions = collaboration.predict_columns(
            learners.X[validation], labels_of_fold[learners.owner[validation]]
        )
        residuals[validation] = learners.y[validation] - predictions
    return residuals


def _is_surely_larger(residuals: Array, others: Array, loss: Loss) -> bool:
    """Tell whether ``residuals`` (n, C) have a larger mean loss than ``others`` of the same rows.

    It has to be larger by more than two standard errors of the paired differences, so that chance does
    not decide.
    """
    is_known = np.isfinite(residuals + others).all(axis=1)
    excess = loss.by_row(residuals[is_known]) - loss.by_row(others[is_known])
    return len(excess) > 1 and bool(excess.mean() > 2 * excess.std(ddof=1) / np.sqrt(len(excess)))


def _bounded(residuals: Array, learners: Learners, labels: Array) -> list[Array]:
    """Return residuals (N, C), by learner, of predictions clipped to the cluster's plausible range."""
    low, high = plausible_ranges(learners, labels)[labels[learners.owner]].T[..., None]
    residuals = learners.y - np.clip(learners.y - residuals, low, high)
    return list(np.split(residuals, learners.offsets[1:-1]))


def residuals_out_of_fold(
    method: str,
    labels: Array,
    learners: Learners,
    selection: Selection,
    own: OwnByFold,
    sets: Sequence[dict[str, Any]],
    recipe: Recipe,
) -> list[Array]:
    """Return every learner's out-of-fold residuals under a plain form of collaboration.

    ``method`` is ``"local"``, ``"average"`` or ``"pooled"``, ``labels`` (L,) are the final clusters, and
    ``own`` has the learners' own models by fold. The list has one array (n, C) for each learner.

    For the rows that a fold holds out, the clusters are made again without them, so that they had no say.
    If a learner's loss is significantly larger under its final cluster, it ended among strangers, and the
    residuals under the final cluster count.
    """
    if method == "local":
        return _bounded(learners.y - own.predictions, learners, labels)

    def residuals_of(clusters: Array) -> Array:
        """Return the residuals (N, C) out of fold under clusters (F, L) of each fold."""
        if method == "average":
            return _averaged(learners, selection, own, clusters, recipe)
        return _pooled(learners, selection, own, clusters, sets, recipe)

    final_labels = np.tile(labels, (len(own.folds), 1))
    if recipe.chosen == 1:
        return _bounded(residuals_of(final_labels), learners, labels)
    labels_without = final_labels.copy()
    for fold, training in enumerate(own.folds.training):
        # Averages need nobody's model refitted: those of others have not seen the learner's rows.
        models = selection.models if method == "average" else own.models[fold]
        labels_without[fold] = labels_without_fold(learners, selection, training, models, recipe)
    residuals_without = _bounded(residuals_of(labels_without), learners, labels)
    if np.array_equal(labels_without, final_labels):
        return residuals_without
    residuals_final = _bounded(residuals_of(final_labels), learners, labels)
    return [
        by_final if _is_surely_larger(by_final, by_without, learners.loss) else by_without
        for by_final, by_without in zip(residuals_final, residuals_without, strict=True)
    ]
