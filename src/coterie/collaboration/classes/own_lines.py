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
    """Return the log-odds of probabilities, of any shape, kept within plus and minus `SUREST`.

    A probability of nought or one would have infinite log-odds, to which no line could be added.
    """
    highest_probability = float(expit(SUREST))
    log_odds: Array = logit(np.clip(chances, 1 - highest_probability, highest_probability))
    return log_odds


@dataclass(frozen=True)
class OwnLines:
    """One learner's lines that are added to the log-odds of D shared models, for C columns of classes.

    A shared model predicts for several learners; a line moves it towards this one. Two classes have one
    column. ``lines`` (D, C, p + 1) have slopes and an intercept, or an intercept only; ``limits`` (D, C, 2)
    is what their values are kept within, lowest and highest: rows far from the learner's own must not run
    away.
    """

    lines: Array
    limits: Array

    def added(self, X: Array, base: Array) -> Array:
        """Return the log-odds (n, D, C) of D shared models, ``base``, plus the lines at rows X (n, p).

        A line's value is kept within its limits before it is added.
        """
        # Lines with an intercept only have no slopes, and use no column of X.
        n_slopes = self.lines.shape[-1] - 1
        line_values = np.einsum("np,dcp->ndc", X[:, :n_slopes], self.lines[..., :-1]) + self.lines[..., -1]
        log_odds: Array = base + np.clip(line_values, *np.moveaxis(self.limits, -1, 0))
        return log_odds


def chances_of(odds: Array) -> Array:
    """Return probabilities (..., C) from log-odds (..., C) of each class against the others.

    Several columns are divided by their sum, as each was made apart and they need not sum to one. A single
    one is the probability of the second of two classes.
    """
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
        """Prepare rows X (n, p) of classes Y (n, C); with more than `MOST_SLOPES` predictors without slopes.

        ``units`` (p,) are common units of the predictors: one prior variance then suits the slopes of all.
        """
        used_X = X[:, :0] if X.shape[1] > MOST_SLOPES else X
        units, centre = units[: used_X.shape[1]], used_X.mean(axis=0)
        Z = np.column_stack([(used_X - centre) / units, np.ones(len(X))])
        return cls(
            X=used_X,
            Z=Z,
            Y=Y,
            weights=np.ones(len(X)) if weights is None else weights,
            centre=centre,
            units=units,
        )

    def _slope_and_curvature(self, odds: Array, column: int) -> tuple[Array, Array]:
        """Return gradient (q,) and negative Hessian (q, q) of one class's log-likelihood at log-odds (n,).

        They are by the q coefficients of an own line. ``column`` is that of the class in ``Y``.
        """
        probabilities = expit(odds)
        # Rows that are nearly sure have next to no curvature: bounded below, Newton's steps stay finite.
        curvature = np.maximum(probabilities * (1 - probabilities), LEAST_SPREAD) * self.weights
        gradient = self.Z.T @ ((self.Y[:, column] - probabilities) * self.weights)
        return gradient, (self.Z * curvature[:, None]).T @ self.Z

    def likelihoods(self, base: Array) -> Array:
        """Return log marginal likelihoods (D, A, B) of own lines beside D shared models.

        They say how well each pair of prior variances explains the rows, on a grid of A variances of the
        offset and B of the slopes. ``base`` (n, D, C) are the log-odds of the shared models. Each is
        Laplace's approximation around no line, added over classes, and lacks what is the same for all pairs.
        """
        n_slopes, n_models = self.Z.shape[1] - 1, base.shape[1]
        variances = np.array([[[*[b] * n_slopes, a] for b in SLOPE_RATIOS] for a in OFFSET_RATIOS])
        # One row for each pair of variances: those of the slopes, then that of the offset.
        standard_deviations = np.sqrt(variances.reshape(-1, n_slopes + 1))
        log_likelihoods = np.zeros((n_models, len(standard_deviations)))
        for shared_index in range(n_models):
            for column in range(base.shape[2]):
                gradient, curvature = self._slope_and_curvature(base[:, shared_index, column], column)
                # In units of prior standard deviations the prior's own curvature is the identity.
                scaled_hessian = standard_deviations[:, :, None] * curvature * standard_deviations[
                    :, None, :
                ] + np.eye(n_slopes + 1)
                scaled_gradient = standard_deviations * gradient
                newton_step = np.linalg.solve(scaled_hessian, scaled_gradient[..., None])[..., 0]
                log_likelihoods[shared_index] += 0.5 * (
                    (scaled_gradient * newton_step).sum(axis=1) - np.linalg.slogdet(scaled_hessian)[1]
                )
        return log_likelihoods.reshape(n_models, len(OFFSET_RATIOS), len(SLOPE_RATIOS))

    def lines(self, base: Array, ratios: Array) -> OwnLines:
        """Return the most likely own lines beside D shared models, in the predictors' own units.

        ``base`` (n, D, C) are the log-odds of the shared models. ``ratios`` (D, 2) are the prior variances of
        offset and slopes, which shrink the lines: a variance of zero leaves none.
        """
        n_slopes, (_, n_models, n_columns) = self.Z.shape[1] - 1, base.shape
        coefficients = np.zeros((n_models, n_columns, n_slopes + 1))
        for shared_index, (offset_deviation, slope_deviation) in enumerate(np.sqrt(ratios).tolist()):
            standard_deviations = np.r_[np.full(n_slopes, slope_deviation), offset_deviation]
            for column in range(n_columns):
                coefficients[shared_index, column] = standard_deviations * self._converged(
                    base[:, shared_index, column], column, standard_deviations
                )
        # From centred predictors in common units back to predictors as they came.
        coefficients[..., :-1] /= self.units
        coefficients[..., -1] -= coefficients[..., :-1] @ self.centre
        line_values = np.einsum("np,dcp->ndc", self.X, coefficients[..., :-1]) + coefficients[..., -1]
        return OwnLines(coefficients, np.stack(widened(line_values), axis=-1))

    def _converged(self, base: Array, column: int, deviations: Array) -> Array:
        """Return one class's most likely own line (q,), in units of its prior standard deviations.

        ``base`` (n,) are the shared model's log-odds, ``column`` is that of the class, and ``deviations``
        (q,) are the prior standard deviations. Newton's steps end when log-odds hardly change.
        """
        coefficients = np.zeros(len(deviations))
        # Where all deviations are zero, the prior allows no line.
        for _ in range(STEPS if deviations.any() else 0):
            odds = np.clip(base + self.Z @ (deviations * coefficients), -SUREST, SUREST)
            gradient, curvature = self._slope_and_curvature(odds, column)
            scaled_hessian = deviations[:, None] * curvature * deviations + np.eye(len(deviations))
            step = np.linalg.solve(scaled_hessian, deviations * gradient - coefficients)
            coefficients = coefficients + step
            if np.abs(self.Z @ (deviations * step)).max() < TOLERANCE:
                break
        return coefficients
