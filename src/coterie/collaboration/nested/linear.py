"""Linear models of pooled rows by second moments: a coterie's model is one small solve.

Plain: y on x among the members. Centred: x and y measured from each member's own mean, as fixed effects
are, so that levels that differ between members do not pass for slopes. A ridge in units of the rows is
chosen by what it loses on held-out rows, again by moments.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.linear_model import LinearRegression

from coterie._arrays import Array
from coterie.kernels.affine import Frame, second_moments
from coterie.rows.learners import Learners

# In rows: the penalty that so many rows of unit variance would outweigh.
RIDGES = (1e-6, 1.0, 10.0, 100.0)


def as_line(slopes: Array, intercept: float) -> LinearRegression:
    """Return known coefficients as a fitted scikit-learn model."""
    model = LinearRegression()
    model.coef_, model.intercept_, model.n_features_in_ = slopes, intercept, len(slopes)
    return model


@dataclass(frozen=True)
class Moments:
    """Summed second moments of every learner's rows in a common frame.

    ``G`` (L, p + 1, p + 1) is Z'Z of each learner, the last column of Z being ones, and ``c`` (L, p + 1) its
    Z'y, y from the middle of the frame.
    """

    frame: Frame
    G: Array
    c: Array

    @classmethod
    def of(cls, learners: Learners, frame: Frame) -> Moments:
        """Sum the moments of the learners' rows."""
        G, c, _ = second_moments(frame.rows(learners.X), learners.y - frame.middle, learners)
        return cls(frame, G * learners.sizes[:, None, None], c[..., 0] * learners.sizes[:, None])

    def centred(self) -> Moments:
        """Return the moments from each learner's own means; the last column becomes zero."""
        rows = np.maximum(self.G[:, -1, -1], 1e-300)
        sums = self.G[:, -1]
        G = self.G - sums[:, :, None] * sums[:, None, :] / rows[:, None, None]
        return Moments(self.frame, G, self.c - sums * (self.c[:, -1:] / rows[:, None]))

    def solve(self, members: Array, ridge: float) -> Array:
        """Return the coefficients of the members' pooled rows, of shape (p + 1,), in the frame."""
        G, c = self.G[members].sum(axis=0), self.c[members].sum(axis=0)
        penalty = np.full(len(c), ridge)
        # The intercept is free, unless the moments are centred and there is none.
        penalty[-1] = 1e-9 if G[-1, -1] > 0.5 else 1.0
        solution: Array = np.linalg.solve(G + np.diag(penalty), c)
        return solution

    def as_model(self, coefficients: Array, *, centred: bool) -> LinearRegression:
        """Return the coefficients as a fitted scikit-learn model of the predictors as they came."""
        slopes = coefficients[:-1] / self.frame.spread
        level = -slopes @ self.frame.centre
        return as_line(slopes, float(level if centred else level + coefficients[-1] + self.frame.middle[0]))
