"""What is a learner's own in a shared model's residuals: an offset and slopes, shrunk as mixed models do.

For one learner the residuals of a shared model are r = a + Z b + e, with Z the predictors from the
learner's own mean in common units, a ~ N(0, A s), b ~ N(0, B s I), e ~ N(0, s I). The two ratios A and B
are common to all learners and maximise the sum of their marginal likelihoods over a grid, the noise s
integrated out under a weak prior. A learner contributes one number per point of the grid, so that sites
that keep their rows can choose the ratios together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coterie._arrays import Array

# Variance of offsets and of slopes, in units of the noise. Zero: there is nothing of one's own.
OFFSET_RATIOS = np.r_[0.0, np.logspace(-3, 2, 11)]
SLOPE_RATIOS = np.r_[0.0, np.logspace(-4, 1, 11)]
# Rows that the prior of the noise counts for.
PRIOR_ROWS = 4.0
# Solving for the slopes of more predictors costs more than they have been seen to bring.
MOST_SLOPES = 60


def slope_units(spreads: Array) -> Array:
    """Return the common unit of every predictor, of shape (p,): the median of the learners' spreads (L, p).

    A unit is infinite where hardly any learner sees the predictor vary, so that it gets no slope.
    """
    units = np.median(spreads, axis=0)
    seldom = units <= 0
    # A predictor that varies for a minority only: the unit of those for whom it does.
    for k in np.flatnonzero(seldom):
        varying = spreads[spreads[:, k] > 0, k]
        units[k] = np.median(varying) if len(varying) else np.inf
    return units


@dataclass(frozen=True)
class OwnRows:
    """A learner's rows, prepared for fitting its offset and slopes to any residuals.

    ``Z`` (n, p) are its predictors from their mean ``centre``, in common ``units``; the eigenvalues and
    eigenvectors are those of Z'Z. The prior of s has its weight at ``noise``.
    """

    centre: Array
    units: Array
    Z: Array
    eigenvalues: Array
    eigenvectors: Array
    noise: float

    @classmethod
    def of(cls, X: Array, units: Array, noise: float) -> OwnRows:
        """Prepare rows of shape (n, p)."""
        usable = X[:, :0] if X.shape[1] > MOST_SLOPES else X
        units = units[: usable.shape[1]]
        centre = usable.mean(axis=0)
        Z = (usable - centre) / units
        values, vectors = np.linalg.eigh(Z.T @ Z)
        return cls(centre, units, Z, np.maximum(values, 0.0), vectors, noise)

    def likelihoods(self, residuals: Array) -> Array:
        """Return log marginal likelihoods of shape (D, offsets, slopes) of D columns of residuals."""
        n, n_columns = residuals.shape
        means = residuals.mean(axis=0)
        inner = residuals - means
        along = (self.eigenvectors.T @ (self.Z.T @ inner)) ** 2
        A, B = OFFSET_RATIOS, SLOPE_RATIOS
        stretch = 1 + B[:, None] * self.eigenvalues
        explained = np.einsum("bk,kd->db", B[:, None] / stretch, along)
        unexplained = (inner**2).sum(axis=0)[:, None] - explained
        between = n * means[:, None] ** 2 / (1 + n * A)
        square = np.maximum(unexplained[:, None, :] + between[:, :, None], 0.0) + PRIOR_ROWS * self.noise
        volume = np.log1p(n * A)[:, None] + np.log(stretch).sum(axis=1)
        likelihood: Array = -0.5 * ((n + PRIOR_ROWS) * np.log(square) + volume)
        return likelihood.reshape(n_columns, len(A), len(B))

    def coefficients(self, residuals: Array, ratios: Array) -> Array:
        """Return slopes of the predictors as they came, then the intercept, of shape (D, p + 1).

        ``residuals`` (n, D) are those of D shared models on these rows, ``ratios`` (D, 2) the variance of
        offset and of slopes for each, in units of the noise.
        """
        n = len(residuals)
        means = residuals.mean(axis=0)
        offsets = means * n * ratios[:, 0] / (1 + n * ratios[:, 0])
        along = self.eigenvectors.T @ (self.Z.T @ (residuals - means))
        shrunk = along * ratios[:, 1] / (1 + self.eigenvalues[:, None] * ratios[:, 1])
        slopes = ((self.eigenvectors @ shrunk) / self.units[:, None]).T
        return np.column_stack([slopes, offsets - slopes @ self.centre])


def best_ratios(likelihoods: Array, *, slopes: bool) -> Array:
    """Return the ratios (D, 2) of the largest likelihood (D, offsets, slopes), summed over learners.

    Without ``slopes``, an offset only.
    """
    known = likelihoods if slopes else likelihoods[:, :, :1]
    best = known.reshape(len(known), -1).argmax(axis=1)
    indices = np.unravel_index(best, known.shape[1:])
    return np.column_stack([OFFSET_RATIOS[indices[0]], SLOPE_RATIOS[indices[1]]])


def linear_values(X: Array, coefficients: Array) -> Array:
    """Return x'w + b of shape (n, D); a coefficient vector shorter than X has an intercept only."""
    slopes = coefficients[:, :-1]
    values: Array = X[:, : slopes.shape[1]] @ slopes.T + coefficients[:, -1]
    return values
