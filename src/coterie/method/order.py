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
    """Tell whether a predictor's column (n,) counts time: whole numbers that rise or fall, or even steps.

    Rows that are sorted by such a column are in time order, so that dependence between them is real.
    """
    steps = np.diff(column)
    # Dates as whole numbers, however irregular: no two rows have the same.
    if np.array_equal(column, np.round(column)) and ((steps > 0).all() or (steps < 0).all()):
        return True
    median_step = float(np.median(steps))
    return median_step != 0 and bool(np.isclose(steps, median_step, atol=0.0).mean() >= SERIAL.even_steps)


def in_sorted_order(X: Array, y: Array) -> bool:
    """Tell whether a learner's rows are sorted by the response y (n, C) or by a predictor in X (n, p).

    Sorted means that ranks of a column correlate with the order of the rows. False where one of the sorted
    predictors is a clock or a calendar: that is time, and dependence between rows then counts.
    """
    columns = np.column_stack([y, X])
    # Ranks and positions are centred, so that their products are rank correlations times their norms.
    centred_index = np.arange(len(y)) - (len(y) - 1) / 2
    centred_ranks = rankdata(columns, axis=0) - (len(y) + 1) / 2
    norm_products = np.sqrt((centred_ranks**2).sum(axis=0) * (centred_index**2).sum())
    with np.errstate(invalid="ignore"):
        is_correlated = np.abs(centred_index @ centred_ranks) >= SERIAL.is_sorted * norm_products
    sorted_columns = np.flatnonzero(is_correlated & (norm_products > 0))
    return len(sorted_columns) > 0 and not any(
        _is_clock(columns[:, c]) for c in sorted_columns if c >= y.shape[1]
    )


def sorted_by_class(y: Array) -> bool:
    """Tell whether the classes of neighbouring rows, one-hot columns y (n, C), come in blocks.

    A table that is sorted by class has about as many changes as classes; twice as many still count as sorted.
    """
    n_changes = int(np.count_nonzero(np.any(y[1:] != y[:-1], axis=1)))
    return bool(n_changes < 2 * len(np.unique(y, axis=0)))


def serial_score(residuals: Array, X: Array, y: Array, *, of_classes: bool = False) -> SerialScore:
    """Return one learner's evidence that residuals of neighbouring rows are correlated.

    ``residuals`` (n, C) are out of fold and ``y`` (n, C) is the response, both in the order of the rows, as
    is X (n, p); columns are averaged. ``of_classes`` says that the response is classes, whose sorted rows
    have ties.

    The score is empty for a learner whose rows are sorted, or whose residuals are only rounding: their order
    says nothing about time.
    """
    n = len(residuals)
    if of_classes and sorted_by_class(y):
        return SerialScore()
    is_varied = np.ptp(residuals, axis=0) > 1e-9 * np.abs(y).max()
    if not is_varied.all() or in_sorted_order(X, y):
        return SerialScore()
    ranks_by_column = rankdata(residuals, axis=0).T
    standard_ranks = (ranks_by_column - ranks_by_column.mean(axis=1, keepdims=True)) / ranks_by_column.std(
        axis=1, keepdims=True
    )
    # Plus one: the lag-one product of independent rows has mean -1.
    deviation = float(np.mean([column[1:] @ column[:-1] for column in standard_ranks])) + 1.0
    fourth_moment = float(np.mean(np.sum(standard_ranks**4, axis=1)))
    # Mean and variance over all orders, for scores with sum zero and sum of squares n.
    variance = (n**2 - fourth_moment) / n + (n**2 - 2 * fourth_moment) / (n * (n - 1)) - 1.0
    return SerialScore(deviation, variance, n)


def rows_depend(scores: Iterable[SerialScore]) -> bool:
    """Tell whether neighbouring rows depend on each other, by the scores of all learners together.

    The pooled lag-one correlation must be significant, and large enough to matter. For independent rows this
    happens at most once in a thousand times.
    """
    score_sums = np.array([(s.deviation, s.variance, s.n_rows) for s in scores]).sum(axis=0)
    deviation, variance, n_rows = score_sums.tolist()
    return bool(deviation > SERIAL.alarm * variance**0.5 and deviation > SERIAL.negligible * n_rows)


def variance_inflation(residuals: Sequence[Array], folds: Sequence[Array]) -> float:
    """Return by what factor dependence between rows inflates the variance of a learner's mean.

    ``residuals`` holds one array (n, C) per learner, out of fold, and ``folds`` the fold (n,) that held each
    row out. Each fold's mean is taken off first: folds have models of their own, and different levels are not
    dependence.

    The factor is one plus twice the sum of the autocorrelations, pooled over learners and columns, up to the
    first that is not positive.
    """
    max_lag = max(max(len(r) for r in residuals) // 4, 1)
    lag_products, n_rows = np.zeros(max_lag + 1), 0
    series = (
        (column, learner_folds)
        for learner_residuals, learner_folds in zip(residuals, folds, strict=True)
        for column in learner_residuals.T
    )
    for column_residuals, held_out in series:
        is_known = np.isfinite(column_residuals)
        centred, fold_of_row = np.where(is_known, column_residuals, 0.0), np.where(is_known, held_out, -1)
        for fold in np.unique(fold_of_row[is_known]):
            centred[fold_of_row == fold] -= centred[fold_of_row == fold].mean()
        sum_of_squares = float(centred @ centred)
        if sum_of_squares > 0:
            n_lags = min(max_lag, len(centred) - 1)
            # Autocovariances by the Fourier transform; padding keeps the end from meeting the start.
            transform = np.fft.rfft(centred, 2 * len(centred))
            lag_products[: n_lags + 1] += np.fft.irfft(np.abs(transform) ** 2)[: n_lags + 1] * (
                len(centred) / sum_of_squares
            )
            n_rows += len(centred)
    if not n_rows:
        return 1.0
    correlations = lag_products[1:] / n_rows
    first_not_positive = int(np.argmax(np.r_[correlations, -1.0] <= 0))
    return float(1 + 2 * correlations[:first_not_positive].sum())
