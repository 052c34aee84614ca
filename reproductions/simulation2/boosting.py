"""Gradient boosting on hundreds of predictors and few rows, whose bins are made at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor

Array = NDArray[Any]


class Boosting(HistGradientBoostingRegressor):  # type: ignore[misc]
    """Gradient boosting on binned predictors, without weights of rows.

    scikit-learn makes the bins predictor by predictor: with 500 of them and a hundred rows, most of the time
    of a fit; with weights twelve times that. Here one call makes the same bins for all. Bins are made in a
    private method, which is left to scikit-learn where values are missing or tied.
    """

    def fit(self, X: Array, y: Array) -> Boosting:
        """Fit.

        Parameters
        ----------
        X : ndarray of shape (n, p)
            Predictors.
        y : ndarray of shape (n,)
            Response.

        Returns
        -------
        Boosting
            Itself, fitted.
        """
        fitted: Boosting = super().fit(X, y)
        return fitted

    def _bin_data(self, X: Array, *args: Any, **options: Any) -> Array:
        in_order = np.sort(X, axis=0)
        distinct = len(X) > self.max_bins and bool((np.diff(in_order, axis=0) > 0).all())
        mapper = self._bin_mapper
        if not distinct or mapper.is_categorical is not None or len(X) > mapper.subsample:
            binned: Array = super()._bin_data(X, *args, **options)
            return binned
        shares = np.linspace(0, 100, num=self.max_bins + 1)[1:-1]
        edges = np.percentile(in_order, shares, axis=0, method="averaged_inverted_cdf")
        mapper.bin_thresholds_ = list(np.ascontiguousarray(edges.T))
        mapper.n_bins_non_missing_ = np.full(X.shape[1], self.max_bins, dtype=np.uint32)
        mapper.is_categorical_ = np.zeros(X.shape[1], dtype=np.uint8)
        mapper.missing_values_bin_idx_ = self.max_bins
        binned = mapper.transform(X)
        return binned
