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
    """Cut the learners into runs whose rows fit into one block; a large learner is a run of its own."""
    start = 0
    for stop in range(1, len(learners) + 1):
        rows_with_next = learners.offsets[min(stop + 1, len(learners))] - learners.offsets[start]
        if stop == len(learners) or rows_with_next > block_rows:
            yield start, stop
            start = stop


def predict_rows(model: Any, X: Array, loss: Loss = SQUARED_ERROR) -> Array:
    """Predict columns of shape (n, C), with NaN where the model raises or answers in another shape."""
    try:
        # A copy: a model that works in place would change the rows of everybody.
        return loss.predict(model, X.copy())
    except Exception:  # a peer's model may fail in any way: it is isolated, not fatal
        return np.full((len(X), loss.n_columns), np.nan)


def model_losses(model: Any, learners: Learners, clips: Array | None = None) -> Array:
    """Return the mean loss of one model on every learner, of shape (L,); not finite where it failed.

    ``clips`` of shape (L,) bounds the losses of each learner's rows.
    """
    losses = np.empty(len(learners))
    for start, stop in learner_blocks(learners):
        rows = slice(int(learners.offsets[start]), int(learners.offsets[stop]))
        predictions = predict_rows(model, learners.X[rows], learners.loss)
        by_row = learners.loss.by_row(predictions - learners.y[rows])
        if clips is not None:
            # A bound must not hide that the model failed.
            by_row = np.where(np.isfinite(by_row), np.minimum(by_row, clips[learners.owner[rows]]), np.inf)
        if learners.weights is not None:
            by_row = by_row * learners.weights[rows]
        starts = learners.offsets[start:stop] - learners.offsets[start]
        losses[start:stop] = np.add.reduceat(by_row, starts) / learners.sizes[start:stop]
    return losses


@dataclass(frozen=True)
class _LossJob:
    model: Any
    learners: Learners = field(repr=False)
    clips: Array | None = field(repr=False)


def _losses_of(job: _LossJob) -> Array:
    return model_losses(job.model, job.learners, job.clips)


def loss_matrix(
    models: Sequence[Any], learners: Learners, engine: Engine, clips: Array | None = None
) -> Array:
    """Return the losses of shape (M, L) of M models on L learners, not finite where a model failed.

    ``clips`` of shape (L,) bounds the losses of rows; with bounds there is no closed form.
    """
    vectors, affine = affine_matrix(models, learners.n_features)
    if clips is not None:
        affine = np.zeros_like(affine)
    losses = np.empty((len(models), len(learners)))
    closed = np.flatnonzero(affine)
    if len(closed):
        moments = AffineLosses(vectors[closed], learners)
        losses[closed] = moments.tile(slice(None), slice(None))
    rest = np.flatnonzero(~affine)
    if learners.loss.bounds is not None and clips is None:
        forms = {i: logistic_form(models[i], learners.n_features) for i in rest.tolist()}
        lines = np.array([i for i, form in forms.items() if form is not None], dtype=int)
        losses[lines] = logistic_losses([form for form in forms.values() if form is not None], learners)
        rest = np.array([i for i, form in forms.items() if form is None], dtype=int)
    jobs = [_LossJob(models[i], learners, clips) for i in rest.tolist()]
    if jobs:
        losses[rest] = engine.map(_losses_of, jobs)
    return losses


def own_errors(models: Sequence[Any], learners: Learners) -> Array:
    """Return the mean squared residual of each model on its own learner's rows, which count by weight."""
    vectors, affine = affine_matrix(models, learners.n_features)
    frame = StandardizedColumns(learners)
    inside = frame.vectors(np.where(affine[:, None], vectors, 0.0))
    linear = np.einsum("nd,nd->n", frame.rows(learners.X), inside[learners.owner])
    predictions = linear[:, None] + frame.middle
    for j in np.flatnonzero(~affine).tolist():
        span = learners.span(j)
        predictions[span] = predict_rows(models[j], learners.X[span], learners.loss)
    return learners.mean_losses(predictions - learners.y)
