"""Predictions kept within what their models have seen, and mixtures no worse than learning alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import false_discovery_control
from scipy.stats import t as student

from coterie._arrays import Array
from coterie.kernels.losses import predict_rows
from coterie.loss import SQUARED_ERROR

# Predictions may leave the range of the rows behind them by this share of it.
MARGIN = 0.3
# Of the learners who are sent alone, this share may be sent wrongly. With two standard errors for each, one
# learner of eighty was sent alone whose own model lost seventy times as much on new rows.
FALSE_DISCOVERIES = 0.1


def widened(values: Array) -> tuple[Array, Array]:
    """Return the range of values along the first axis with a margin on both sides."""
    low, high = values.min(axis=0), values.max(axis=0)
    margin = MARGIN * (high - low)
    return low - margin, high + margin


def guarded(model: Any, X: Array, bounds: Array) -> Array:
    """Return a model's predictions within its bounds; the middle of them where it fails.

    ``bounds`` (2,) are the lowest and highest prediction; infinite ones leave the model as it is.
    """
    prediction: Array = predict_rows(model, X)[:, 0]
    if not np.isfinite(bounds).all():
        return prediction
    # Half and half, for the sum of two large bounds may overflow.
    middle = 0.5 * bounds[0] + 0.5 * bounds[1]
    return np.clip(np.where(np.isnan(prediction), middle, prediction), *bounds)


def chance_of_excess(residuals: Array, alone: Array, weights: Array | None = None) -> float:
    """Return how likely a mixture loses so much more than the learner's own model by chance.

    It is the p-value of Student's paired test. Residuals (n,) of both are honest, NaN where no fold holds the
    row out; rows count by ``weights`` (n,).
    """
    seen = np.isfinite(residuals) & np.isfinite(alone)
    mixed, own = (SQUARED_ERROR.by_row(part[seen][:, None]) for part in (residuals, alone))
    excess = mixed - own if weights is None else (mixed - own) * weights[seen]
    if len(excess) < 2:
        return 1.0
    error = float(excess.std(ddof=1)) / np.sqrt(len(excess))
    if error == 0:
        return 0.0 if excess.mean() > 0 else 1.0
    return float(student.sf(excess.mean() / error, len(excess) - 1))


def who_stays_alone(chances: Array) -> Array:
    """Tell whose mixtures are worse than their own models, at a bounded rate of false discoveries."""
    if not len(chances):
        return np.zeros(0, dtype=bool)
    sent: Array = false_discovery_control(chances) <= FALSE_DISCOVERIES
    return sent
