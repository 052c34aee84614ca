"""The logarithmic pool of predictors: weighted means of the logarithms of their probabilities.

A mixture of probabilities believes who is unsure, a pool of their logarithms who is sure. Their errors
differ, so that the mean of the two is better than the mixture (benchmarks/quality/classes). The weights of a
pool are everybody's. They are not negative, sum to one, and stay near equal ones where rows are few. Free
sums and levels would recalibrate; that is a step of its own, which has to pay.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

from coterie._arrays import Array
from coterie.collaboration.classes.weights import LEAST_CHANCE

# Rows of a prior around equal weights. With twenty, weights learnt from four learners (the heart
# table of benchmarks/quality/classes) cost 2 % of the log loss; on large tables either is the same.
PRIOR_ROWS = 300.0


def logarithms(probabilities: Array) -> Array:
    """Return logarithms of probabilities (..., K), bounded below so that nothing counts as impossible."""
    logs: Array = np.log(np.clip(probabilities, LEAST_CHANCE, 1.0))
    return logs


def from_logarithms(logs: Array) -> Array:
    """Return probabilities (n, K) from logarithms that are known up to a constant of the row."""
    probabilities: Array = np.exp(log_softmax(logs, axis=1))
    return probabilities


def pool_weights(logs: Array, codes: Array, counts: Array) -> Array:
    """Return the weights (E,) of predictors' logarithms that minimise the log loss of their pool.

    ``logs`` (E, n, K) are logarithms of E predictors' probabilities, ``codes`` (n,) the classes and
    ``counts`` (n,) the weights of rows. A penalty draws to equal weights, as `PRIOR_ROWS` typical rows
    would. Weights are not negative and sum to one.
    """
    n_predictors, rows = len(logs), np.arange(len(codes))
    equal_weights, indicators = np.full(n_predictors, 1 / n_predictors), np.eye(logs.shape[2])[codes]
    # A row of a rare class says much, and most rows say next to nothing.
    typical_logs = log_softmax(logs.mean(axis=0), axis=1)[rows, codes]
    prior_strength = -PRIOR_ROWS * float(np.average(typical_logs, weights=counts)) if counts.any() else 1.0

    def objective(scaled_weights: Array) -> tuple[float, Array]:
        """Return the penalised log loss of weights (E,), and its gradient (E,).

        Weights need not sum to one here: they are divided by their sum, so that the minimiser needs only
        bounds.
        """
        weights = scaled_weights / scaled_weights.sum()
        log_probabilities = log_softmax(np.tensordot(weights, logs, axes=1), axis=1)
        errors, distance = (np.exp(log_probabilities) - indicators) * counts[:, None], weights - equal_weights
        gradient = np.tensordot(logs, errors, axes=2) + prior_strength * distance
        penalised_loss = float(
            -counts @ log_probabilities[rows, codes] + 0.5 * prior_strength * distance @ distance
        )
        return penalised_loss, (gradient - gradient @ weights) / scaled_weights.sum()

    bounds = [(np.finfo(float).tiny, None)] * n_predictors
    best_weights: Array = minimize(objective, equal_weights, jac=True, method="L-BFGS-B", bounds=bounds).x
    shares: Array = best_weights / best_weights.sum()
    return shares


def cross_fitted_pool(
    probabilities: Array, codes: Array, counts: Array, folds: Array, n_folds: int
) -> tuple[Array, Array]:
    """Return the weights (E,) of a pool of E predictors, and its probabilities (N, K) out of fold.

    The weights are learnt on all rows, the probabilities of a row with weights learnt without its fold.
    ``probabilities`` (E, N, K) are the predictors' own. One that is NaN in a row does not change the pool
    there. ``folds`` (N,) is the fold that holds each row out; rows at -1 do not count, and are NaN.
    """
    logs = logarithms(probabilities)
    # The same of all classes changes nothing.
    logs[np.isnan(logs).any(axis=2)] = 0.0
    pooled_probabilities, is_held_out = np.full(probabilities.shape[1:], np.nan), folds >= 0
    for fold in range(n_folds):
        validation, training = folds == fold, is_held_out & (folds != fold)
        weights = pool_weights(logs[:, training], codes[training], counts[training])
        pooled_probabilities[validation] = from_logarithms(np.tensordot(weights, logs[:, validation], axes=1))
    return pool_weights(logs[:, is_held_out], codes[is_held_out], counts[is_held_out]), pooled_probabilities
