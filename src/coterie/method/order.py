"""Tell whether neighbouring rows of a learner depend on each other, and allow for it in standard errors.

Rows often come in order of time, and then a residual is like the one before it. A learner's level drifts, and
random halves of its rows share the drift: a cluster that was chosen on one half looks good on the other,
though there is one truth.

The test is a rank version of Durbin and Watson's, pooled over learners. Each learner contributes the lag-one
product of the ranks of its held-out residuals, in the order of its rows. If rows are independent, all orders
are equally likely, whatever the noise and whatever the model, so that mean and variance of the product are
known exactly.

Sorting looks like time. If rows are sorted by the response or by a predictor, the errors of an imperfect
model are alike from row to row, and blocks of rows would be parts of the range. Such learners do not count,
unless a predictor shows time: it rises in even steps, as a year or a day does, or in whole numbers that never
repeat, as irregular dates do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from coterie._arrays import Array

# Goes into the notes of a partition.
IN_ORDER = (
    "Neighbouring rows of the learners depend on each other, as rows in time order do. So blocks of rows "
    "were held out instead of random rows. Standard errors allow for the dependence, and tests that assume "
    "independent rows were left out. If the order of the rows means nothing, shuffle them, or set order=None "
    "(--order none)."
)


@dataclass(frozen=True)
class SerialRule:
    """When rows count as dependent, and when they are only sorted."""

    # Standard deviations of the pooled statistic. Independent rows exceed them in .5 per mille of simulated
    # orders at most, from one learner of 4 rows to thirty of 80.
    alarm: float = 3.3
    # A lag-one correlation that is less than this changes standard errors by a twentieth, and no answer.
    negligible: float = 0.05
    # Rank correlation with the order of the rows from which on rows count as sorted.
    is_sorted: float = 0.95
    # A column is a clock if this share of its steps is the median step; some rows may be missing.
    even_steps: float = 0.75


SERIAL = SerialRule()


@dataclass(frozen=True)
class SerialScore:
    """What one learner says about the dependence of neighbouring rows.

    ``deviation`` is the lag-one product of the standardised ranks, less its mean for independent rows, and
    ``variance`` its variance for those. ``n_rows`` is zero if the learner does not count.
    """

    deviation: float = 0.0
    variance: float = 0.0
    n_rows: int = 0


def _is_clock(column: Array) -> bool:
    """Tell whether a column counts time: whole numbers that rise, or even steps."""
    steps = np.diff(column)
    # Dates as whole numbers, however irregular: no two rows have the same.
    if np.array_equal(column, np.round(column)) and ((steps > 0).all() or (steps < 0).all()):
        return True
    middle = float(np.median(steps))
    return middle != 0 and bool(np.isclose(steps, middle, atol=0.0).mean() >= SERIAL.even_steps)


def in_sorted_order(X: Array, y: Array) -> bool:
    """Tell whether a learner's rows are sorted by the response, of shape (n, C), or by a predictor.

    False where a predictor rises or falls as a clock or a calendar does: that is time.
    """
    columns = np.column_stack([y, X])
    index = np.arange(len(y)) - (len(y) - 1) / 2
    ranks = rankdata(columns, axis=0) - (len(y) + 1) / 2
    sizes = np.sqrt((ranks**2).sum(axis=0) * (index**2).sum())
    with np.errstate(invalid="ignore"):
        result = np.abs(index @ ranks) >= SERIAL.is_sorted * sizes
    is_sorted = np.flatnonzero(result & (sizes > 0))
    return len(is_sorted) > 0 and not any(_is_clock(columns[:, c]) for c in is_sorted if c >= y.shape[1])


def sorted_by_class(y: Array) -> bool:
    """Tell whether classes, in columns of shape (n, C), come in blocks, as in a sorted table."""
    changes = int(np.count_nonzero(np.any(y[1:] != y[:-1], axis=1)))
    return bool(changes < 2 * len(np.unique(y, axis=0)))


def serial_score(residuals: Array, X: Array, y: Array, *, of_classes: bool = False) -> SerialScore:
    """Return what a learner's held-out residuals say about the dependence of neighbouring rows.

    ``residuals`` and ``y`` have the shape (n, C), in the order of the rows; columns are averaged. It is
    nothing for a learner whose rows are sorted, or whose residuals are rounding. ``of_classes`` says that the
    response is classes: sorted ones have many ties.
    """
    n = len(residuals)
    if of_classes and sorted_by_class(y):
        return SerialScore()
    varied = np.ptp(residuals, axis=0) > 1e-9 * np.abs(y).max()
    if not varied.all() or in_sorted_order(X, y):
        return SerialScore()
    ranks = rankdata(residuals, axis=0).T
    scores = (ranks - ranks.mean(axis=1, keepdims=True)) / ranks.std(axis=1, keepdims=True)
    deviation = float(np.mean([column[1:] @ column[:-1] for column in scores])) + 1.0
    fourth = float(np.mean(np.sum(scores**4, axis=1)))
    # Mean and variance over all orders, for scores with sum zero and sum of squares n.
    variance = (n**2 - fourth) / n + (n**2 - 2 * fourth) / (n * (n - 1)) - 1.0
    return SerialScore(deviation, variance, n)


def rows_depend(scores: Iterable[SerialScore]) -> bool:
    """Tell whether neighbouring rows are alike, by the scores of all learners together.

    It is true for independent rows at most once in a thousand times.
    """
    pooled = np.array([(s.deviation, s.variance, s.n_rows) for s in scores]).sum(axis=0)
    deviation, variance, n_rows = pooled.tolist()
    return bool(deviation > SERIAL.alarm * variance**0.5 and deviation > SERIAL.negligible * n_rows)


def variance_inflation(residuals: Sequence[Array], folds: Sequence[Array]) -> float:
    """Return by what factor dependence between rows inflates the variance of a learner's mean.

    It is one plus twice the sum of the autocorrelations of the held-out residuals, pooled over learners and
    columns, up to the first that is not positive. ``folds`` says which fold held each row out: every fold has
    a level of its own, which is not dependence.
    """
    most = max(max(len(r) for r in residuals) // 4, 1)
    products, n_rows = np.zeros(most + 1), 0
    series = ((column, held) for each, held in zip(residuals, folds, strict=True) for column in each.T)
    for values, held_out in series:
        known = np.isfinite(values)
        filled, fold = np.where(known, values, 0.0), np.where(known, held_out, -1)
        for each in np.unique(fold[known]):
            filled[fold == each] -= filled[fold == each].mean()
        size = float(filled @ filled)
        if size > 0:
            lags = min(most, len(filled) - 1)
            padded = np.fft.rfft(filled, 2 * len(filled))
            products[: lags + 1] += np.fft.irfft(np.abs(padded) ** 2)[: lags + 1] * (len(filled) / size)
            n_rows += len(filled)
    if not n_rows:
        return 1.0
    correlations = products[1:] / n_rows
    stop = int(np.argmax(np.r_[correlations, -1.0] <= 0))
    return float(1 + 2 * correlations[:stop].sum())
