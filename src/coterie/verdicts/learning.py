"""How much each learner loses alone, as if its own model had seen all its rows.

Residuals out of fold come from models that saw a part of the rows. Small learners look helpless that way:
with 16 rows, an own model judged by halves errs twice as much as the one that the learner would use. Two
splits with different shares of the rows show how fast the error falls, and it is extrapolated to all rows. An
error is taken to be 1 + decay / m with m rows, times the learner's noise; the decay is one for all learners.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from coterie._arrays import Array
from coterie.loss import Loss

# Losses of rows count up to this many times the squared robust spread of the learner's residuals.
ROW_BOUND = 25.0
# Pseudo-rows with the variance of the typical learner, where rows are too few to show their own.
PSEUDO_ROWS = 20.0
_MOST_DECAY = 1e6


@dataclass(frozen=True)
class Compared:
    """Learners whose errors alone and with others can be compared.

    ``early`` and ``alone`` (L,) are errors of own models fitted on a smaller and a larger share of the rows,
    ``others`` (L,) those with others; ``n_rows`` (L,) counts the rows behind them. ``variances`` (L,) are of
    the relative differences by row.
    """

    early: Array
    alone: Array
    others: Array
    n_rows: Array
    variances: Array

    def errors(self, share: float, inflation: float) -> Array:
        """Return the standard errors of log ratios (L,), of models fitted on a share of the rows.

        The models of different folds share rows, so their losses are not independent. The correction is that
        of Nadeau and Bengio (2003): with F folds a mean over rows has 1 + F / (F - 1) times the variance that
        independent rows would give it. ``inflation`` is the factor for rows that depend on each other.
        """
        typical = np.exp(np.log(self.variances).mean()) if len(self.variances) else 1.0
        pooled = (self.n_rows * self.variances + PSEUDO_ROWS * typical) / (self.n_rows + PSEUDO_ROWS)
        spread: Array = np.sqrt((1 + 1 / share) * inflation * pooled / self.n_rows)
        return spread


def compare(
    early: Sequence[Array],
    alone: Sequence[Array],
    others: Sequence[Array],
    weights: Sequence[Array | None],
    loss: Loss,
    rounding: Array,
) -> tuple[Compared, Array]:
    """Compare learners by their residuals (n, C); return also who could be compared, of shape (L,).

    ``early`` and ``alone`` are of own models fitted on a smaller and a larger share of the rows. Errors
    below ``rounding`` (L,) are no errors: who has no other cannot be compared.
    """
    rows, measured = [], np.zeros(len(alone), dtype=bool)
    for j, parts in enumerate(zip(early, alone, others, strict=True)):
        known = np.all([np.isfinite(part).all(axis=1) for part in parts], axis=0)
        if np.count_nonzero(known) < 2:
            continue
        bound = ROW_BOUND * loss.noise_level(parts[0][known])
        first, own, shared = (loss.by_row(part[known], bound if bound > 0 else None) for part in parts)
        given = weights[j]
        weight = np.ones(len(own)) if given is None else given[known] / max(given[known].mean(), 1e-300)
        errors = [float(np.mean(weight * part)) for part in (first, own, shared)]
        if max(errors[1:]) <= rounding[j] or not np.isfinite(errors).all():
            continue
        errors = [max(error, rounding[j], 1e-12 * max(errors)) for error in errors]
        relative = weight * (own / errors[1] - shared / errors[2])
        measured[j] = True
        rows.append((*errors, float(len(own)), max(float(relative.var(ddof=1)), 1e-12)))
    columns = np.array(rows).reshape(-1, 5).T
    return Compared(*columns), measured


def decay_of(compared: Compared, shares: tuple[float, float]) -> float:
    """Return how fast errors alone fall with more rows, from the errors at the two shares of the rows."""
    smaller, larger = shares
    if smaller >= larger or not len(compared.alone):
        return 0.0
    n = compared.n_rows
    fall = np.mean(compared.early / compared.others) / np.mean(compared.alone / compared.others)

    def excess(decay: float) -> float:
        return float(np.mean((1 + decay / (smaller * n)) / (1 + decay / (larger * n))) - fall)

    if excess(0.0) >= 0:
        return 0.0
    return float(brentq(excess, 0.0, _MOST_DECAY)) if excess(_MOST_DECAY) > 0 else _MOST_DECAY


def reached_with_all(n_rows: Array, share: float, decay: float) -> Array:
    """Return the error with all rows over that with a share of them, of shape (L,)."""
    ratio: Array = (1 + decay / n_rows) / (1 + decay / (share * n_rows))
    return ratio
