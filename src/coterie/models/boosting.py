"""Boosted trees on few rows, one thread each.

scikit-learn's histogram boosting shares every split out among all cores. On the few thousand rows of a
coterie that is slower than one thread, and many times slower where the cores are busy: threads wait for
each other, spinning.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from sklearn.ensemble import HistGradientBoostingRegressor
from threadpoolctl import ThreadpoolController

from coterie._arrays import Array


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


class BoostedTrees(HistGradientBoostingRegressor):  # type: ignore[misc]
    """Histogram boosting that fits and predicts with one thread.

    Parameters are those of ``sklearn.ensemble.HistGradientBoostingRegressor``, and so are the trees.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **ahead: Any) -> BoostedTrees:
        """Fit the trees to X of shape (N, p) and y of shape (N,), rows weighted by ``sample_weight``.

        ``ahead`` may name the rows by which boosting stops: ``X_val``, ``y_val``, ``sample_weight_val``.
        """
        with _controller().limit(limits=1, user_api="openmp"):
            super().fit(X, y, sample_weight=sample_weight, **ahead)
        return self

    def predict(self, X: Any) -> Array:
        """Predict rows of shape (N, p)."""
        with _controller().limit(limits=1, user_api="openmp"):
            predicted: Array = super().predict(X)
        return predicted
