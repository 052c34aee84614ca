"""Losses of many models on many learners: affine ones by moments, the rest by blocks of rows.

A model that is not affine predicts once on blocks of concatenated rows, then means are taken by learner. That
is L calls instead of L^2, and no more memory than a block of rows asks for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie.engines import Engine
from coterie.kernels.affine import AffineLosses, StandardizedColumns, affine_matrix
from coterie.kernels.limits import LIMITS
from coterie.kernels.logistic import logistic_form, logistic_losses
from coterie.loss import SQUARED_ERROR, Loss
from coterie.rows.learners import Learners


class DenseTiles:
    """Losses that are there as an array of shape (L, L); row i is model i on everybody."""

    def __init__(self, losses: Array) -> None:
        """Keep the array of all losses."""
        self._losses = losses

    @property
    def n_learners(self) -> int:
        """Number of learners."""
        return len(self._losses)

    def tile(self, models: Any, learners: Any) -> Array:
        """Return the losses of some models on some learners, given by slices or positions."""
        tile: Array = self._losses[models][:, learners]
        return tile

    def take(self, positions: Array) -> DenseTiles:
        """Return the losses among some of the learners, in the order given."""
        return DenseTiles(self._losses[np.ix_(positions, positions)])


def learner_blocks(learners: Learners, block_rows: int = LIMITS.rows) -> Iterator[tuple[int, int]]:
    """Yield runs of neighbouring learners whose rows fit into one block, as first and last-plus-one learner.

    A learner with more than ``block_rows`` rows is a run of its own. Blocks bound the memory of predictions.
    """
    start = 0
    for stop in range(1, len(learners) + 1):
        rows_with_next = learners.offsets[min(stop + 1, len(learners))] - learners.offsets[start]
        if stop == len(learners) or rows_with_next > block_rows:
            yield start, stop
            start = stop


def predict_rows(model: Any, X: Array, loss: Loss = SQUARED_ERROR) -> Array:
    """Return a model's predictions (n, C) for rows X (n, p); NaN where it fails.

    A model fails if it raises an error or answers in another shape. Models come from other learners: one that
    fails must not stop everybody.
    """
    try:
        # A copy: a model that works in place would change the rows of everybody.
        return loss.predict(model, X.copy())
    except Exception:  # a peer's model may fail in any way: it is isolated, not fatal
        return np.full((len(X), loss.n_columns), np.nan)


def model_losses(model: Any, learners: Learners, clips: Array | None = None) -> Array:
    """Return the mean loss of one model on the rows of every learner, of shape (L,).

    ``clips`` of shape (L,) bounds the losses of each learner's rows. Where the model failed, the loss is not
    finite.
    """
    losses = np.empty(len(learners))
    for start, stop in learner_blocks(learners):
        rows = slice(int(learners.offsets[start]), int(learners.offsets[stop]))
        predictions = predict_rows(model, learners.X[rows], learners.loss)
        losses_by_row = learners.loss.by_row(predictions - learners.y[rows])
        if clips is not None:
            # A bound must not hide that the model failed.
            losses_by_row = np.where(
                np.isfinite(losses_by_row), np.minimum(losses_by_row, clips[learners.owner[rows]]), np.inf
            )
        if learners.weights is not None:
            losses_by_row = losses_by_row * learners.weights[rows]
        starts = learners.offsets[start:stop] - learners.offsets[start]
        losses[start:stop] = np.add.reduceat(losses_by_row, starts) / learners.sizes[start:stop]
    return losses


@dataclass(frozen=True)
class _LossJob:
    """One model, the learners it is scored on, and the bounds of their rows' losses."""

    model: Any
    learners: Learners = field(repr=False)
    clips: Array | None = field(repr=False)


def _losses_of(job: _LossJob) -> Array:
    """Return the losses (L,) of a job's model, in one argument for the engine's ``map``."""
    return model_losses(job.model, job.learners, job.clips)


def loss_matrix(
    models: Sequence[Any], learners: Learners, engine: Engine, clips: Array | None = None
) -> Array:
    """Return the losses (M, L) of M models on L learners, not finite where a model failed.

    Affine models take one matrix product of moments, logistic ones products with rows; all others predict
    every row, by the engine. ``clips`` of shape (L,) bounds the losses of rows; clipped losses have no closed
    form, so that all models then predict.
    """
    vectors, is_affine = affine_matrix(models, learners.n_features)
    if clips is not None:
        is_affine = np.zeros_like(is_affine)
    losses = np.empty((len(models), len(learners)))
    affine_positions = np.flatnonzero(is_affine)
    if len(affine_positions):
        affine_losses = AffineLosses(vectors[affine_positions], learners)
        losses[affine_positions] = affine_losses.tile(slice(None), slice(None))
    other_positions = np.flatnonzero(~is_affine)
    if learners.loss.bounds is not None and clips is None:
        logistic_forms = {i: logistic_form(models[i], learners.n_features) for i in other_positions.tolist()}
        logistic_positions = np.array(
            [i for i, form in logistic_forms.items() if form is not None], dtype=int
        )
        losses[logistic_positions] = logistic_losses(
            [form for form in logistic_forms.values() if form is not None], learners
        )
        other_positions = np.array([i for i, form in logistic_forms.items() if form is None], dtype=int)
    jobs = [_LossJob(models[i], learners, clips) for i in other_positions.tolist()]
    if jobs:
        losses[other_positions] = engine.map(_losses_of, jobs)
    return losses


def own_errors(models: Sequence[Any], learners: Learners) -> Array:
    """Return the mean loss (L,) of each of L models on its own learner's rows, which count by weight.

    ``models`` has one model per learner, in their order. Affine models are evaluated together; the others,
    for whom zeros stand in there, predict one by one.
    """
    vectors, is_affine = affine_matrix(models, learners.n_features)
    frame = StandardizedColumns(learners)
    standardized_vectors = frame.vectors(np.where(is_affine[:, None], vectors, 0.0))
    linear_predictions = np.einsum("nd,nd->n", frame.rows(learners.X), standardized_vectors[learners.owner])
    predictions = linear_predictions[:, None] + frame.middle
    for j in np.flatnonzero(~is_affine).tolist():
        own_rows = learners.span(j)
        predictions[own_rows] = predict_rows(models[j], learners.X[own_rows], learners.loss)
    return learners.mean_losses(predictions - learners.y)
