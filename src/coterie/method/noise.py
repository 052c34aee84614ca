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
    """Return the variance of the response of all learners' rows together, zero if it is only rounding.

    Of each of the L learners it takes the number of rows ``counts`` (L,), the ``means`` (L, C) of the C
    columns of the response, and the ``variances`` (L,), summed over columns. The result sets which noise
    counts as rounding. One learner must not decide this for all: learners whose response is far larger than
    the typical one are left out.
    """
    squares_about_median = variances + loss.by_row(means - np.median(means, axis=0))
    typical_square = float(np.median(squares_about_median))
    # A learner whose response is a thousand times as large as is typical has other units, or lies: what is
    # rounding to it is no rounding to the others.
    is_kept = (
        squares_about_median * np.sqrt(LIMITS.rounding) <= typical_square
        if typical_square > 0
        else np.ones(len(squares_about_median), dtype=bool)
    )
    counts, means, variances = counts[is_kept], means[is_kept], variances[is_kept]
    grand_mean = np.average(means, axis=0, weights=counts)
    variance = float(np.average(variances + loss.by_row(means - grand_mean), weights=counts))
    return variance if variance > loss.rounding(means) else 0.0


def smallest_level(variance: float) -> float:
    """Return the noise level below which noise counts as rounding, as a fraction of the response's variance.

    It is one where the response does not vary at all, because levels are divided by.
    """
    return LIMITS.rounding * variance or 1.0


def mostly_one_value(y: Array) -> bool:
    """Tell whether more than half of a learner's responses y (n, C) are one value, in every column.

    Zeros among insurance claims are an example. Residuals around such a value say little about the noise.
    """
    middle_position = len(y) // 2
    # A value that more than half of the responses have is their median, too.
    n_equal_to_median = np.count_nonzero(
        y == np.partition(y, middle_position, axis=0)[middle_position], axis=0
    )
    return bool((n_equal_to_median > len(y) / 2).all())


def known_rows(residuals: Array) -> Array:
    """Return the rows of the residuals (n, C) that are finite; rows that were never held out have NaN."""
    return residuals[np.isfinite(residuals).all(axis=1)]


def clip_bound(residuals: Array, smallest: float, *, tied: bool = False, loss: Loss = SQUARED_ERROR) -> float:
    """Return the bound at which the losses of one learner's rows are clipped: nine robust variances.

    The robust variance is estimated from the middle of the residuals (n, C). Nothing is clipped, and the
    bound is infinite, if more than half of the residuals are zero, because they then have no robust spread.
    The same holds if responses are ``tied``, more than half of them one value: the median says how far the
    model is from that value, and all other rows would be clipped.

    A spread below ``smallest``, the level of rounding, counts as that level, lest every loss be clipped to
    rounding.
    """
    level = loss.noise_level(known_rows(residuals))
    return NOISE.clip**2 * max(level, smallest) if level > 0 and not tied else np.inf


def clip_bounds(
    residuals: Sequence[Array], variance: float, tied: Array, loss: Loss = SQUARED_ERROR
) -> Array:
    """Return for each of L learners the bound at which the losses of its rows are clipped, of shape (L,).

    ``residuals`` holds one array (n, C) per learner, ``variance`` is that of the response of all rows
    together, and ``tied`` (L,) tells whose responses are mostly one value.
    """
    smallest = smallest_level(variance)
    pairs = zip(residuals, tied, strict=True)
    return np.array([clip_bound(own, smallest, tied=bool(is_tied), loss=loss) for own, is_tied in pairs])


def noise_statistics(
    residuals: Array, clip: float, smallest: float, loss: Loss = SQUARED_ERROR
) -> tuple[float, float]:
    """Return one learner's noise level, its mean clipped loss, and the sampling variance of the level's log.

    ``residuals`` (n, C) are out of fold, losses of rows are clipped at ``clip``, and the level is at least
    ``smallest``. The variance tells how much `shrunken_levels` should trust the level.
    """
    losses = loss.by_row(known_rows(residuals), clip)
    level = max(float(losses.mean()), smallest)
    # Two rows or fewer do not show how much losses vary: a variance of one trusts the level little.
    log_variance = float((losses / level).var(ddof=1)) / len(losses) if len(losses) > 2 else 1.0
    return level, log_variance


def shrunken_levels(levels: Array, variances: Array) -> Array:
    """Return noise levels (L,) shrunk on the log scale towards their median, by empirical Bayes.

    ``variances`` (L,) are the sampling variances of the logs. A level that is known badly, from few rows,
    moves far towards the median; if levels differ by no more than sampling explains, all become the median.
    """
    log_levels = np.log(levels)
    median_log = np.median(log_levels)
    variance_between = max(np.mean((log_levels - median_log) ** 2 - variances), 0.0)
    shrunk: Array = np.exp(
        median_log + (log_levels - median_log) * variance_between / (variance_between + variances + 1e-300)
    )
    return shrunk


def cautious_levels(levels: Array, rows: Array, tied: Array) -> Array:
    """Return noise levels (L,) that allow for noise unseen by learners whose responses are mostly one value.

    ``rows`` (L,) counts the rows behind each level, ``tied`` (L,) marks those learners. They count as having
    seen a few more rows of the median noise: residuals of zero may only mean that no other value came up yet.
    """
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
    """Return the noise level h_j of each of L learners: positive, shrunk in the log towards the median level.

    ``residuals`` holds one array (n, C) per learner, out of fold; ``clips`` (L,) bounds the losses of their
    rows. ``variance`` is that of the response of all rows together; it sets what counts as zero. ``tied``
    (L,) tells whose responses are mostly one value, and may have noise that they do not show.

    Losses are divided by these levels, so that noisy and quiet learners can be compared.
    """
    smallest = smallest_level(variance)
    levels_and_variances = [
        noise_statistics(own, clip, smallest, loss) for own, clip in zip(residuals, clips, strict=True)
    ]
    levels, log_variances = np.array(levels_and_variances).T
    if tied is not None:
        n_known_rows = np.array([len(known_rows(r)) for r in residuals])
        levels = cautious_levels(levels, n_known_rows, tied)
    return shrunken_levels(levels, log_variances)
