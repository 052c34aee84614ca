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
    """Return residuals (N, C) of all rows under the averages of the clusters of each fold, labels (F, L)."""
    averages = model_averages(selection.models, learners, recipe.engine)
    own_residuals = learners.y - own.predictions
    residuals = np.full_like(learners.y, np.nan)
    for fold, those in enumerate(labels):
        validation = own.folds.held_out == fold
        weights = average_weights(selection.n_rows, those)
        residuals[validation] = averaged_residuals(
            averages, weights, those, learners.owner, learners.y, own_residuals
        )[validation]
    return residuals


def _folds_with_rows(selection: Selection) -> Selection:
    """Return the selection with the folds in which rows are left, by which candidates compete on them.

    Where a splitter's only other fold is held out, each learner's rows are cut into two blocks.
    """
    folds, training = [], []
    for held_out, trained in zip(selection.folds, selection.training, strict=True):
        folds_with_rows = [k for k, rows in enumerate(trained) if rows.any() and (held_out == k).any()]
        if folds_with_rows:
            folds.append(
                np.where(np.isin(held_out, folds_with_rows), np.searchsorted(folds_with_rows, held_out), -1)
            )
            training.append(trained[folds_with_rows])
        else:
            folds.append(np.arange(len(held_out)) * 2 // max(len(held_out), 1))
            training.append(folds[-1] != np.arange(2)[:, None])
    return replace(selection, folds=tuple(folds), training=tuple(training))


def _pooled(
    learners: Learners,
    selection: Selection,
    own: OwnByFold,
    labels: Array,
    sets: Sequence[dict[str, Any]],
    recipe: Recipe,
) -> Array:
    """Return residuals (N, C) of all rows under models of the pooled rows of each fold's clusters."""
    residuals = np.full_like(learners.y, np.nan)
    for fold, (those, training) in enumerate(zip(labels, own.folds.training, strict=True)):
        validation = own.folds.held_out == fold
        without = _folds_with_rows(selection_without(selection, learners, training, own.models[fold]))
        pooled = pool_rows(without, learners.only(training), those, list(sets), recipe.seed, recipe.engine)
        predicted = pooled.predict_columns(learners.X[validation], those[learners.owner[validation]])
        residuals[validation] = learners.y[validation] - predicted
    return residuals


def _is_surely_larger(residuals: Array, others: Array, loss: Loss) -> bool:
    """Tell whether residuals (n, C) lose more than others of the same rows, beyond two standard errors."""
    known = np.isfinite(residuals + others).all(axis=1)
    excess = loss.by_row(residuals[known]) - loss.by_row(others[known])
    return len(excess) > 1 and bool(excess.mean() > 2 * excess.std(ddof=1) / np.sqrt(len(excess)))


def _bounded(residuals: Array, learners: Learners, labels: Array) -> list[Array]:
    """Return residuals by learner, under predictions within what the clusters' responses make plausible."""
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
    """Return the residuals of everybody's rows under a plain form; all is in the order of ``learners``.

    ``labels`` (L,) are the clusters. A learner is judged under those made without each fold, in which its
    rows had no say. If it surely loses more under the final ones, it has come among strangers at the end, and
    these judge it.
    """
    if method == "local":
        return _bounded(learners.y - own.predictions, learners, labels)

    def residuals_of(clusters: Array) -> Array:
        """Return the residuals (N, C) out of fold under clusters (F, L) of each fold."""
        if method == "average":
            return _averaged(learners, selection, own, clusters, recipe)
        return _pooled(learners, selection, own, clusters, sets, recipe)

    final = np.tile(labels, (len(own.folds), 1))
    if recipe.chosen == 1:
        return _bounded(residuals_of(final), learners, labels)
    without = final.copy()
    for fold, training in enumerate(own.folds.training):
        # Averages need nobody's model refitted: those of others have not seen the learner's rows.
        models = selection.models if method == "average" else own.models[fold]
        without[fold] = labels_without_fold(learners, selection, training, models, recipe)
    honest = _bounded(residuals_of(without), learners, labels)
    if np.array_equal(without, final):
        return honest
    used = _bounded(residuals_of(final), learners, labels)
    return [
        own_cluster if _is_surely_larger(own_cluster, residuals_of, learners.loss) else residuals_of
        for own_cluster, residuals_of in zip(used, honest, strict=True)
    ]
