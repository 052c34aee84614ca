"""Losses of any model: each predicts once on blocks of concatenated rows, then means by learner.

That is L calls instead of L^2, and no more memory than a block of rows asks for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie.kernels.limits import LIMITS
from coterie.loss import SQUARED_ERROR, Loss
from coterie.rows.learners import Learners


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
