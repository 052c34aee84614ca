"""Nested coteries where rows may not move: the shared predictors are averages of the learners' models.

Others' models have never seen a learner's rows, so only its own model needs folds; the partition is made
again by losses on the rows outside the fold. A learner's own model is left out of the averages that predict
it, for it is weighed apart, and so is a peer's model that is wild on its rows: the loss of that model there
is known. Models travel with the range of the response that they were fitted on, and are clipped to it with
a margin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie.collaboration.nested.guard import guarded
from coterie.collaboration.nested.own import OwnByFold
from coterie.collaboration.nested.resolutions import Recipe, nested_labels
from coterie.collaboration.nested.shared import Averages, Shared
from coterie.method.refine.averages import bounded_weights, how_models_travel, membership
from coterie.records import Exchange, Selection
from coterie.rows.learners import Learners

# A peer's model that loses this many times what the median model loses on my rows is wild there.
WILD = 25.0


@dataclass(frozen=True)
class _Prediction:
    model: Any
    X: Array
    bounds: Array


def _predict(job: _Prediction) -> Array:
    return guarded(job.model, job.X, job.bounds)


def wild_models(table: Array, learners: Learners) -> Array:
    """Return which models a learner does not let predict its rows, a row per learner: its own and wild ones.

    ``table`` (L, N) has the predictions of every model on everybody's rows.
    """
    residuals = table - learners.scalar_y
    losses = learners.mean_by_learner(learners.loss.by_row(residuals[..., None])).T
    wild: Array = losses > WILD * np.median(losses, axis=1, keepdims=True)
    return wild | np.eye(len(learners), dtype=bool)


def _shared(count: int, labels: Array, weights: Array, excluded: Array) -> Shared:
    rows = membership(labels, int(labels.max()) + 1, weights)
    terms = tuple((np.flatnonzero(row), row[row > 0] / row.sum()) for row in rows)
    return Shared(count, labels, terms, excluded)


def average_dictionary(
    learners: Learners,
    selection: Selection,
    exchange: Exchange,
    labels: Array,
    own: OwnByFold,
    recipe: Recipe,
) -> Averages:
    """Average the learners' models at all resolutions.

    Records are of the same learners in the same order. Each learner's rows are used for its own answers only.
    ``labels`` (L,) are the chosen clusters.
    """
    folds, bounds = own.folds, own.bounds
    models = [selection.models] * len(folds)
    counts, without, full = nested_labels(learners, selection, labels, folds, models, recipe)
    travel = np.where(exchange.isolated, np.inf, how_models_travel(exchange))
    weights = bounded_weights(learners.sizes / selection.noise / np.maximum(travel, 1e-6) ** 2)
    jobs = [_Prediction(model, learners.X, bounds[i]) for i, model in enumerate(selection.models)]
    table = np.array(recipe.engine.map(_predict, jobs))
    predictions = np.full((len(learners.y), len(counts) + 1), np.nan)
    for fold in range(len(folds)):
        left = learners.only(folds.training[fold])
        excluded = wild_models(table[:, folds.training[fold]], left)
        ahead = folds.held_out == fold
        for place, count in enumerate((*counts, 1)):
            averages = _shared(count, without[fold][count], weights, excluded)
            for j in np.unique(learners.owner[ahead]):
                mine = np.flatnonzero(ahead & (learners.owner == j))
                positions, shares = averages.terms_of(j)
                # Where nobody else is of use it is the learner's own model, and that has seen these rows.
                by_itself = positions.tolist() == [j]
                others = shares @ table[np.ix_(positions, mine)]
                predictions[mine, place] = own.predictions[mine, 0] if by_itself else others
    excluded = wild_models(table, learners)
    shared = tuple(_shared(count, full[count], weights, excluded) for count in (*counts, 1))
    return Averages(counts, shared, predictions)
