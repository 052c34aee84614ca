"""Do classes come as often as a model's probabilities claim? What losses are beside what they let expect.

The noise of a number has to be measured. That of a class follows from its probability: if a model's
probabilities hold for a learner, the mean loss on its rows is known, and so are its variance and its
skewness. A learner whose relation is another one, such as the opposite, loses more than claimed. This shows
on far fewer rows than a comparison with the learner's own model, which errs, too.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from coterie._arrays import Array
from coterie.loss import Loss


def beyond_claims(
    residuals: Array, weights: Array | None, starts: Array, loss: Loss, inflation: float = 1.0
) -> Array | None:
    """Return how many standard deviations each learner's loss lies above what its probabilities claim.

    ``residuals`` (..., N, C) are observed classes less predicted probabilities: N rows, C columns of the
    response. Each learner's rows begin at ``starts`` (L,), and ``weights`` (N,) count rows. ``inflation`` is
    the factor by which dependence between rows inflates the variance of a mean.

    The result has shape (..., L), is NaN where residuals are, and is None for numeric responses, whose noise
    follows from no probability. Sums over few rows are skewed; the cube root of Wilson and Hilferty (1931)
    makes them nearly normal.
    """
    claimed_moments = loss.claimed(residuals)
    if claimed_moments is None:
        return None
    counts = np.ones(residuals.shape[-2]) if weights is None else weights
    losses_beyond_claim = loss.by_row(residuals) - claimed_moments[0]
    excess, variance, third_moment = (
        np.add.reduceat(moment_by_row * counts**power, starts, axis=-1)
        for power, moment_by_row in (
            (1, losses_beyond_claim),
            (2, claimed_moments[1]),
            (3, claimed_moments[2]),
        )
    )
    spread = np.maximum(np.sqrt(variance * inflation), np.finfo(float).eps)
    # The formula divides by the skewness, so that it must not be zero.
    skewness = np.maximum(third_moment / spread**3, np.sqrt(np.finfo(float).eps))
    cube_root = np.cbrt(1 + skewness * excess / spread / 2)
    deviations: Array = 6 / skewness * (cube_root - 1) + skewness / 6
    return deviations


def is_beyond(deviations: Array | None, excess: Array, errors: Array, rate: float) -> Array | bool:
    """Tell which learners lose significantly more than their model's probabilities claim.

    ``deviations`` (L,) are from `beyond_claims`, None for numeric responses; ``rate`` is the rate of false
    alarms of one test. A learner must also lose more than with its own model: ``excess`` (L,) is by how much,
    ``errors`` (L,) its standard error. Without this second condition, a poorly estimated model, whose
    probabilities claim too much of everybody, would raise an alarm for all, though the learners' own models
    are no better.
    """
    if deviations is None:
        return False
    beyond: Array = (deviations > norm.isf(rate)) & (excess > errors)
    return beyond
