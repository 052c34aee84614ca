"""One table dealt out to many learners."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from coterie.datasets.simulated import check_counts, learner_names


@dataclass(frozen=True, eq=False)
class LearnerSplit:  # numpydoc ignore=PR02
    """Rows dealt to learners, and the rows that no learner got.

    Parameters
    ----------
    X : ndarray of float, shape (n_learners * rows_per_learner, n_features)
        Predictors of the learners' rows; a learner's rows are contiguous.
    y : ndarray of float, shape (n_learners * rows_per_learner,)
        Response of the learners' rows.
    groups : ndarray of str, shape (n_learners * rows_per_learner,)
        Learner of each row.
    X_rest : ndarray of float, shape (n_rest, n_features)
        Predictors of the rows held out.
    y_rest : ndarray of float, shape (n_rest,)
        Response of the rows held out.
    """

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    groups: NDArray[np.str_]
    X_rest: NDArray[np.float64]
    y_rest: NDArray[np.float64]


def split_into_learners(
    X: ArrayLike,
    y: ArrayLike,
    n_learners: int = 50,
    rows_per_learner: int = 160,
    random_state: int | np.random.Generator | None = 0,
) -> LearnerSplit:
    """Deal the rows of one table at random to learners of equal size.

    The defaults are those of the paper's grid experiment: of 10,000 rows, 8,000 go to fifty
    learners of 160, and 2,000 are held out for testing.

    Parameters
    ----------
    X : array-like of float, shape (n_rows, n_features)
        Predictors.
    y : array-like of float, shape (n_rows,)
        Response.
    n_learners : int, default=50
        Number of learners, L.
    rows_per_learner : int, default=160
        Number of rows of each learner.
    random_state : int, numpy.random.Generator or None, default=0
        Seed of the random order; None draws a new one.

    Returns
    -------
    LearnerSplit
        The learners' rows with their names, and the rows held out.

    Examples
    --------
    >>> split = split_into_learners([[0.0], [1.0], [2.0], [3.0], [4.0]], [0, 1, 2, 3, 4], 2, 2)
    >>> print(split.groups)
    ['learner 00' 'learner 00' 'learner 01' 'learner 01']
    >>> split.X_rest.shape
    (1, 1)
    """
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if X.ndim != 2 or y.shape != X.shape[:1]:
        raise ValueError(
            "The 'X' and 'y' arguments of split_into_learners must have shapes (n_rows, n_features)"
            f" and (n_rows,). Got {X.shape} and {y.shape}."
        )
    check_counts("split_into_learners", n_learners=n_learners, rows_per_learner=rows_per_learner)
    n_dealt = n_learners * rows_per_learner
    if n_dealt > len(y):
        raise ValueError(
            f"split_into_learners needs {n_learners} x {rows_per_learner} = {n_dealt} rows but X "
            f"has {len(y)}; ask for fewer learners or fewer rows per learner."
        )
    order = np.random.default_rng(random_state).permutation(len(y))
    dealt, rest = order[:n_dealt], order[n_dealt:]
    return LearnerSplit(
        X=X[dealt],
        y=y[dealt],
        groups=np.repeat(learner_names(n_learners), rows_per_learner),
        X_rest=X[rest],
        y_rest=y[rest],
    )
