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
    """Return probabilities (N, K) of all classes after recalibration by a slope and K - 1 levels."""
    logs = calibration[0] * _logs(probabilities)
    logs[:, 1:] += calibration[1:]
    changed: Array = np.exp(log_softmax(logs, axis=1))
    return changed


def fit_calibration(probabilities: Array, codes: Array, weights: Array) -> Array:
    """Return the slope and the levels (K,) under which the classes of rows are most probable."""
    logs, rows = _logs(probabilities), np.arange(len(codes))
    hits = np.eye(probabilities.shape[1])[codes]

    def objective(tried: Array) -> tuple[float, Array]:
        """Return the penalised log loss of a calibration, and its gradient."""
        scaled = tried[0] * logs
        scaled[:, 1:] += tried[1:]
        answered = log_softmax(scaled, axis=1)
        off = (np.exp(answered) - hits) * weights[:, None]
        away = tried - start
        slope = np.r_[float(np.sum(off * logs)), off[:, 1:].sum(axis=0)] + PRIOR_ROWS * away
        return float(-weights @ answered[rows, codes] + 0.5 * PRIOR_ROWS * away @ away), slope

    start = np.r_[1.0, np.zeros(probabilities.shape[1] - 1)]
    result: Array = minimize(objective, start, jac=True, method="L-BFGS-B").x
    return result


def learn_calibration(
    probabilities: Array, codes: Array, weights: Array, folds: Array, n_folds: int
) -> tuple[Array | None, Array]:
    """Return the calibration, None where it does not pay, and the probabilities (N, K) out of fold under it.

    It pays where rows that have not seen it lose less log loss, by more than a standard error. Rows that no
    fold holds out do not count.
    """
    changed, seen = probabilities.copy(), folds >= 0
    for fold in range(n_folds):
        validation, others = folds == fold, seen & (folds != fold)
        if validation.any() and others.any():
            fitted = fit_calibration(probabilities[others], codes[others], weights[others])
            changed[validation] = recalibrated(probabilities[validation], fitted)
    rows = np.flatnonzero(seen)
    saved = (_logs(changed) - _logs(probabilities))[rows, codes[rows]] * weights[rows]
    if not len(rows) or saved.mean() <= saved.std() / np.sqrt(len(rows)):
        return None, probabilities
    return fit_calibration(probabilities[rows], codes[rows], weights[rows]), changed
