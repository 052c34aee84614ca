"""Predictions kept within what their models have seen."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie.kernels.losses import predict_rows
from coterie.loss import SQUARED_ERROR, Loss

# Predictions may leave the range of the rows behind them by this share of it.
MARGIN = 0.3


def widened(values: Array) -> tuple[Array, Array]:
    """Return the lowest and highest of values along the first axis, with a margin on both sides.

    The margin is the share `MARGIN` of the range.
    """
    low, high = values.min(axis=0), values.max(axis=0)
    margin = MARGIN * (high - low)
    return low - margin, high + margin


# A model's predictions stay within this many standard deviations of the response it was fitted on.
PLAUSIBLE_SPREADS = 7.0


def model_bounds(means: Array, variances: Array) -> Array:
    """Return the range (L, 2) to which each model's predictions are clipped.

    It is the mean of the response that the model was fitted on, plus or minus `PLAUSIBLE_SPREADS`
    standard deviations. ``means`` and ``variances`` have the shape (L,).
    """
    margins = PLAUSIBLE_SPREADS * np.sqrt(variances)
    return np.column_stack([means - margins, means + margins])


def guarded(model: Any, X: Array, bounds: Array) -> Array:
    """Return a model's predictions (n,) of one column within its bounds, as `guarded_columns` does."""
    return guarded_columns(model, X, bounds, SQUARED_ERROR)[:, 0]


def guarded_columns(model: Any, X: Array, bounds: Array, loss: Loss) -> Array:
    """Return a model's predictions (n, C), clipped to ``bounds`` (2,), the lowest and the highest allowed.

    Where the model predicts NaN, it is the middle of the bounds. Infinite bounds leave predictions as
    they are.
    """
    prediction: Array = predict_rows(model, X, loss)
    if not np.isfinite(bounds).all():
        return prediction
    # Half and half, for the sum of two large bounds may overflow.
    middle = 0.5 * bounds[0] + 0.5 * bounds[1]
    return np.clip(np.where(np.isnan(prediction), middle, prediction), *bounds)
