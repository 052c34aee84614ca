"""Learners drawn from known truths whose response is a class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from coterie.datasets.simulated import check_counts, learner_names

# Halvings that find the level at which a class has its share.
HALVINGS = 60


@dataclass(frozen=True, eq=False)
class ClassSimulation:  # numpydoc ignore=PR02
    """Learners of classes drawn from known truths; a learner's rows are contiguous.

    Parameters
    ----------
    X : ndarray of float, shape (n_rows, n_features)
        Predictors of all learners' rows.
    y : ndarray of int, shape (n_rows,)
        Class of each row, 0 to n_classes - 1.
    groups : ndarray of str, shape (n_rows,)
        Learner of each row.
    truth : ndarray of int, shape (n_learners,)
        True label of each learner in the order of `learner_ids`.
    learner_ids : ndarray of str, shape (n_learners,)
        Names of the learners, in the order of their rows.
    probabilities : ndarray of float, shape (n_rows, n_classes)
        Probability of each class.
    coefficients : ndarray of float, shape (n_truths, n_features, n_classes)
        Slopes of each truth; those of the first class are zero.
    """

    X: NDArray[np.float64]
    y: NDArray[np.int64]
    groups: NDArray[np.str_]
    truth: NDArray[np.int64]
    learner_ids: NDArray[np.str_]
    probabilities: NDArray[np.float64]
    coefficients: NDArray[np.float64]


def _with_share(scores: NDArray[np.float64], share: float) -> NDArray[np.float64]:
    """Return log-odds (n, C) with the last class shifted such that its mean probability is ``share``.

    The shift is found by bisection between -50 and 50.
    """
    low, high = -50.0, 50.0
    for _ in range(HALVINGS):
        shift = 0.5 * (low + high)
        shifted = scores.copy()
        shifted[:, -1] += shift
        too_many = softmax(shifted, axis=1)[:, -1].mean() > share
        low, high = (low, shift) if too_many else (shift, high)
    return shifted


def make_logistic_learners(
    n_learners: int = 24,
    n_truths: int = 3,
    n_rows: int = 60,
    n_features: int = 5,
    n_classes: int = 2,
    scale: float = 1.5,
    share: float | None = None,
    curved: bool = False,
    random_state: int | np.random.Generator | None = 0,
) -> ClassSimulation:
    """Draw learners whose log-odds are linear, or products of predictors.

    Learner i has the truth i % n_truths. Its log-odds of class c against the first class are X'b with X ~
    N(0, I) and b ~ N(0, scale^2 I), drawn once per truth and class.

    Parameters
    ----------
    n_learners : int, default=24
        Number of learners, L.
    n_truths : int, default=3
        Number of truths, K.
    n_rows : int, default=60
        Number of rows of each learner.
    n_features : int, default=5
        Number of predictors, p.
    n_classes : int, default=2
        Number of classes.
    scale : float, default=1.5
        Standard deviation of the coefficients.
    share : float or None, default=None
        Share of the last class over all rows; None: as it comes, a half of two classes.
    curved : bool, default=False
        Whether the log-odds are linear in products of neighbouring predictors instead.
    random_state : int, numpy.random.Generator or None, default=0
        Seed of the draw; None draws a new one.

    Returns
    -------
    ClassSimulation
        The learners, with the truth of each.

    Examples
    --------
    >>> from coterie.datasets import make_logistic_learners
    >>> data = make_logistic_learners(n_learners=6, n_rows=10, n_classes=3)
    >>> data.X.shape, data.probabilities.shape
    ((60, 5), (60, 3))
    """
    counts = {"n_learners": n_learners, "n_truths": n_truths, "n_rows": n_rows, "n_features": n_features}
    check_counts("make_logistic_learners", **counts, n_classes=n_classes - 1)
    if share is not None and not 0 < share < 1:
        raise ValueError(
            f"The 'share' argument of make_logistic_learners must be between 0 and 1. Got {share}."
        )
    rng = np.random.default_rng(random_state)
    coefficients = scale * rng.standard_normal((n_truths, n_features, n_classes))
    coefficients[:, :, 0] = 0.0
    truth = np.arange(n_learners, dtype=np.int64) % n_truths
    learner_of_row = np.repeat(np.arange(n_learners), n_rows)
    X = rng.standard_normal((len(learner_of_row), n_features))
    terms = X * np.roll(X, 1, axis=1) if curved else X
    log_odds = np.einsum("rp,rpc->rc", terms, coefficients[truth[learner_of_row]])
    if share is not None:
        log_odds = _with_share(log_odds, share)
    probabilities = softmax(log_odds, axis=1)
    y = (rng.random(len(learner_of_row))[:, None] > np.cumsum(probabilities, axis=1)[:, :-1]).sum(axis=1)
    ids = learner_names(n_learners)
    return ClassSimulation(X, y, ids[learner_of_row], truth, ids, probabilities, coefficients)
