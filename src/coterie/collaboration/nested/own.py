"""Everybody's own model, chosen and fitted again without each fold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie.collaboration.nested.folds import Folds, block_folds, random_folds, selected_folds
from coterie.collaboration.nested.guard import guarded_columns, widened
from coterie.collaboration.nested.resolutions import Recipe, refit_own
from coterie.method.forecasts import Forecasts
from coterie.records import OwnResiduals, Selection
from coterie.rows.learners import Learners


@dataclass(frozen=True)
class OwnByFold:
    """Own models without each fold, of the learners in order.

    ``models`` has a tuple of L models for each fold, ``predictions`` (N, C) are those out of fold, NaN where
    no fold holds the row out, and ``bounds`` (L, 2) what predictions of the models of all rows are clipped
    to.
    """

    folds: Folds
    models: tuple[tuple[Any, ...], ...] = field(repr=False)
    predictions: Array = field(repr=False)
    bounds: Array = field(repr=False)

    def judged(self, learners: Learners) -> OwnResiduals:
        """Return the out-of-fold residuals of every learner's own model, as a record."""
        residuals = learners.y - self.predictions
        residuals_by_learner = tuple(np.split(residuals, learners.offsets[1:-1]))
        return OwnResiduals(
            learners.ids, residuals_by_learner, float(self.folds.training.mean()), self.bounds
        )


def own_bounds(learners: Learners, rows: Any) -> Array:
    """Return the lowest and highest prediction, (2,), allowed to a model that is fitted on some rows.

    It is what the loss sets for so many rows, else the range of their responses with a margin.
    """
    bounds_of_kind = learners.loss.own_bounds(len(learners.y[rows]))
    return np.array(bounds_of_kind or widened(learners.scalar_y[rows]))


def folds_of(learners: Learners, selection: Selection, n_folds: int, splitter: Any, seed: int) -> Folds:
    """Return the folds by which weights are learnt.

    They are those of the user's splitter if there is one, blocks of neighbours where rows depend on each
    other, else random ones. ``n_folds`` is bounded by the rows of the largest learner; ``seed`` cuts random
    ones.
    """
    # More folds than rows would hold out nothing.
    n_folds = min(n_folds, int(learners.sizes.max()))
    if splitter is not None:
        return replace(selected_folds(selection), forecasts=isinstance(splitter, Forecasts))
    if selection.in_order:
        return block_folds(learners, n_folds)
    return random_folds(learners, n_folds, seed)


def own_by_fold(
    learners: Learners,
    selection: Selection,
    folds: Folds,
    sets: Sequence[dict[str, Any]],
    recipe: Recipe,
    done: Callable[[], None] = lambda: None,
) -> OwnByFold:
    """Let every learner choose and fit its own model again without each fold, and predict out of fold.

    ``sets`` has the candidates of every learner; ``done`` is called after each fold, to report progress.
    Predictions are clipped to what the rows trained on make plausible.
    """
    bounds = np.array([own_bounds(learners, learners.span(learner)) for learner in range(len(learners))])
    predictions, models = np.full(learners.y.shape, np.nan), []
    for fold, training in enumerate(folds.training):
        models_of_fold = refit_own(learners, training, selection, sets, recipe)
        models.append(models_of_fold)
        done()
        for learner in range(len(learners)):
            span = learners.span(learner)
            validation = np.flatnonzero(folds.held_out[span] == fold) + span.start
            if len(validation):
                bounds_of_fold = own_bounds(learners, span.start + np.flatnonzero(training[span]))
                predictions[validation] = guarded_columns(
                    models_of_fold[learner], learners.X[validation], bounds_of_fold, learners.loss
                )
    return OwnByFold(folds, tuple(models), predictions, bounds)
