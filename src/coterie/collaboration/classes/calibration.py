"""Recalibration: probabilities that are too bold or too shy, mended where rows out of fold say that it pays.

Log-odds are multiplied by a slope and moved by a level for each class, the same for all learners.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

from coterie._arrays import Array

# Log-odds of what is nearly sure stay finite.
SUREST = 1e-6
# Rows of a prior around no recalibration at all.
PRIOR_ROWS = 10.0


def _logs(probabilities: Array) -> Array:
    """Return logarithms of probabilities, bounded below."""
    logs: Array = np.log(np.clip(probabilities, SUREST, 1.0))
    return logs


def recalibrated(probabilities: Array, calibration: Array) -> Array:
    """Return recalibrated probabilities (N, K) of K classes.

    The logarithms of the probabilities are multiplied by the slope ``calibration[0]``. The level of each
    class but the first, ``calibration[1:]``, is added, and rows are normalised.
    """
    log_probabilities = calibration[0] * _logs(probabilities)
    log_probabilities[:, 1:] += calibration[1:]
    changed_probabilities: Array = np.exp(log_softmax(log_probabilities, axis=1))
    return changed_probabilities


def fit_calibration(probabilities: Array, codes: Array, weights: Array) -> Array:
    """Return the slope and the K - 1 levels (K,) that minimise the penalised log loss.

    ``probabilities`` (n, K) are of rows with the classes ``codes`` (n,) and ``weights`` (n,). The penalty
    draws to slope one and levels zero, which change nothing, as `PRIOR_ROWS` rows would. The first class has
    no level: only differences between levels matter.
    """
    given_logs, rows = _logs(probabilities), np.arange(len(codes))
    indicators = np.eye(probabilities.shape[1])[codes]

    def objective(calibration: Array) -> tuple[float, Array]:
        """Return the penalised log loss of a calibration, and its gradient."""
        log_scores = calibration[0] * given_logs
        log_scores[:, 1:] += calibration[1:]
        log_probabilities = log_softmax(log_scores, axis=1)
        errors = (np.exp(log_probabilities) - indicators) * weights[:, None]
        distance = calibration - start
        gradient = (
            np.r_[float(np.sum(errors * given_logs)), errors[:, 1:].sum(axis=0)] + PRIOR_ROWS * distance
        )
        return float(
            -weights @ log_probabilities[rows, codes] + 0.5 * PRIOR_ROWS * distance @ distance
        ), gradient

    start = np.r_[1.0, np.zeros(probabilities.shape[1] - 1)]
    best_calibration: Array = minimize(objective, start, jac=True, method="L-BFGS-B").x
    return best_calibration


def learn_calibration(
    probabilities: Array, codes: Array, weights: Array, folds: Array, n_folds: int
) -> tuple[Array | None, Array]:
    """Learn recalibration; return it, or None where it does not pay, and the probabilities (N, K) under it.

    The probabilities are recalibrated without the row's fold, ``folds`` (N,). It pays if they have less
    log loss than before, by more than a standard error. Rows that no fold holds out (-1) do not count.
    """
    recalibrated_probabilities, is_held_out = probabilities.copy(), folds >= 0
    for fold in range(n_folds):
        validation, training = folds == fold, is_held_out & (folds != fold)
        if validation.any() and training.any():
            calibration = fit_calibration(probabilities[training], codes[training], weights[training])
            recalibrated_probabilities[validation] = recalibrated(probabilities[validation], calibration)
    rows = np.flatnonzero(is_held_out)
    savings = (_logs(recalibrated_probabilities) - _logs(probabilities))[rows, codes[rows]] * weights[rows]
    if not len(rows) or savings.mean() <= savings.std() / np.sqrt(len(rows)):
        return None, probabilities
    return fit_calibration(probabilities[rows], codes[rows], weights[rows]), recalibrated_probabilities
