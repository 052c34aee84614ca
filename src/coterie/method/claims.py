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
    """Return by how many standard deviations learners lose more than probabilities claim, None of numbers.

    ``residuals`` has shape (..., N, C), and each learner's rows begin at ``starts``; the result has shape
    (..., L), and is NaN where residuals are. ``inflation`` is the factor by which dependence between rows
    inflates the variance of a mean. Sums of few rows are skewed: their cube root is nearly normal (Wilson and
    Hilferty, 1931).
    """
    claimed = loss.claimed(residuals)
    if claimed is None:
        return None
    counts = np.ones(residuals.shape[-2]) if weights is None else weights
    more = loss.by_row(residuals) - claimed[0]
    excess, variance, third = (
        np.add.reduceat(part * counts**power, starts, axis=-1)
        for power, part in ((1, more), (2, claimed[1]), (3, claimed[2]))
    )
    spread = np.maximum(np.sqrt(variance * inflation), np.finfo(float).eps)
    # The formula divides by it.
    skewness = np.maximum(third / spread**3, np.sqrt(np.finfo(float).eps))
    cubic = np.cbrt(1 + skewness * excess / spread / 2)
    deviations: Array = 6 / skewness * (cubic - 1) + skewness / 6
    return deviations


def is_beyond(deviations: Array | None, excess: Array, errors: Array, rate: float) -> Array | bool:
    """Tell who surely loses more than was claimed, and more than alone by a standard error at least.

    Probabilities of a badly known model claim too much of everybody, and the learners' own models are then no
    better.
    """
    if deviations is None:
        return False
    beyond: Array = (deviations > norm.isf(rate)) & (excess > errors)
    return beyond
