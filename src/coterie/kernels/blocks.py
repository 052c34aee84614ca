"""Losses of any model: each predicts once on blocks of concatenated rows, then means by learner.

That is L calls instead of L^2, and no more memory than a block of rows asks for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.kernels.limits import LIMITS
from coterie.rows.learners import Learners

Array = NDArray[Any]


def learner_blocks(learners: Learners, block_rows: int = LIMITS.rows) -> Iterator[tuple[int, int]]:
    """Cut the learners into runs whose rows fit into one block; a large learner is a run of its own."""
    start = 0
    for stop in range(1, len(learners) + 1):
        rows_with_next = learners.offsets[min(stop + 1, len(learners))] - learners.offsets[start]
        if stop == len(learners) or rows_with_next > block_rows:
            yield start, stop
            start = stop


def predict_rows(model: Any, X: Array) -> Array:
    """Predict, with NaN for all rows where the model raises or answers in another shape."""
    try:
        # A copy: a model that works in place would change the rows of everybody.
        prediction = np.asarray(model.predict(X.copy()), dtype=float).reshape(-1)
    except Exception:  # a peer's model may fail in any way: it is isolated, not fatal
        return np.full(len(X), np.nan)
    return prediction if len(prediction) == len(X) else np.full(len(X), np.nan)


def model_losses(model: Any, learners: Learners, clips: Array | None = None) -> Array:
    """Return the loss of one model on every learner.

    Parameters
    ----------
    model : estimator
        Fitted.
    learners : Learners
        On whose rows it is evaluated.
    clips : ndarray of shape (L,) or None, default=None
        Bounds for the squared residuals of each learner; None: the plain mean of squares.

    Returns
    -------
    ndarray of shape (L,)
        Mean squared residuals; not finite where the model failed.
    """
    losses = np.empty(len(learners))
    for start, stop in learner_blocks(learners):
        rows = slice(int(learners.offsets[start]), int(learners.offsets[stop]))
        with np.errstate(over="ignore", invalid="ignore"):
            squares = (predict_rows(model, learners.X[rows]) - learners.y[rows]) ** 2
        if clips is not None:
            # A bound must not hide that the model failed.
            squares = np.where(np.isfinite(squares), np.minimum(squares, clips[learners.owner[rows]]), np.inf)
        if learners.weights is not None:
            squares = squares * learners.weights[rows]
        starts = learners.offsets[start:stop] - learners.offsets[start]
        losses[start:stop] = np.add.reduceat(squares, starts) / learners.sizes[start:stop]
    return losses
