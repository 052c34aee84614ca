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
    """Return a common unit for each predictor, of shape (p,), from the learners' spreads (L, p).

    It is the median standard deviation over learners, so that slopes of different predictors and learners
    can share one variance. A predictor that is constant for all learners has an infinite unit, and gets
    no slope.
    """
    units = np.median(spreads, axis=0)
    is_mostly_constant = units <= 0
    # A predictor that varies for a minority only: the unit of those for whom it does.
    for column in np.flatnonzero(is_mostly_constant):
        positive_spreads = spreads[spreads[:, column] > 0, column]
        units[column] = np.median(positive_spreads) if len(positive_spreads) else np.inf
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
        """Prepare rows X (n, p) for fitting; with more than `MOST_SLOPES` predictors there are no slopes.

        ``units`` (p,) are common units of the predictors, and ``noise`` is the prior guess of the
        noise variance.
        """
        used_X = X[:, :0] if X.shape[1] > MOST_SLOPES else X
        units = units[: used_X.shape[1]]
        centre = used_X.mean(axis=0)
        Z = (used_X - centre) / units
        eigenvalues, eigenvectors = np.linalg.eigh(Z.T @ Z)
        return cls(
            centre=centre,
            units=units,
            Z=Z,
            eigenvalues=np.maximum(eigenvalues, 0.0),
            eigenvectors=eigenvectors,
            noise=noise,
        )

    def likelihoods(self, residuals: Array) -> Array:
        """Return log marginal likelihoods (D, A, B) of D columns of residuals (n, D) of shared models.

        A and B are the numbers of grid points for the variance of offsets and of slopes, in units of
        the noise. The noise variance is integrated out under its prior. The eigenvectors of Z'Z make
        all grid points cheap.
        """
        n, n_columns = residuals.shape
        means = residuals.mean(axis=0)
        centred = residuals - means
        squared_projections = (self.eigenvectors.T @ (self.Z.T @ centred)) ** 2
        offset_ratios, slope_ratios = OFFSET_RATIOS, SLOPE_RATIOS
        eigenvalue_factors = 1 + slope_ratios[:, None] * self.eigenvalues
        explained = np.einsum("bk,kd->db", slope_ratios[:, None] / eigenvalue_factors, squared_projections)
        unexplained = (centred**2).sum(axis=0)[:, None] - explained
        offset_squares = n * means[:, None] ** 2 / (1 + n * offset_ratios)
        quadratic_forms = (
            np.maximum(unexplained[:, None, :] + offset_squares[:, :, None], 0.0) + PRIOR_ROWS * self.noise
        )
        log_determinants = np.log1p(n * offset_ratios)[:, None] + np.log(eigenvalue_factors).sum(axis=1)
        log_likelihoods: Array = -0.5 * ((n + PRIOR_ROWS) * np.log(quadratic_forms) + log_determinants)
        return log_likelihoods.reshape(n_columns, len(offset_ratios), len(slope_ratios))

    def coefficients(self, residuals: Array, ratios: Array) -> Array:
        """Return shrunken slopes in the predictors' own units, then the intercept, of shape (D, p + 1).

        These are the best linear unbiased predictions of the learner's random effects. ``residuals``
        (n, D) are those of D shared models on these rows. ``ratios`` (D, 2) are the variances of
        offset and slopes of each, in units of the noise.
        """
        n = len(residuals)
        means = residuals.mean(axis=0)
        offsets = means * n * ratios[:, 0] / (1 + n * ratios[:, 0])
        projections = self.eigenvectors.T @ (self.Z.T @ (residuals - means))
        shrunken = projections * ratios[:, 1] / (1 + self.eigenvalues[:, None] * ratios[:, 1])
        slopes = ((self.eigenvectors @ shrunken) / self.units[:, None]).T
        return np.column_stack([slopes, offsets - slopes @ self.centre])


def best_ratios(likelihoods: Array, *, slopes: bool) -> Array:
    """Return the variances (D, 2) of offset and slopes where the log-likelihood is largest.

    ``likelihoods`` (D, A, B) are summed over learners, on a grid of both variances in units of the noise.
    If ``slopes`` is false, slopes have the variance zero.
    """
    grid = likelihoods if slopes else likelihoods[:, :, :1]
    best = grid.reshape(len(grid), -1).argmax(axis=1)
    grid_positions = np.unravel_index(best, grid.shape[1:])
    return np.column_stack([OFFSET_RATIOS[grid_positions[0]], SLOPE_RATIOS[grid_positions[1]]])


def linear_values(X: Array, coefficients: Array) -> Array:
    """Return x'w + b of shape (n, D); a coefficient vector shorter than X has an intercept only."""
    slopes = coefficients[:, :-1]
    values: Array = X[:, : slopes.shape[1]] @ slopes.T + coefficients[:, -1]
    return values
