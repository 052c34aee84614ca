"""Logistic regression on few rows, with a ridge whose penalty is chosen by rows left out.

Each class has its own line against the others; probabilities of more than two classes are normalised. All
penalties are fitted at once, by Newton's steps on the rows' principal directions. What a row would lose if it
were left out has a closed form at the solution, so the choice of the penalty costs no further fits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from coterie._arrays import Array

# Newton's steps at most, and the change of a coefficient in units of its predictor at which they end.
STEPS, TOLERANCE = 30, 1e-7
# A smaller curvature p (1 - p) of the loss would make a Newton step that is far too long.
MIN_CURVATURE = 1e-10
# What is nearly sure would make a working response that is nearly infinite.
LEAST_SPREAD = 0.01


def deviance(target: Array, log_odds: Array) -> Array:
    """Return minus the log of the probability of each response, nought or one, given its log-odds."""
    losses: Array = np.logaddexp(0.0, log_odds) - target * log_odds
    return losses


def _penalised(Z: Array, target: Array, weights: Array, alphas: Array) -> tuple[Array, Array]:
    """Fit a logistic ridge regression for each of A penalties; return coefficients (A, r) and losses (A,).

    ``Z`` (n, r) has a column of ones behind the predictors, whose coefficient, the intercept, is not
    penalised. ``target`` (n,) is nought or one, and rows are weighted by ``weights`` (n,).

    A loss is the weighted log loss of rows left out in turn, by a closed form at the solution. With one
    penalty there is nothing to choose, and it is zero.
    """
    n_penalties, n_coefficients = len(alphas), Z.shape[1]
    ridge = np.tile(alphas[:, None], (1, n_coefficients))
    # A trace of a penalty keeps the system regular.
    ridge[:, -1] = 1e-6
    class_share = float(weights @ target / weights.sum())
    coefficients = np.zeros((n_penalties, n_coefficients))
    coefficients[:, -1] = np.log(class_share / (1 - class_share))

    def objective(tried: Array) -> Array:
        """Return the penalised log losses of coefficients, one for each penalty."""
        losses: Array = deviance(target, tried @ Z.T) @ weights + 0.5 * np.einsum(
            "ar,ar,ar->a", ridge, tried, tried
        )
        return losses

    losses = objective(coefficients)
    # Newton's method for all penalties at once; the loss never rises, as steps that are too far are halved.
    for _ in range(STEPS):
        probabilities = expit(coefficients @ Z.T)
        curvature = np.maximum(probabilities * (1 - probabilities), MIN_CURVATURE) * weights
        gradient = ((probabilities - target) * weights) @ Z + ridge * coefficients
        hessian = (Z.T * curvature[:, None]) @ Z
        hessian[:, np.arange(n_coefficients), np.arange(n_coefficients)] += ridge
        step = np.linalg.solve(hessian, gradient[..., None])[..., 0]
        step_lengths = np.ones((n_penalties, 1))
        for _ in range(STEPS):
            new_losses = objective(coefficients - step_lengths * step)
            too_far = new_losses > losses + 1e-9 * np.abs(losses)
            if not too_far.any():
                break
            step_lengths[too_far] /= 2
        coefficients, losses = (
            coefficients - step_lengths * step,
            objective(coefficients - step_lengths * step),
        )
        if np.abs(step).max() < TOLERANCE:
            break
    # One penalty leaves nothing to choose: a loss of zero stands in.
    if n_penalties == 1:
        return coefficients, np.zeros(1)
    log_odds = coefficients @ Z.T
    probabilities = expit(log_odds)
    curvature = np.maximum(probabilities * (1 - probabilities), MIN_CURVATURE) * weights
    hessian = (Z.T * curvature[:, None]) @ Z
    hessian[:, np.arange(n_coefficients), np.arange(n_coefficients)] += ridge
    # By a row's leverage, one Newton step tells how its log-odds would change if it were left out.
    leverage = np.einsum(
        "nr,arn->an", Z, np.linalg.solve(hessian, np.broadcast_to(Z.T, (n_penalties, *Z.T.shape)))
    )
    left_out_changes = (
        weights * leverage * (probabilities - target) / np.maximum(1 - curvature * leverage, 1e-3)
    )
    return coefficients, deviance(target, log_odds + left_out_changes) @ weights


class QuickLogistic(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Logistic regression on standardised predictors whose penalty loses least with each row left out.

    Parameters
    ----------
    alphas : tuple of float, default=1e-2 to 1e4 in steps of three quarters of a decade
        Penalties to choose from.
    """

    def __init__(self, alphas: tuple[float, ...] = tuple(np.logspace(-2, 4, 9).tolist())) -> None:
        self.alphas = alphas

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> QuickLogistic:
        """Fit the coefficients to X (n, p) and classes y (n,), rows weighted by ``sample_weight`` (n,).

        Standardised predictors are rotated to their principal directions, where there are at most as
        many as rows. Each class chooses its own penalty; two classes have one line, that of the
        second.
        """
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
        X, y, weights = X[weights > 0], y[weights > 0], weights[weights > 0]
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"QuickLogistic needs two classes. Got one class: {self.classes_[0]!r}.")
        x_means = weights @ X / weights.sum()
        centred = X - x_means
        spread = np.sqrt(weights @ np.square(centred) / weights.sum())
        # A spread that is rounding error: the column is constant, and gets no slope.
        spread[spread <= 10 * np.finfo(float).eps * np.abs(x_means)] = np.inf
        spread[spread == 0] = np.inf
        left_vectors, singular_values, right_vectors = np.linalg.svd(centred / spread, full_matrices=False)
        principal_rows = np.column_stack([left_vectors * singular_values, np.ones(len(X))])
        alphas = np.asarray(self.alphas, dtype=float)
        has_more_than_two = len(self.classes_) > 2
        class_lines = []
        for code in range(len(self.classes_)) if has_more_than_two else (1,):
            coefficients, losses = _penalised(principal_rows, (codes == code).astype(float), weights, alphas)
            class_lines.append(coefficients[losses.argmin()])
        rotated_lines = np.array(class_lines)
        self.coef_ = rotated_lines[:, :-1] @ right_vectors / spread
        self.intercept_ = rotated_lines[:, -1] - self.coef_ @ x_means
        return self

    def decision_function(self, X: Any) -> Array:
        """Return the log-odds of each class against the others; of two classes, of the second."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        log_odds: Array = X @ self.coef_.T + self.intercept_
        return log_odds[:, 0] if len(self.classes_) == 2 else log_odds

    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of the classes, of shape (n, number of classes)."""
        probabilities = expit(self.decision_function(X))
        if probabilities.ndim == 1:
            return np.column_stack([1 - probabilities, probabilities])
        # All lines may be sure that it is not their class.
        probabilities = np.maximum(probabilities, np.finfo(float).tiny)
        normalised: Array = probabilities / probabilities.sum(axis=1, keepdims=True)
        return normalised

    def predict(self, X: Any) -> Array:
        """Return the most probable class of each row."""
        class_positions = self.predict_proba(X).argmax(axis=1)
        predicted: Array = self.classes_[class_positions]
        return predicted
