"""Least squares that see every column, whatever its unit.

scikit-learn 1.9 leaves out directions that are a millionth as large as the largest: beside a column of
millions of dollars, a column of rates counts for nothing. Here columns of very different sizes are first
divided by powers of two, which costs no digit. Others are fitted by scikit-learn as they are, bit for bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import LinearRegression

# Powers of two by which columns may differ in size; a thousandth is far from being left out.
ALIKE = 10


class Line(LinearRegression):  # type: ignore[misc]
    """`sklearn.linear_model.LinearRegression` for columns in any units."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Line:
        """Fit the coefficients to X of shape (n, p) and y of shape (n,), weighted by ``sample_weight``."""
        spread = np.std(np.asarray(X, dtype=float), axis=0)
        exponents = np.where(spread > 0, np.frexp(spread)[1], 0)
        varied = exponents[spread > 0]
        if len(varied) < 2 or np.ptp(varied) <= ALIKE:
            fitted: Line = super().fit(X, y, sample_weight)
            return fitted
        super().fit(np.ldexp(np.asarray(X, dtype=float), -exponents), y, sample_weight)
        coefficients: Any = vars(self)["coef_"]
        self.coef_ = np.ldexp(coefficients, -exponents)
        return self
