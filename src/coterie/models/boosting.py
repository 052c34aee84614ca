"""Boosted trees on few rows, one thread each.

scikit-learn's histogram boosting shares every split out among all cores. On the few thousand rows of a
coterie that is slower than one thread, and many times slower where the cores are busy: threads wait for
each other, spinning.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from threadpoolctl import ThreadpoolController

from coterie._arrays import Array


@cache
def _controller() -> ThreadpoolController:
    """Return what limits the threads of OpenMP; made once, as finding the libraries takes time."""
    return ThreadpoolController()


class BoostedTrees(HistGradientBoostingRegressor):  # type: ignore[misc]
    """Histogram boosting that fits and predicts with one thread.

    Parameters are those of ``sklearn.ensemble.HistGradientBoostingRegressor``, and so are the trees.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **validation: Any) -> BoostedTrees:
        """Fit the trees to X of shape (N, p) and y of shape (N,), rows weighted by ``sample_weight``.

        ``validation`` may name the rows by which boosting stops: ``X_val``, ``y_val``, ``sample_weight_val``.
        """
        # scikit-learn takes all cores here and has no option against it: only OpenMP's limit holds it back.
        with _controller().limit(limits=1, user_api="openmp"):
            super().fit(X, y, sample_weight=sample_weight, **validation)
        return self

    def predict(self, X: Any) -> Array:
        """Predict rows of shape (N, p)."""
        with _controller().limit(limits=1, user_api="openmp"):
            predicted: Array = super().predict(X)
        return predicted


class BoostedClasses(HistGradientBoostingClassifier):  # type: ignore[misc]
    """Histogram boosting of classes that fits and predicts with one thread.

    Parameters are those of ``sklearn.ensemble.HistGradientBoostingClassifier``, and so are the trees.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **validation: Any) -> BoostedClasses:
        """Fit the trees to X of shape (N, p) and classes y (N,), rows weighted by ``sample_weight``.

        ``validation`` may name the rows by which boosting stops: ``X_val``, ``y_val``, ``sample_weight_val``.
        """
        with _controller().limit(limits=1, user_api="openmp"):
            super().fit(X, y, sample_weight=sample_weight, **validation)
        return self

    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of the classes for rows of shape (N, p)."""
        with _controller().limit(limits=1, user_api="openmp"):
            predicted: Array = super().predict_proba(X)
        return predicted


class LogOddsTrees(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Boosted trees that add to given log-odds, a forest for each column.

    Parameters
    ----------
    trees : BoostedTrees
        Unfitted trees; a copy is fitted to the working responses of each column.
    """

    def __init__(self, trees: Any) -> None:
        self.trees = trees

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **validation: Any) -> LogOddsTrees:
        """Fit one forest for each column to X (N, p) and working responses y (N, C), weighted (N, C).

        A working response is the residual of a class, divided by the curvature p (1 - p) of the
        logistic loss; its weight is that curvature. ``validation`` may name the rows by which
        boosting stops, with columns like these.
        """
        self.n_features_in_ = X.shape[1]
        self.estimators_ = []
        for column in range(y.shape[1]):
            column_validation = {
                name: rows if name == "X_val" else rows[:, column] for name, rows in validation.items()
            }
            self.estimators_.append(
                clone(self.trees).fit(X, y[:, column], sample_weight[:, column], **column_validation)
            )
        return self

    def predict(self, X: Any) -> Array:
        """Return what the trees add to the log-odds of rows X (N, p), of shape (N, C)."""
        return np.column_stack([trees.predict(X) for trees in self.estimators_])
