"""Friedman's second and third benchmark functions, the truths of the paper's Simulation 2."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def _first_four(X: ArrayLike, caller: str) -> NDArray[np.float64]:
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or X.shape[1] < 4:
        raise ValueError(
            f"The 'X' argument of {caller} must have two dimensions and at least 4 columns. "
            f"Got an array of shape {X.shape}."
        )
    return X[:, :4].T


def friedman2(X: ArrayLike) -> NDArray[np.float64]:
    """Evaluate Friedman's second function, without noise.

    f(X) = sqrt(X1^2 + (X2 X3 - 1 / (X2 X4))^2).

    Parameters
    ----------
    X : array-like of float, shape (n_rows, n_features)
        Predictors; only the first four columns count.

    Returns
    -------
    ndarray of float, shape (n_rows,)
        The noiseless response.

    Examples
    --------
    >>> float(friedman2([[3.0, 1.0, 5.0, 1.0]])[0])
    5.0
    """
    x1, x2, x3, x4 = _first_four(X, "friedman2")
    value: NDArray[np.float64] = np.hypot(x1, x2 * x3 - 1 / (x2 * x4))
    return value


def friedman3(X: ArrayLike) -> NDArray[np.float64]:
    """Evaluate Friedman's third function, without noise.

    f(X) = arctan((X2 X3 - 1 / (X2 X4)) / X1). The paper prints it without one parenthesis;
    this is Friedman's.

    Parameters
    ----------
    X : array-like of float, shape (n_rows, n_features)
        Predictors; only the first four columns count.

    Returns
    -------
    ndarray of float, shape (n_rows,)
        The noiseless response, between -pi/2 and pi/2.

    Examples
    --------
    >>> round(float(friedman3([[4.0, 1.0, 5.0, 1.0]])[0]), 4)
    0.7854
    """
    x1, x2, x3, x4 = _first_four(X, "friedman3")
    # X1 = 0 is in the domain, and the arctangent has a limit there.
    with np.errstate(divide="ignore"):
        value: NDArray[np.float64] = np.arctan((x2 * x3 - 1 / (x2 * x4)) / x1)
    return value


def friedman_predictors(
    n_rows: int = 100,
    n_features: int = 500,
    random_state: int | np.random.Generator | None = 0,
) -> NDArray[np.float64]:
    """Draw the predictors of Friedman's functions.

    X1 ~ U(0, 100), X2 ~ U(40 pi, 560 pi), X3 ~ U(0, 1), X4 ~ U(1, 11), and every further column
    ~ N(0, 1), which no function uses.

    Parameters
    ----------
    n_rows : int, default=100
        Number of rows.
    n_features : int, default=500
        Number of columns, at least 4.
    random_state : int, numpy.random.Generator or None, default=0
        Seed of the draw; None draws a new one.

    Returns
    -------
    ndarray of float, shape (n_rows, n_features)
        The predictors.

    Examples
    --------
    >>> friedman_predictors(n_rows=2, n_features=6).shape
    (2, 6)
    """
    if n_rows < 1:
        raise ValueError(f"The 'n_rows' argument of friedman_predictors must be at least 1. Got {n_rows}.")
    if n_features < 4:
        raise ValueError(
            "The 'n_features' argument of friedman_predictors must be at least 4, because "
            f"Friedman's functions use four predictors. Got {n_features}."
        )
    rng = np.random.default_rng(random_state)
    low = np.array([0.0, 40 * np.pi, 0.0, 1.0])
    high = np.array([100.0, 560 * np.pi, 1.0, 11.0])
    used = rng.uniform(low, high, size=(n_rows, 4))
    return np.hstack([used, rng.standard_normal((n_rows, n_features - 4))])
