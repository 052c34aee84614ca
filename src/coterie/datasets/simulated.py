"""Learners drawn from known truths that are linear, of any shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


def learner_names(n_learners: int) -> NDArray[np.str_]:
    """Return names of learners from "learner 00" on, shape (n_learners,)."""
    # Equal width makes the sorted order of the names the order of the learners.
    width = max(2, len(str(n_learners - 1)))
    return np.array([f"learner {number:0{width}d}" for number in range(n_learners)], dtype=np.str_)


def check_counts(caller: str, **counts: int) -> None:
    """Refuse a number of something that is below one."""
    for name, value in counts.items():
        if value < 1:
            raise ValueError(f"The '{name}' argument of {caller} must be at least 1. Got {value}.")


@dataclass(frozen=True, eq=False)
class Simulation:  # numpydoc ignore=PR02
    """Learners drawn from known truths; a learner's rows are contiguous.

    Parameters
    ----------
    X : ndarray of float, shape (n_rows, n_features)
        Predictors of all learners' rows.
    y : ndarray of float, shape (n_rows,)
        Response, signal plus noise.
    groups : ndarray of str, shape (n_rows,)
        Learner of each row.
    truth : ndarray of int, shape (n_learners,), or None
        True label of each learner in the order of `learner_ids`; None where the learners do not
        fall into clusters.
    learner_ids : ndarray of str, shape (n_learners,)
        Names of the learners, in the order of their rows.
    signal : ndarray of float, shape (n_rows,)
        Response without noise.
    noise_variance : ndarray of float, shape (n_learners,)
        Variance of each learner's noise.
    coefficients : ndarray of float, shape (n_truths, n_features), or None, default=None
        Coefficients of each truth, where the truths are linear.
    """

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    groups: NDArray[np.str_]
    truth: NDArray[np.int64] | None
    learner_ids: NDArray[np.str_]
    signal: NDArray[np.float64]
    noise_variance: NDArray[np.float64]
    coefficients: NDArray[np.float64] | None = None


def _need(condition: object, name: str, what: str, got: object) -> None:
    """Raise a ValueError on an argument of make_linear_learners unless ``condition`` is true.

    The message: the argument ``name`` must ``what``, and is ``got``.
    """
    if not condition:
        raise ValueError(f"The '{name}' argument of make_linear_learners must {what}. Got {got}.")


def _per_learner(values: ArrayLike, n_learners: int, name: str) -> NDArray[np.float64]:
    """Return one value per learner, shape (n_learners,), from one for each or one for all."""
    array = np.array(values, dtype=np.float64)
    if array.ndim == 0:
        return np.full(n_learners, float(array))
    wanted_shape = f"be a number or have one entry per learner ({n_learners})"
    _need(array.shape == (n_learners,), name, wanted_shape, f"shape {array.shape}")
    return array


def _check_labels(labels: ArrayLike, n_learners: int, n_truths: int) -> NDArray[np.int64]:
    """Return the true cluster of each learner, shape (n_learners,); refuse any outside 0 to n_truths - 1."""
    array = np.asarray(labels)
    wanted_shape = f"have one entry per learner ({n_learners})"
    _need(array.shape == (n_learners,), "labels", wanted_shape, f"shape {array.shape}")
    wanted_values = f"hold integers from 0 to {n_truths - 1}, one truth each"
    _need(np.isin(array, np.arange(n_truths)).all(), "labels", wanted_values, np.unique(array).tolist())
    return array.astype(np.int64)


def make_linear_learners(
    n_learners: int = 30,
    n_truths: int = 3,
    n_rows: int | Sequence[int] | NDArray[np.int64] = 60,
    n_features: int = 6,
    noise_variance: float | ArrayLike | None = None,
    coefficients: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    random_state: int | np.random.Generator | None = 0,
) -> Simulation:
    """Draw learners whose truths are linear.

    Learner i with truth t(i) has Y = beta_t(i)' X + noise, with X ~ N(0, I), beta_t ~ N(0, I)
    drawn once per truth, and noise ~ N(0, noise_variance). The same seed gives the same X and
    the same standard normal noise whatever its variance.

    Parameters
    ----------
    n_learners : int, default=30
        Number of learners, L.
    n_truths : int, default=3
        Number of truths, K. Ignored where `coefficients` are given.
    n_rows : int or sequence of int of length n_learners, default=60
        Number of rows of each learner.
    n_features : int, default=6
        Number of predictors, p. Ignored where `coefficients` are given.
    noise_variance : float or array-like of shape (n_learners,), default=None
        Variance of the noise; None means n_features / 16.
    coefficients : array-like of float, shape (n_truths, n_features), default=None
        Coefficients of each truth; None draws them.
    labels : array-like of int, shape (n_learners,), default=None
        Truth of each learner; None gives learner i the truth i % n_truths.
    random_state : int, numpy.random.Generator or None, default=0
        Seed of the draw; None draws a new one.

    Returns
    -------
    Simulation
        The learners, with `truth` and `coefficients`.

    Examples
    --------
    >>> simulation = make_linear_learners(n_learners=4, n_truths=2, n_rows=5)
    >>> simulation.X.shape
    (20, 6)
    >>> simulation.truth.tolist()
    [0, 1, 0, 1]
    """
    rng = np.random.default_rng(random_state)
    check_counts("make_linear_learners", n_learners=n_learners)
    if coefficients is None:
        check_counts("make_linear_learners", n_truths=n_truths, n_features=n_features)
        beta = rng.standard_normal((n_truths, n_features))
    else:
        beta = np.array(coefficients, dtype=np.float64)
        is_matrix = beta.ndim == 2 and 0 not in beta.shape
        _need(is_matrix, "coefficients", "have shape (n_truths, n_features)", beta.shape)
    n_truths, n_features = beta.shape
    if labels is None:
        truth = np.arange(n_learners, dtype=np.int64) % n_truths
    else:
        truth = _check_labels(labels, n_learners, n_truths)

    rows_per_learner = _per_learner(n_rows, n_learners, "n_rows")
    are_counts = (rows_per_learner >= 1).all() and (rows_per_learner % 1 == 0).all()
    _need(are_counts, "n_rows", "be whole numbers of at least 1", np.unique(rows_per_learner).tolist())
    noise_variance = n_features / 16 if noise_variance is None else noise_variance
    variance = _per_learner(noise_variance, n_learners, "noise_variance")
    is_variance = (np.isfinite(variance) & (variance >= 0)).all()
    _need(is_variance, "noise_variance", "be finite and not negative", np.unique(variance).tolist())

    learner_of_row = np.repeat(np.arange(n_learners), rows_per_learner.astype(np.int64))
    X = rng.standard_normal((len(learner_of_row), n_features))
    signal = np.einsum("rp,rp->r", X, beta[truth[learner_of_row]])
    noise = rng.standard_normal(len(learner_of_row)) * np.sqrt(variance[learner_of_row])
    ids = learner_names(n_learners)
    return Simulation(X, signal + noise, ids[learner_of_row], truth, ids, signal, variance, beta)
