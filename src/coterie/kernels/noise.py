"""How much of a learner's response no model of its own predicts, measured so that outliers do not rule.

Squared residuals are clipped at nine squared robust standard deviations, and the level of a learner with
few rows is shrunk towards the typical level by as much as its own sampling error calls for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# Below this share of the response's variance a noise level is rounding, not noise.
SMALLEST_SHARE = 1e-12


def response_variance(y: Array) -> float:
    """Return the variance of the response, zero where it is no more than rounding."""
    variance = float(y.var())
    return variance if variance > (1e-12 * np.abs(y).max()) ** 2 else 0.0


def smallest_level(variance: float) -> float:
    """Return the level below which noise is rounding; one where the response does not vary."""
    return SMALLEST_SHARE * variance or 1.0


def clip_bounds(residuals: Sequence[Array], variance: float) -> Array:
    """Return the bound for squared residuals of each learner: (3 * 1.4826 * median |r|)^2.

    A learner more than half of whose residuals are zero has no robust spread: nothing is clipped. Spreads
    that are rounding count as the smallest level, lest every loss be clipped to the same rounding.
    """
    spread = np.array([1.4826 * np.median(np.abs(r[np.isfinite(r)])) for r in residuals])
    bounds = 9 * np.maximum(spread**2, smallest_level(variance))
    return np.where(spread > 0, bounds, np.inf)


def noise_levels(residuals: Sequence[Array], clips: Array, variance: float) -> Array:
    """Return the noise level h_j of each learner.

    Parameters
    ----------
    residuals : sequence of ndarray
        Honest residuals of each learner.
    clips : ndarray of shape (L,)
        Bounds for the squared residuals.
    variance : float
        Of the response of all rows together; sets what counts as zero.

    Returns
    -------
    ndarray of shape (L,)
        Positive levels, shrunk in the log towards their median.
    """
    floor = smallest_level(variance)
    levels, variances = np.empty(len(residuals)), np.empty(len(residuals))
    for j, r in enumerate(residuals):
        losses = np.minimum(r[np.isfinite(r)] ** 2, clips[j])
        levels[j] = max(losses.mean(), floor)
        # Sampling variance of the log of a mean; two rows or fewer tell next to nothing.
        variances[j] = losses.var(ddof=1) / len(losses) / levels[j] ** 2 if len(losses) > 2 else 1.0
    logs = np.log(levels)
    middle = np.median(logs)
    between = max(np.mean((logs - middle) ** 2 - variances), 0.0)
    shrunk: Array = np.exp(middle + (logs - middle) * between / (between + variances + 1e-300))
    return shrunk
