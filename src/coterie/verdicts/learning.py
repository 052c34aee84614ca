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
# Numbers of rows differ more than other numbers do.
ROWS_REACH = 1000.0
_MOST_DECAY = 1e6
# Shares of the rows that are nearer to each other show no fall of the error; a splitter's are the same.
_LEAST_STEP = 0.05


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
        """The variance of the typical learner."""
        return float(np.exp(np.sort(np.log(self.variances)).mean())) if len(self.variances) else 1.0

    def within_reach(self) -> ComparedErrors:
        """Return the same with no learner's numbers far from what is typical; errors are then ratios."""
        ratios = (self.early, self.own, self.distances)
        early, alone, distances = (within_reach(part / self.others) for part in ratios)
        rows, variances = within_reach(self.n_rows, ROWS_REACH), within_reach(self.variances)
        return ComparedErrors(early, alone, np.ones(len(alone)), rows, variances, distances)

    def errors(self, share: Array | float, inflation: Array | float, typical: float) -> Array:
        """Return the standard errors of log ratios (L,), of models fitted on a share of the rows.

        The models of different folds share rows, so their losses are not independent. The correction is that
        of Nadeau and Bengio (2003): with F folds a mean over rows has 1 + F / (F - 1) times the variance that
        independent rows would give it. ``inflation`` is the factor for rows that depend on each other; few
        rows vary as the ``typical`` learner's do.
        """
        pooled = (self.n_rows * self.variances + PSEUDO_ROWS * typical) / (self.n_rows + PSEUDO_ROWS)
        spread: Array = np.sqrt((1 + 1 / share) * inflation * pooled / self.n_rows)
        return spread


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
    """Measure one learner by its residuals (n, C); see `compare`."""
    parts = early, own_residuals, others
    known = np.all([np.isfinite(part).all(axis=1) for part in parts], axis=0)
    if np.count_nonzero(known) < 2:
        return LearnerErrors()
    bound = ROW_BOUND * loss.noise_level(early[known])
    first, own, shared = (loss.by_row(part[known], bound if bound > 0 else None) for part in parts)
    weight = np.ones(len(own)) if weights is None else weights[known] / max(weights[known].mean(), 1e-300)
    errors = [float(np.mean(weight * part)) for part in (first, own, shared)]
    between = loss.by_row(own_residuals[known] - others[known], bound if bound > 0 else None)
    exact = max(errors[1:]) <= rounding
    if exact or not np.isfinite(errors).all():
        return LearnerErrors(exact=exact)
    errors = [max(error, rounding, 1e-12 * max(errors)) for error in errors]
    relative = weight * (own / errors[1] - shared / errors[2])
    variance = max(float(relative.var(ddof=1)), 1e-12)
    distance = float(np.mean(weight * between))
    return LearnerErrors((errors[0], errors[1], errors[2]), len(own), variance, distance)


def compared(each: Sequence[LearnerErrors]) -> tuple[ComparedErrors, Array, Array]:
    """Return those who could be compared, who they are, and who is exact."""
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
    each = zip(early, own_residuals, others, weights, rounding.tolist(), strict=True)
    return compared(
        [measure(first, own, shared, weight, loss, least) for first, own, shared, weight, least in each]
    )


def decay_of(compared: ComparedErrors, shares: tuple[float, float]) -> float:
    """Return how fast errors alone fall with more rows, from the errors at the two shares of the rows.

    Learners count by their rows: with few rows, errors fall faster than 1 + decay / m says. No error falls by
    more than the ratio of the shares, whatever the decay.
    """
    smaller, larger = shares
    if smaller + _LEAST_STEP >= larger or not len(compared.own):
        return 0.0
    steepest = larger / smaller
    n_rows = np.sort(compared.n_rows)
    falls = np.minimum(compared.early / compared.own, steepest) - 1
    seen = float(np.sort(compared.n_rows * falls).mean())

    def missing(decay: float) -> float:
        """Return how much more errors would fall with a decay than they were seen to."""
        return float((decay * (1 / smaller - 1 / larger) / (1 + decay / (larger * n_rows))).mean()) - seen

    if missing(0.0) >= 0:
        return 0.0
    return float(brentq(missing, 0.0, _MOST_DECAY)) if missing(_MOST_DECAY) > 0 else _MOST_DECAY


def reached_with_all(n_rows: Array, share: Array | float, decay: float) -> Array:
    """Return the error with all rows over that with a share of them, of shape (L,)."""
    ratio: Array = (1 + decay / n_rows) / (1 + decay / (share * n_rows))
    return ratio
