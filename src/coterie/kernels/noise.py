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
# A learner whose response is this many times as large, squared, as is typical has other units, or lies: what
# is rounding to it is no rounding to the others.
FAR_LARGER = 1e6


def response_variance(y: Array) -> float:
    """Return the variance of the response, zero where it is no more than rounding."""
    variance = float(y.var())
    return variance if variance > (1e-12 * np.abs(y).max()) ** 2 else 0.0


def pooled_variance(counts: Array, means: Array, variances: Array) -> float:
    """Return the variance of all learners' responses together, zero where it is no more than rounding.

    One learner must not decide what is rounding to all: whoever's response is larger by far than is typical
    does not count.
    """
    moments = variances + (means - np.median(means)) ** 2
    typical = float(np.median(moments))
    kept = moments <= FAR_LARGER * typical if typical > 0 else np.ones(len(moments), dtype=bool)
    counts, means, variances = counts[kept], means[kept], variances[kept]
    middle = np.average(means, weights=counts)
    variance = float(np.average(variances + (means - middle) ** 2, weights=counts))
    return variance if variance > (1e-12 * np.abs(means).max()) ** 2 else 0.0


def smallest_level(variance: float) -> float:
    """Return the level below which noise is rounding; one where the response does not vary."""
    return SMALLEST_SHARE * variance or 1.0


def clip_bound(residuals: Array, smallest: float) -> float:
    """Return the bound for one learner's squared residuals: (3 * 1.4826 * median |r|)^2.

    A learner more than half of whose residuals are zero has no robust spread: nothing is clipped. A spread
    that is rounding counts as the smallest level, lest every loss be clipped to the same rounding.
    """
    spread = 1.4826 * float(np.median(np.abs(residuals[np.isfinite(residuals)])))
    return 9 * max(spread * spread, smallest) if spread > 0 else np.inf


def clip_bounds(residuals: Sequence[Array], variance: float) -> Array:
    """Return the bound for squared residuals of each learner; ``variance`` as in `noise_levels`."""
    return np.array([clip_bound(r, smallest_level(variance)) for r in residuals])


def noise_statistics(residuals: Array, clip: float, smallest: float) -> tuple[float, float]:
    """Return one learner's mean clipped squared residual, and the sampling variance of its logarithm."""
    losses = np.minimum(residuals[np.isfinite(residuals)] ** 2, clip)
    level = max(float(losses.mean()), smallest)
    # Two rows or fewer tell next to nothing.
    variance = float((losses / level).var(ddof=1)) / len(losses) if len(losses) > 2 else 1.0
    return level, variance


def shrunken_levels(levels: Array, variances: Array) -> Array:
    """Return noise levels shrunk in the log towards their median, as their sampling variances call for."""
    logs = np.log(levels)
    middle = np.median(logs)
    between = max(np.mean((logs - middle) ** 2 - variances), 0.0)
    shrunk: Array = np.exp(middle + (logs - middle) * between / (between + variances + 1e-300))
    return shrunk


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
    smallest = smallest_level(variance)
    pairs = [noise_statistics(r, clip, smallest) for r, clip in zip(residuals, clips, strict=True)]
    levels, variances = np.array(pairs).T
    return shrunken_levels(levels, variances)
