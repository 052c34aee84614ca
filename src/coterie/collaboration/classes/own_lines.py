"""What is a learner's own in the log-odds of a shared model: an offset and slopes, shrunk as mixed models do.

For a class, the log-odds of a learner are those of the shared model plus Z b + a, with a ~ N(0, A) and
b ~ N(0, B I). The two variances A and B are common to all learners and classes. They maximise the sum of
marginal likelihoods over the grid of `nested.effects`, each by Laplace's approximation at no correction, so
that sites that keep their rows can choose them together.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.special import expit, logit

from coterie._arrays import Array
from coterie.collaboration.classes.lines import STEPS, SUREST, TOLERANCE
from coterie.collaboration.nested.effects import MOST_SLOPES, OFFSET_RATIOS, SLOPE_RATIOS
from coterie.collaboration.nested.guard import widened
from coterie.models.logistic import LEAST_SPREAD


def log_odds_of(chances: Array) -> Array:
    """Return the log-odds of probabilities, none beyond what rows can show."""
    most = float(expit(SUREST))
    odds: Array = logit(np.clip(chances, 1 - most, most))
    return odds


@dataclass(frozen=True)
class OwnLines:
    """Lines that are added to the log-odds of D shared models, for C classes.

    ``lines`` (D, C, p + 1) have slopes and an intercept, or an intercept only; ``limits`` (D, C, 2) is what
    their values are kept within.
    """

    lines: Array
    limits: Array

    def added(self, X: Array, base: Array) -> Array:
        """Return log-odds (n, D, C) of rows with the lines, from those of the shared models."""
        n_slopes = self.lines.shape[-1] - 1
        values = np.einsum("np,dcp->ndc", X[:, :n_slopes], self.lines[..., :-1]) + self.lines[..., -1]
        moved: Array = base + np.clip(values, *np.moveaxis(self.limits, -1, 0))
        return moved


def chances_of(odds: Array) -> Array:
    """Return log-odds (..., C) of each class against the others as probabilities; one column stays one."""
    probabilities: Array = expit(odds)
    return (
        probabilities
        if probabilities.shape[-1] == 1
        else probabilities / probabilities.sum(axis=-1, keepdims=True)
    )


@dataclass(frozen=True)
class OwnClassRows:
    """A learner's rows, prepared for lines beside any shared model.

    ``Z`` (n, q) are its predictors from their mean ``centre``, in common ``units``, a column of ones behind
    them; ``Y`` (n, C) are its classes, and ``weights`` (n,) what its rows weigh.
    """

    X: Array = field(repr=False)
    Z: Array = field(repr=False)
    Y: Array = field(repr=False)
    weights: Array = field(repr=False)
    centre: Array
    units: Array

    @classmethod
    def of(cls, X: Array, Y: Array, weights: Array | None, units: Array) -> OwnClassRows:
        """Prepare rows X (n, p)."""
        usable = X[:, :0] if X.shape[1] > MOST_SLOPES else X
        units, centre = units[: usable.shape[1]], usable.mean(axis=0)
        Z = np.column_stack([(usable - centre) / units, np.ones(len(X))])
        return cls(usable, Z, Y, np.ones(len(X)) if weights is None else weights, centre, units)

    def _slope_and_curvature(self, odds: Array, c: int) -> tuple[Array, Array]:
        """Return the slope (q,) and the curvature (q, q) of the log-likelihood of a class at log-odds."""
        probabilities = expit(odds)
        curvature = np.maximum(probabilities * (1 - probabilities), LEAST_SPREAD) * self.weights
        slope = self.Z.T @ ((self.Y[:, c] - probabilities) * self.weights)
        return slope, (self.Z * curvature[:, None]).T @ self.Z

    def likelihoods(self, base: Array) -> Array:
        """Return log marginal likelihoods (D, offsets, slopes) beside D shared log-odds (n, D, C)."""
        n_slopes, n_shared = self.Z.shape[1] - 1, base.shape[1]
        grid = np.array([[[*[b] * n_slopes, a] for b in SLOPE_RATIOS] for a in OFFSET_RATIOS])
        spreads = np.sqrt(grid.reshape(-1, n_slopes + 1))
        total = np.zeros((n_shared, len(spreads)))
        for d in range(n_shared):
            for c in range(base.shape[2]):
                slope, curvature = self._slope_and_curvature(base[:, d, c], c)
                inner = spreads[:, :, None] * curvature * spreads[:, None, :] + np.eye(n_slopes + 1)
                scaled = spreads * slope
                moved = np.linalg.solve(inner, scaled[..., None])[..., 0]
                total[d] += 0.5 * ((scaled * moved).sum(axis=1) - np.linalg.slogdet(inner)[1])
        return total.reshape(n_shared, len(OFFSET_RATIOS), len(SLOPE_RATIOS))

    def lines(self, base: Array, ratios: Array) -> OwnLines:
        """Return the most likely lines beside D shared log-odds (n, D, C), by variances ``ratios`` (D, 2)."""
        n_slopes, (_, n_shared, n_columns) = self.Z.shape[1] - 1, base.shape
        result = np.zeros((n_shared, n_columns, n_slopes + 1))
        for d, (offset, slopes) in enumerate(np.sqrt(ratios).tolist()):
            spread = np.r_[np.full(n_slopes, slopes), offset]
            for c in range(n_columns):
                result[d, c] = spread * self._converged(base[:, d, c], c, spread)
        result[..., :-1] /= self.units
        result[..., -1] -= result[..., :-1] @ self.centre
        values = np.einsum("np,dcp->ndc", self.X, result[..., :-1]) + result[..., -1]
        return OwnLines(result, np.stack(widened(values), axis=-1))

    def _converged(self, base: Array, c: int, spread: Array) -> Array:
        """Return the line (q,) of a class in units of its spread, by Newton's steps."""
        at = np.zeros(len(spread))
        for _ in range(STEPS if spread.any() else 0):
            odds = np.clip(base + self.Z @ (spread * at), -SUREST, SUREST)
            slope, curvature = self._slope_and_curvature(odds, c)
            inner = spread[:, None] * curvature * spread + np.eye(len(spread))
            step = np.linalg.solve(inner, spread * slope - at)
            at = at + step
            if np.abs(self.Z @ (spread * step)).max() < TOLERANCE:
                break
        return at
