"""Clusters that predict classes by one logistic model on their members' pooled rows.

All clusters are fitted together by Newton's steps, from sums of their members' curvatures and slopes, so that
leaving one learner out is a subtraction and one more step. A class has a line against the others; more than
two are normalised. Lines of probabilities search, for their moments need no rows; these models judge.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from scipy.special import expit

from coterie._arrays import Array
from coterie.kernels.affine import StandardizedColumns, second_moments
from coterie.kernels.limits import LIMITS
from coterie.method.n_clusters.one_truth import compare_with_drawn_classes
from coterie.method.refine.averages import membership
from coterie.method.refine.losses import LocalLosses, LocalRows
from coterie.method.refine.moment_starts import SEARCH, cluster_sums, search_moments
from coterie.method.refine.pooled import PooledLosses
from coterie.models.logistic import LEAST_SPREAD, STEPS, TOLERANCE
from coterie.records import Selection
from coterie.rows.learners import Learners


def bounded_step(step: Array) -> Array:
    """Return steps (..., d) no longer than a unit in any direction: what is further off bends."""
    longest = np.abs(step).max(axis=-1, keepdims=True)
    bounded: Array = step / np.maximum(longest, 1.0)
    return bounded


def shares_of(chances: Array) -> Array:
    """Return chances (..., C) of each class against the others as probabilities; one column stays."""
    if chances.shape[-1] == 1:
        return chances
    chances = np.maximum(chances, np.finfo(float).tiny)
    shares: Array = chances / chances.sum(axis=-1, keepdims=True)
    return shares


def working_weights(chances: Array, learners: Learners) -> tuple[Array, Array]:
    """Return what rows (N,) weigh beside probabilities (N, C) of one model, and what divides residuals.

    One Newton step of a logistic model from these probabilities is then a line of least squares.
    """
    spread = np.maximum((chances * (1 - chances)).mean(axis=1), LEAST_SPREAD)
    weights = spread if learners.weights is None else learners.weights * spread
    return weights, spread[:, None]


class LogisticLosses(LocalLosses):
    """Losses of logistic models on pooled rows; arguments as for `LocalLosses`."""

    def __init__(self, learners: Learners, selection: Selection) -> None:
        """Standardise the predictors, and prepare the rows by half."""
        super().__init__(learners, selection)
        self._Z = StandardizedColumns(learners).rows(self.learners.X)
        self._weights = np.ones(len(self._Z)) if self.learners.weights is None else self.learners.weights
        # Slopes of standardised predictors are of the order of one; levels are near that of all.
        self._prior = np.zeros((self.learners.y.shape[1], self._Z.shape[1]))
        shares = np.clip(self.learners.y.mean(axis=0), LIMITS.rounding, 1 - LIMITS.rounding)
        self._prior[:, -1] = np.log(shares / (1 - shares))
        self._one = self._prior[:, None]
        self._one = self._fitted(np.zeros(len(learners), dtype=int), 1)[0]
        self.moments = PooledLosses(learners, selection)

    @property
    def local(self) -> LocalRows:
        """What these rows add to a search."""
        return LocalRows(
            quick=self.moments,
            suggest=self.suggest,
            one_truth_test=self.one_truth_test,
            anybody_beyond=self.anybody_beyond,
        )

    def suggest(self, n_clusters: int, seed: int) -> list[Array]:
        """Return what lines of probabilities like best, and what one step from the model of all does."""
        probabilities = self._chances_of_all()
        weights, scale = working_weights(probabilities, self.learners)
        rows = replace(self.learners, weights=weights)
        G, c, _ = second_moments(self._Z, (self.learners.y - probabilities) / scale, rows)
        sizes = self.learners.sizes[:, None, None]
        stepped = search_moments(G * sizes, c * sizes, np.eye(self._Z.shape[1]), n_clusters, seed)
        return [*self.moments.suggest(n_clusters, seed), stepped]

    def _chances_of_all(self) -> Array:
        return shares_of(expit(self._Z @ self._one[:, 0].T))

    def one_truth_test(self, seed: int) -> tuple[float, float]:
        """Return by how much two clusters explain more than they would of one truth; NaN: not known."""
        (n, d), n_learners = self._Z.shape, len(self.learners)
        unsuited = n <= 2 * d or not 3 <= n_learners <= LIMITS.many
        if unsuited or SEARCH.starts * n_learners * d**2 > LIMITS.numbers:
            return float("nan"), float("nan")
        return compare_with_drawn_classes(
            self._Z,
            self._chances_of_all(),
            self.learners,
            np.eye(d),
            seed,
            blocks=2 * self.learners.owner + self.second if self.selection.dependent else None,
            inflation=self.selection.inflation,
        )

    def _sums(self, coefficients: Array, clusters: Array) -> tuple[Array, Array]:
        """Return curvatures (C, L, d, d) and slopes (C, L, d) at the lines (C, K, d) of learners' homes."""
        n, (n_columns, _, d) = len(self.learners), coefficients.shape
        curvatures, slopes = np.empty((n_columns, n, d, d)), np.empty((n_columns, n, d))
        for j in range(n):
            span = self.learners.span(j)
            Z, weights = self._Z[span], self._weights[span]
            probabilities = expit(coefficients[:, clusters[j]] @ Z.T)
            slopes[:, j] = ((probabilities - self.learners.y[span].T) * weights) @ Z
            curvatures[:, j] = (Z.T * (probabilities * (1 - probabilities) * weights)[:, None]) @ Z
        return curvatures, slopes

    def _fitted(self, labels: Array, n_clusters: int) -> tuple[Array, Array, Array, Array]:
        """Return lines (C, K, d) of clusters, their curvatures, and curvatures and slopes of learners."""
        coefficients = np.repeat(self._one, n_clusters, axis=1)
        ridge, member = np.eye(coefficients.shape[2]), membership(labels, n_clusters, np.ones(len(labels)))
        for _ in range(STEPS):
            curvatures, slopes = self._sums(coefficients, labels)
            whole = np.array([cluster_sums(member, part) for part in curvatures]) + ridge
            slope = np.array([cluster_sums(member, part) for part in slopes])
            slope += coefficients - self._prior[:, None]
            step = bounded_step(np.linalg.solve(whole, slope[..., None])[..., 0])
            coefficients = coefficients - step
            if np.abs(step).max() < np.sqrt(TOLERANCE):
                break
        return coefficients, whole, curvatures, slopes

    def residual_blocks(self, labels: Array, n_clusters: int) -> Iterator[tuple[int, int, Array]]:
        """Give out the residuals for runs of learners, own contributions left out."""
        coefficients, whole, curvatures, slopes = self._fitted(labels, n_clusters)
        counts = np.bincount(labels, minlength=n_clusters)
        step = np.linalg.solve(whole[:, labels] - curvatures, slopes[..., None])[..., 0]
        without = coefficients[:, labels] + bounded_step(step)
        without[:, counts[labels] == 1] = np.nan
        coefficients[:, counts == 0] = np.nan
        for start, stop in self.runs(n_clusters):
            rows = self._rows_of(start, stop)
            Z, owner = self._Z[rows], self.learners.owner[rows]
            log_odds = np.moveaxis(coefficients @ Z.T, 0, -1)
            own = np.einsum("nd,cnd->nc", Z, without[:, owner])
            log_odds[labels[owner], np.arange(len(Z))] = own
            yield start, stop, self.learners.y[rows] - shares_of(expit(log_odds))

    def residuals(self, labels: Array, n_clusters: int) -> Array:
        """Return residuals of shape (K, N, C), own contributions left out."""
        return np.concatenate([block for _, _, block in self.residual_blocks(labels, n_clusters)], axis=1)
