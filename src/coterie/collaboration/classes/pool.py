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
    """Return logarithms of probabilities (..., K); nothing is held for impossible."""
    logs: Array = np.log(np.clip(probabilities, LEAST_CHANCE, 1.0))
    return logs


def from_logarithms(logs: Array) -> Array:
    """Return probabilities (n, K) from logarithms that are known up to a constant of the row."""
    probabilities: Array = np.exp(log_softmax(logs, axis=1))
    return probabilities


def pool_weights(logs: Array, codes: Array, counts: Array) -> Array:
    """Return the weights (E,) of logarithms (E, n, K) under which classes ``codes`` (n,) are most probable.

    Rows count by ``counts`` (n,).
    """
    n_predictors, rows = len(logs), np.arange(len(codes))
    equal, hits = np.full(n_predictors, 1 / n_predictors), np.eye(logs.shape[2])[codes]
    # A row of a rare class says much, and most rows say next to nothing.
    typical = log_softmax(logs.mean(axis=0), axis=1)[rows, codes]
    prior = -PRIOR_ROWS * float(np.average(typical, weights=counts)) if counts.any() else 1.0

    def objective(tried: Array) -> tuple[float, Array]:
        """Return the penalised log loss of weights, and its gradient."""
        weights = tried / tried.sum()
        answered = log_softmax(np.tensordot(weights, logs, axes=1), axis=1)
        off, away = (np.exp(answered) - hits) * counts[:, None], weights - equal
        slope = np.tensordot(logs, off, axes=2) + prior * away
        losses = float(-counts @ answered[rows, codes] + 0.5 * prior * away @ away)
        return losses, (slope - slope @ weights) / tried.sum()

    bounds = [(np.finfo(float).tiny, None)] * n_predictors
    result: Array = minimize(objective, equal, jac=True, method="L-BFGS-B", bounds=bounds).x
    shares: Array = result / result.sum()
    return shares


def cross_fitted_pool(
    probabilities: Array, codes: Array, counts: Array, folds: Array, n_folds: int
) -> tuple[Array, Array]:
    """Return weights (E,) of predictors' probabilities (E, N, K), and the pool (N, K) made without each fold.

    Who is NaN says nothing of a row. Rows that no fold holds out do not count, and are NaN.
    """
    logs = logarithms(probabilities)
    # The same of all classes changes nothing.
    logs[np.isnan(logs).any(axis=2)] = 0.0
    answers, seen = np.full(probabilities.shape[1:], np.nan), folds >= 0
    for fold in range(n_folds):
        validation, others = folds == fold, seen & (folds != fold)
        weights = pool_weights(logs[:, others], codes[others], counts[others])
        answers[validation] = from_logarithms(np.tensordot(weights, logs[:, validation], axes=1))
    return pool_weights(logs[:, seen], codes[seen], counts[seen]), answers
