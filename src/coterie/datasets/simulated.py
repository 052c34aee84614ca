"""Learners drawn from known truths: the paper's simulations, and linear learners of any shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from coterie.datasets.friedman import friedman2, friedman3, friedman_predictors
from coterie.datasets.splitting import learner_names


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
    sensitive : ndarray of float, shape (n_learners,), or None, default=None
        Value of the sensitive variable of each learner, where there is one. It is never in `X`.
    """

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    groups: NDArray[np.str_]
    truth: NDArray[np.int64] | None
    learner_ids: NDArray[np.str_]
    signal: NDArray[np.float64]
    noise_variance: NDArray[np.float64]
    coefficients: NDArray[np.float64] | None = None
    sensitive: NDArray[np.float64] | None = None


def _check_counts(caller: str, **counts: int) -> None:
    for name, value in counts.items():
        if value < 1:
            raise ValueError(f"The '{name}' argument of {caller} must be at least 1. Got {value}.")


def _per_learner(values: ArrayLike, n_learners: int, name: str) -> NDArray[np.float64]:
    array = np.array(values, dtype=np.float64)
    if array.ndim == 0:
        return np.full(n_learners, float(array))
    if array.shape != (n_learners,):
        raise ValueError(
            f"The '{name}' argument of make_linear_learners must be a number or have one entry per "
            f"learner ({n_learners}). Got shape {array.shape}."
        )
    return array


def _check_labels(labels: ArrayLike, n_learners: int, n_truths: int) -> NDArray[np.int64]:
    array = np.asarray(labels)
    if array.shape != (n_learners,):
        raise ValueError(
            "The 'labels' argument of make_linear_learners must have one entry per learner "
            f"({n_learners}). Got shape {array.shape}."
        )
    if not np.isin(array, np.arange(n_truths)).all():
        raise ValueError(
            "The 'labels' argument of make_linear_learners must hold integers from 0 to "
            f"{n_truths - 1}, one truth each. Got {np.unique(array).tolist()}."
        )
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
    _check_counts("make_linear_learners", n_learners=n_learners)
    if coefficients is None:
        _check_counts("make_linear_learners", n_truths=n_truths, n_features=n_features)
        beta = rng.standard_normal((n_truths, n_features))
    else:
        beta = np.array(coefficients, dtype=np.float64)
        if beta.ndim != 2 or 0 in beta.shape:
            raise ValueError(
                "The 'coefficients' argument of make_linear_learners must have shape "
                f"(n_truths, n_features). Got {beta.shape}."
            )
    n_truths, n_features = beta.shape
    if labels is None:
        truth = np.arange(n_learners, dtype=np.int64) % n_truths
    else:
        truth = _check_labels(labels, n_learners, n_truths)

    sizes = _per_learner(n_rows, n_learners, "n_rows")
    if (sizes < 1).any() or (sizes % 1 != 0).any():
        raise ValueError(
            "The 'n_rows' argument of make_linear_learners must be whole numbers of at least 1. "
            f"Got {np.unique(sizes).tolist()}."
        )
    variance = _per_learner(
        n_features / 16 if noise_variance is None else noise_variance, n_learners, "noise_variance"
    )
    if not (np.isfinite(variance) & (variance >= 0)).all():
        raise ValueError(
            "The 'noise_variance' argument of make_linear_learners must be finite and not "
            f"negative. Got {np.unique(variance).tolist()}."
        )

    learner = np.repeat(np.arange(n_learners), sizes.astype(np.int64))
    X = rng.standard_normal((len(learner), n_features))
    signal = np.einsum("rp,rp->r", X, beta[truth[learner]])
    noise = rng.standard_normal(len(learner)) * np.sqrt(variance[learner])
    ids = learner_names(n_learners)
    return Simulation(X, signal + noise, ids[learner], truth, ids, signal, variance, beta)


def make_simulation1(
    n_features: int = 20,
    snr: float = 16,
    random_state: int | np.random.Generator | None = 0,
) -> Simulation:
    """Draw the paper's Simulation 1: two linear truths, ten learners each.

    Twenty learners of 50 rows; Y = beta' X + noise with X ~ N(0, I_p), beta_1 for the first ten
    learners and beta_2 for the others, both ~ N(0, I_p), and noise ~ N(0, p^2 / SNR). The paper
    calls this ratio the signal-to-noise ratio, though the expected squared norm of beta is p.

    Parameters
    ----------
    n_features : int, default=20
        Number of predictors, p; the paper takes 5, 10 and 20.
    snr : float, default=16
        The paper's signal-to-noise ratio; it takes 2^0, ..., 2^7.
    random_state : int, numpy.random.Generator or None, default=0
        Seed of the draw; None draws a new one.

    Returns
    -------
    Simulation
        The learners, with `truth` and `coefficients`.

    Examples
    --------
    >>> simulation = make_simulation1(n_features=5, snr=16)
    >>> simulation.X.shape, float(simulation.noise_variance[0])
    ((1000, 5), 1.5625)
    """
    _check_counts("make_simulation1", n_features=n_features)
    if not 0 < snr < np.inf:
        raise ValueError(f"The 'snr' argument of make_simulation1 must be positive and finite. Got {snr}.")
    return make_linear_learners(
        n_learners=20,
        n_truths=2,
        n_rows=50,
        n_features=n_features,
        noise_variance=n_features**2 / snr,
        labels=np.repeat([0, 1], 10),
        random_state=random_state,
    )


def make_simulation2(
    n_rows: int = 100,
    n_features: int = 500,
    random_state: int | np.random.Generator | None = 0,
) -> Simulation:
    """Draw the paper's Simulation 2: two of Friedman's functions, ten learners each.

    Twenty learners; Y = f(X) + noise with f = `friedman2` for the first ten and `friedman3` for
    the others, predictors by `friedman_predictors`, and noise ~ N(0, 0.01), a variance.

    Parameters
    ----------
    n_rows : int, default=100
        Number of rows of each learner.
    n_features : int, default=500
        Number of predictors, at least 4; the functions use the first four.
    random_state : int, numpy.random.Generator or None, default=0
        Seed of the draw; None draws a new one.

    Returns
    -------
    Simulation
        The learners, with `truth` 0 for Friedman's second function and 1 for his third.

    Examples
    --------
    >>> simulation = make_simulation2(n_rows=10, n_features=8)
    >>> simulation.X.shape, simulation.truth.sum().item()
    ((200, 8), 10)
    """
    _check_counts("make_simulation2", n_rows=n_rows)
    rng = np.random.default_rng(random_state)
    X = friedman_predictors(20 * n_rows, n_features, rng)
    half = 10 * n_rows
    signal = np.concatenate([friedman2(X[:half]), friedman3(X[half:])])
    variance = np.full(20, 0.01)
    ids = learner_names(20)
    return Simulation(
        X=X,
        y=signal + 0.1 * rng.standard_normal(len(signal)),
        groups=np.repeat(ids, n_rows),
        truth=np.repeat(np.array([0, 1], dtype=np.int64), 10),
        learner_ids=ids,
        signal=signal,
        noise_variance=variance,
    )


def make_fairness(
    b: float = 1.0,
    n_learners: int = 50,
    n_rows: int = 50,
    random_state: int | np.random.Generator | None = 0,
) -> Simulation:
    """Draw the paper's fairness example: learners that differ by a sensitive value.

    Y = X1 + 2 X2 - 2 X3 + 2 X4 + b R_i + noise, with X ~ N(0, I_4), noise ~ N(0, 1) and
    R_i ~ N(0, 1) drawn once per learner. R is kept in `sensitive` and is not a predictor. The
    learners form a continuum, so there are no true labels.

    Parameters
    ----------
    b : float, default=1.0
        Weight of the sensitive variable.
    n_learners : int, default=50
        Number of learners, L.
    n_rows : int, default=50
        Number of rows of each learner.
    random_state : int, numpy.random.Generator or None, default=0
        Seed of the draw; None draws a new one.

    Returns
    -------
    Simulation
        The learners, with `coefficients` and `sensitive`; `truth` is None.

    Examples
    --------
    >>> simulation = make_fairness(b=2.0, n_learners=5, n_rows=10)
    >>> simulation.X.shape, simulation.sensitive.shape
    ((50, 4), (5,))
    """
    _check_counts("make_fairness", n_learners=n_learners, n_rows=n_rows)
    if not np.isfinite(b):
        raise ValueError(f"The 'b' argument of make_fairness must be finite. Got {b}.")
    rng = np.random.default_rng(random_state)
    sensitive = rng.standard_normal(n_learners)
    X = rng.standard_normal((n_learners * n_rows, 4))
    beta = np.array([[1.0, 2.0, -2.0, 2.0]])
    signal = X @ beta[0] + b * np.repeat(sensitive, n_rows)
    ids = learner_names(n_learners)
    return Simulation(
        X=X,
        y=signal + rng.standard_normal(len(signal)),
        groups=np.repeat(ids, n_rows),
        truth=None,
        learner_ids=ids,
        signal=signal,
        noise_variance=np.ones(n_learners),
        coefficients=beta,
        sensitive=sensitive,
    )
