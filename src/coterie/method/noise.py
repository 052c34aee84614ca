"""How much of a learner's response no model of its own predicts, measured so that outliers do not rule.

Squared residuals are clipped at nine squared robust standard deviations, and the level of a learner with
few rows is shrunk towards the typical level by as much as its own sampling error calls for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coterie._arrays import Array
from coterie.kernels.limits import LIMITS
from coterie.loss import SQUARED_ERROR, Loss


@dataclass(frozen=True)
class NoiseRule:
    """Where residuals are clipped, and how much noise a learner of zeros may hide."""

    # In robust standard deviations. Without it, 2 % of outliers cost labels (benchmarks/quality/ablation).
    clip: float = 3.0
    # Rows of typical noise that a learner of zeros may have had and not shown: the rule of three
    # (benchmarks/quality/one_truth, "responses mostly nought").
    unseen: int = 3


NOISE = NoiseRule()


def pooled_variance(counts: Array, means: Array, variances: Array, loss: Loss = SQUARED_ERROR) -> float:
    """Return the variance of all learners' responses together, zero where it is no more than rounding.

    Of each learner it takes the number of rows, the means of shape (L, C) and the variances of shape (L,).
    One learner must not decide what is rounding to all: whoever's response is larger by far than is typical
    does not count.
    """
    moments = variances + loss.by_row(means - np.median(means, axis=0))
    typical = float(np.median(moments))
    # A learner whose response is a thousand times as large as is typical has other units, or lies: what is
    # rounding to it is no rounding to the others.
    kept = moments * np.sqrt(LIMITS.rounding) <= typical if typical > 0 else np.ones(len(moments), dtype=bool)
    counts, means, variances = counts[kept], means[kept], variances[kept]
    middle = np.average(means, axis=0, weights=counts)
    variance = float(np.average(variances + loss.by_row(means - middle), weights=counts))
    return variance if variance > loss.rounding(means) else 0.0


def smallest_level(variance: float) -> float:
    """Return the level below which noise is rounding; one where the response does not vary."""
    return LIMITS.rounding * variance or 1.0


def mostly_one_value(y: Array) -> bool:
    """Tell whether more than half of a learner's responses are the same, as zeros among claims are."""
    middle = len(y) // 2
    # Whatever more than half of them are is their median, too.
    same = np.count_nonzero(y == np.partition(y, middle, axis=0)[middle], axis=0)
    return bool((same > len(y) / 2).all())


def known_rows(residuals: Array) -> Array:
    """Return the residuals of shape (n, C) that could be measured."""
    return residuals[np.isfinite(residuals).all(axis=1)]


def clip_bound(residuals: Array, smallest: float, *, tied: bool = False, loss: Loss = SQUARED_ERROR) -> float:
    """Return the bound for the losses of one learner's rows: nine times the level that its middle rows show.

    A learner more than half of whose residuals are zero has no robust spread: nothing is clipped. Nor where
    responses are ``tied``, more than half of them one value: the median then says how far the model is from
    that value, and all others would be clipped. A spread that is rounding counts as the smallest level, lest
    every loss be clipped to the same rounding.
    """
    level = loss.noise_level(known_rows(residuals))
    return NOISE.clip**2 * max(level, smallest) if level > 0 and not tied else np.inf


def clip_bounds(
    residuals: Sequence[Array], variance: float, tied: Array, loss: Loss = SQUARED_ERROR
) -> Array:
    """Return the bound for the losses of each learner's rows; ``variance`` as in `noise_levels`."""
    smallest = smallest_level(variance)
    pairs = zip(residuals, tied, strict=True)
    return np.array([clip_bound(r, smallest, tied=bool(t), loss=loss) for r, t in pairs])


def noise_statistics(
    residuals: Array, clip: float, smallest: float, loss: Loss = SQUARED_ERROR
) -> tuple[float, float]:
    """Return one learner's mean clipped loss, and the sampling variance of its logarithm."""
    losses = loss.by_row(known_rows(residuals), clip)
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


def cautious_levels(levels: Array, rows: Array, tied: Array) -> Array:
    """Return noise levels (L,) in which learners who are ``tied`` may have noise that they do not show."""
    if not tied.any():
        return levels
    cautious = (rows * levels + NOISE.unseen * np.median(levels)) / (rows + NOISE.unseen)
    return np.where(tied, cautious, levels)


def noise_levels(
    residuals: Sequence[Array],
    clips: Array,
    variance: float,
    tied: Array | None = None,
    loss: Loss = SQUARED_ERROR,
) -> Array:
    """Return the noise level h_j of each learner: positive, shrunk in the log towards the median level.

    ``residuals`` are out of fold, ``clips`` of shape (L,) bounds the losses of their rows. ``variance`` is
    that of the response of all rows together; it sets what counts as zero. ``tied`` of shape (L,) tells whose
    responses are mostly one value, and may have noise that they do not show.
    """
    smallest = smallest_level(variance)
    pairs = [noise_statistics(r, clip, smallest, loss) for r, clip in zip(residuals, clips, strict=True)]
    levels, variances = np.array(pairs).T
    if tied is not None:
        rows = np.array([len(known_rows(r)) for r in residuals])
        levels = cautious_levels(levels, rows, tied)
    return shrunken_levels(levels, variances)
