"""How much each learner loses alone, as if its own model had seen all its rows.

Residuals out of fold come from models that saw a part of the rows. Small learners look helpless that way:
with 16 rows, an own model judged by halves errs twice as much as the one that the learner would use. Two
splits with different shares of the rows show how fast the error falls, and it is extrapolated to all rows. An
error is taken to be 1 + decay / m with m rows, times the learner's noise; the decay is one for all learners.

What is averaged over learners is sorted before: the last bit must not depend on their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from coterie._arrays import Array
from coterie.loss import Loss
from coterie.method.weight_limits import within_reach

# Losses of rows count up to this many times the squared robust spread of the learner's residuals.
ROW_BOUND = 25.0
# Pseudo-rows with the variance of the typical learner, where rows are too few to show their own.
PSEUDO_ROWS = 20.0
# Numbers of rows may be this many times what is typical: they differ more than other numbers do.
ROWS_REACH = 1000.0
# The largest decay that is looked for, in rows: the error with m rows is 1 + decay / m times the noise.
_MAX_DECAY = 1e6
# Shares of the rows that are nearer to each other show no fall of the error; a splitter's are the same.
_MIN_DIFFERENCE_OF_SHARES = 0.05


@dataclass(frozen=True)
class ComparedErrors:
    """Learners whose errors alone and with others can be compared.

    ``early`` and ``own`` (L,) are errors of own models fitted on a smaller and a larger share of the rows,
    ``others`` (L,) those with others; ``n_rows`` (L,) counts the rows behind them. ``variances`` (L,) are of
    the relative differences by row, ``distances`` (L,) the mean squared distances of predictions alone and
    with others.
    """

    early: Array
    own: Array
    others: Array
    n_rows: Array
    variances: Array
    distances: Array

    @property
    def relative_distances(self) -> Array:
        """How far predictions alone and with others are from each other, beside their errors."""
        apart: Array = self.distances / np.sqrt(self.own * self.others)
        return apart

    @property
    def typical(self) -> float:
        """The geometric mean of the learners' variances of relative differences; one without learners."""
        return float(np.exp(np.sort(np.log(self.variances)).mean())) if len(self.variances) else 1.0

    def within_reach(self) -> ComparedErrors:
        """Return the same with each learner's numbers bounded by multiples of what is typical.

        No learner can then outweigh the others in the gain model. Errors are in units of those with others,
        which are one.
        """
        early, own, distances = (
            within_reach(errors / self.others) for errors in (self.early, self.own, self.distances)
        )
        return ComparedErrors(
            early=early,
            own=own,
            others=np.ones(len(own)),
            n_rows=within_reach(self.n_rows, ROWS_REACH),
            variances=within_reach(self.variances),
            distances=distances,
        )

    def errors(self, share: Array | float, inflation: Array | float, typical: float) -> Array:
        """Return the standard errors of log ratios (L,), of models fitted on a share of the rows.

        The models of different folds share rows, so their losses are not independent. The correction is that
        of Nadeau and Bengio (2003): with F folds a mean over rows has 1 + F / (F - 1) times the variance that
        independent rows would give it. ``inflation`` is the factor for rows that depend on each other; few
        rows vary as the ``typical`` learner's do.
        """
        shrunken_variances = (self.n_rows * self.variances + PSEUDO_ROWS * typical) / (
            self.n_rows + PSEUDO_ROWS
        )
        standard_errors: Array = np.sqrt((1 + 1 / share) * inflation * shrunken_variances / self.n_rows)
        return standard_errors


@dataclass(frozen=True)
class LearnerErrors:
    """What one learner's rows say of its errors: ``errors`` (3,) are early, alone and with others.

    Where these are above rounding on at least two rows, ``n_rows`` counts the rows, ``variance`` is that of
    the relative differences by row, and predictions alone and with others are at a squared ``distance``. Else
    ``n_rows`` is zero; ``exact`` tells whether there is no error at all.
    """

    errors: tuple[float, float, float] = (0.0, 0.0, 0.0)
    n_rows: int = 0
    variance: float = 0.0
    distance: float = 0.0
    exact: bool = False


def measure(
    early: Array, own_residuals: Array, others: Array, weights: Array | None, loss: Loss, rounding: float
) -> LearnerErrors:
    """Measure one learner's errors by three kinds of residuals (n, C), NaN where a row was not held out.

    ``early`` and ``own_residuals`` are of own models of fewer and of more rows, ``others`` of predictions
    with others. Only rows that all three have count, so that the same rows are compared. Errors below
    ``rounding`` count as none.
    """
    residuals = early, own_residuals, others
    held_out = np.all([np.isfinite(of_kind).all(axis=1) for of_kind in residuals], axis=0)
    if np.count_nonzero(held_out) < 2:
        return LearnerErrors()
    bound = ROW_BOUND * loss.noise_level(early[held_out])
    early_losses, own_losses, other_losses = (
        loss.by_row(of_kind[held_out], bound if bound > 0 else None) for of_kind in residuals
    )
    row_weights = np.ones(len(own_losses))
    if weights is not None:
        row_weights = weights[held_out] / max(weights[held_out].mean(), 1e-300)
    errors = [float(np.mean(row_weights * losses)) for losses in (early_losses, own_losses, other_losses)]
    # The difference of two residuals of a row is that of the predictions.
    distances = loss.by_row(own_residuals[held_out] - others[held_out], bound if bound > 0 else None)
    exact = max(errors[1:]) <= rounding
    if exact or not np.isfinite(errors).all():
        return LearnerErrors(exact=exact)
    errors = [max(error, rounding, 1e-12 * max(errors)) for error in errors]
    relative_differences = row_weights * (own_losses / errors[1] - other_losses / errors[2])
    return LearnerErrors(
        errors=(errors[0], errors[1], errors[2]),
        n_rows=len(own_losses),
        variance=max(float(relative_differences.var(ddof=1)), 1e-12),
        distance=float(np.mean(row_weights * distances)),
    )


def compared(each: Sequence[LearnerErrors]) -> tuple[ComparedErrors, Array, Array]:
    """Return the errors of the learners who could be compared, who they are (L,), and who is exact (L,).

    Who is exact has no error at all, alone or with others, so that nothing is left to compare.
    """
    # The six columns are in the order of the fields of `ComparedErrors`.
    rows = [(*one.errors, float(one.n_rows), one.variance, one.distance) for one in each if one.n_rows]
    measured, exact = np.array([one.n_rows > 0 for one in each]), np.array([one.exact for one in each])
    return ComparedErrors(*np.array(rows).reshape(-1, 6).T), measured, exact


def compare(
    early: Sequence[Array],
    own_residuals: Sequence[Array],
    others: Sequence[Array],
    weights: Sequence[Array | None],
    loss: Loss,
    rounding: Array,
) -> tuple[ComparedErrors, Array, Array]:
    """Compare learners by their residuals (n, C); return also who could be compared, and who is exact.

    ``early`` and ``own_residuals`` are of own models fitted on a smaller and a larger share of the rows.
    Errors below ``rounding`` (L,) are no errors: who has no other is exact, and cannot be compared.
    """
    by_learner = zip(early, own_residuals, others, weights, rounding.tolist(), strict=True)
    return compared(
        [
            measure(
                early=early_residuals,
                own_residuals=late_residuals,
                others=others_residuals,
                weights=row_weights,
                loss=loss,
                rounding=smallest_error,
            )
            for early_residuals, late_residuals, others_residuals, row_weights, smallest_error in by_learner
        ]
    )


def decay_of(compared: ComparedErrors, shares: tuple[float, float]) -> float:
    """Return the decay of the learning curve 1 + decay / m, from errors of models of two shares of the rows.

    It is the decay with which errors would fall, from the smaller share to the larger, as much as they were
    seen to. Learners count by their rows: with few rows, errors fall faster than the curve says. No error
    falls by more than the ratio of the shares, whatever the decay.
    """
    smaller, larger = shares
    if smaller + _MIN_DIFFERENCE_OF_SHARES >= larger or not len(compared.own):
        return 0.0
    largest_ratio = larger / smaller
    n_rows = np.sort(compared.n_rows)
    relative_falls = np.minimum(compared.early / compared.own, largest_ratio) - 1
    seen_fall = float(np.sort(compared.n_rows * relative_falls).mean())

    def excess_fall(decay: float) -> float:
        """Return how much more errors would fall with a decay than they were seen to."""
        falls = decay * (1 / smaller - 1 / larger) / (1 + decay / (larger * n_rows))
        return float(falls.mean()) - seen_fall

    if excess_fall(0.0) >= 0:
        return 0.0
    return float(brentq(excess_fall, 0.0, _MAX_DECAY)) if excess_fall(_MAX_DECAY) > 0 else _MAX_DECAY


def reached_with_all(n_rows: Array, share: Array | float, decay: float) -> Array:
    """Return the error of a model of all n rows over that of a share of them, (L,), by 1 + decay / m."""
    ratio: Array = (1 + decay / n_rows) / (1 + decay / (share * n_rows))
    return ratio
