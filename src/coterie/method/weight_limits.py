"""What one learner can do to a number that all learners share: little, whatever it says.

Where rows may not move, a learner is known by what it says, and one of them may lie. So where clusters
predict by averages of models, no value counts for more than some multiple of the median over learners, and
what a single learner objects to is not decided by it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coterie._arrays import Array


@dataclass(frozen=True)
class WeightLimits:
    """How much one learner may count (benchmarks/federated/liars)."""

    # A value counts at most as this multiple of the median over learners, and at least as that fraction.
    ratio: float = 10.0
    # A model weighs at most this multiple of the median model.
    weight: float = 2.0


WEIGHT_LIMITS = WeightLimits()


def within_reach(values: Array, ratio: float = WEIGHT_LIMITS.ratio) -> Array:
    """Return positive values (L, ...) clipped to within a factor ``ratio`` of their median over learners.

    No single learner can then dominate a sum over learners, whatever it reports.
    """
    if not len(values):
        return values
    median = np.median(values, axis=0)
    return np.asarray(np.clip(values, median / ratio, median * ratio))


def bounded_ratios(ratios: Array) -> Array:
    """Return ratios of loss to noise (L,), clipped from above at a multiple of their median.

    Otherwise one learner with an absurd loss would decide a mean over learners alone.
    """
    return np.asarray(np.minimum(ratios, WEIGHT_LIMITS.ratio * np.median(ratios)))
