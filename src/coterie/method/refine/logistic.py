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
    """Return Newton steps (..., d), scaled down where an entry is longer than one.

    A logistic loss is close to its quadratic approximation only nearby; longer steps may overshoot.
    """
    largest_entry = np.abs(step).max(axis=-1, keepdims=True)
    bounded: Array = step / np.maximum(largest_entry, 1.0)
    return bounded


def shares_of(chances: Array) -> Array:
    """Return probabilities that sum to one, from chances (..., C) of each class against the others.

    A single column is the chance of the second of two classes, and stays as it is.
    """
    if chances.shape[-1] == 1:
        return chances
    chances = np.maximum(chances, np.finfo(float).tiny)
    shares: Array = chances / chances.sum(axis=-1, keepdims=True)
    return shares


def working_weights(chances: Array, learners: Learners) -> tuple[Array, Array]:
    """Return the weights (N,) and residual scales (N, 1) of one Newton step of a logistic model.

    ``chances`` (N, C) are one model's probabilities. Least squares with these weights, of residuals divided
    by these scales, is one Newton step from that model; so learners' sums X'X and X'y can stand for their
    classes.
    """
    spread = np.maximum((chances * (1 - chances)).mean(axis=1), LEAST_SPREAD)
    weights = spread if learners.weights is None else learners.weights * spread
    return weights, spread[:, None]


class LogisticLosses(LocalLosses):
    """Losses of clusters that predict classes by a logistic model on their members' pooled rows.

    Arguments are as for `LocalLosses`. Each of the C columns of the response has a linear model of its
    log-odds.
    """

    def __init__(self, learners: Learners, selection: Selection) -> None:
        """Standardise the predictors, and fit one model of all learners, from which clusters start.

        The prior of the models has slopes of zero and the log-odds of the classes' shares as intercepts.
        """
        super().__init__(learners, selection)
        # Standardised predictors (N, d) with a column of ones behind them, and weights of rows (N,).
        self._Z = StandardizedColumns(learners).rows(self.learners.X)
        self._weights = np.ones(len(self._Z)) if self.learners.weights is None else self.learners.weights
        # Slopes of standardised predictors are of the order of one; levels are near that of all.
        self._prior = np.zeros((self.learners.y.shape[1], self._Z.shape[1]))
        class_shares = np.clip(self.learners.y.mean(axis=0), LIMITS.rounding, 1 - LIMITS.rounding)
        self._prior[:, -1] = np.log(class_shares / (1 - class_shares))
        # The model (C, 1, d) of all learners together, fitted from the prior; clusters then start from it.
        self._model_of_all = self._prior[:, None]
        self._model_of_all = self._fitted(np.zeros(len(learners), dtype=int), 1)[0]
        # The cheaper form: lines of probabilities, which search before these models decide.
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
        """Return two labellings (L,) of K clusters that are worth refining.

        One is found by linear models of the classes, the other by one Newton step from the logistic model of
        all learners. Both need only the learners' sums X'X and X'y, so that many random starts are cheap.
        """
        probabilities = self._chances_of_all()
        weights, scale = working_weights(probabilities, self.learners)
        weighted_learners = replace(self.learners, weights=weights)
        G, c, _ = second_moments(self._Z, (self.learners.y - probabilities) / scale, weighted_learners)
        # Moments are means over a learner's rows: times the rows they are sums, by which learners pool.
        sizes = self.learners.sizes[:, None, None]
        newton_labels = search_moments(G * sizes, c * sizes, np.eye(self._Z.shape[1]), n_clusters, seed)
        return [*self.moments.suggest(n_clusters, seed), newton_labels]

    def _chances_of_all(self) -> Array:
        """Return the probabilities (N, C) of the rows' classes by one model for all learners."""
        return shares_of(expit(self._Z @ self._model_of_all[:, 0].T))

    def one_truth_test(self, seed: int) -> tuple[float, float]:
        """Return how much more two clusters explain than they would of classes drawn from one model.

        This is a number of standard deviations, and a share of what one model leaves unexplained. Both are
        NaN where rows are too few or the test would take too long.
        """
        (n, d), n_learners = self._Z.shape, len(self.learners)
        is_unsuited = n <= 2 * d or not 3 <= n_learners <= LIMITS.many
        if is_unsuited or SEARCH.starts * n_learners * d**2 > LIMITS.numbers:
            return float("nan"), float("nan")
        return compare_with_drawn_classes(
            self._Z,
            self._chances_of_all(),
            self.learners,
            np.eye(d),
            seed,
            # Where rows depend on each other, each half of a learner's rows is a block with its own level.
            blocks=2 * self.learners.owner + self.second if self.selection.dependent else None,
            inflation=self.selection.inflation,
        )

    def _sums(self, coefficients: Array, clusters: Array) -> tuple[Array, Array]:
        """Return second and first derivatives of each learner's loss at its cluster's model.

        ``coefficients`` (C, K, d) are the clusters' models and ``clusters`` (L,) the learners' labels. The
        curvatures have the shape (C, L, d, d), the slopes (C, L, d); sums over members give a cluster's.
        """
        n_learners, (n_columns, _, d) = len(self.learners), coefficients.shape
        curvatures, slopes = np.empty((n_columns, n_learners, d, d)), np.empty((n_columns, n_learners, d))
        for j in range(n_learners):
            span = self.learners.span(j)
            Z, weights = self._Z[span], self._weights[span]
            probabilities = expit(coefficients[:, clusters[j]] @ Z.T)
            slopes[:, j] = ((probabilities - self.learners.y[span].T) * weights) @ Z
            curvatures[:, j] = (Z.T * (probabilities * (1 - probabilities) * weights)[:, None]) @ Z
        return curvatures, slopes

    def _fitted(self, labels: Array, n_clusters: int) -> tuple[Array, Array, Array, Array]:
        """Fit a logistic model to the pooled rows of each of K clusters, all together by Newton's method.

        Returns the models (C, K, d) and the clusters' curvatures (C, K, d, d). The learners' curvatures (C,
        L, d, d) and slopes (C, L, d) follow, by which a learner can be left out of its cluster again.
        """
        coefficients = np.repeat(self._model_of_all, n_clusters, axis=1)
        ridge, members = (
            np.eye(coefficients.shape[2]),
            membership(labels, n_clusters, np.ones(len(labels))),
        )
        for _ in range(STEPS):
            curvatures, slopes = self._sums(coefficients, labels)
            total_curvatures = (
                np.array([cluster_sums(members, of_column) for of_column in curvatures]) + ridge
            )
            total_slopes = np.array([cluster_sums(members, of_column) for of_column in slopes])
            total_slopes += coefficients - self._prior[:, None]
            step = bounded_step(np.linalg.solve(total_curvatures, total_slopes[..., None])[..., 0])
            coefficients = coefficients - step
            if np.abs(step).max() < np.sqrt(TOLERANCE):
                break
        return coefficients, total_curvatures, curvatures, slopes

    def residual_blocks(self, labels: Array, n_clusters: int) -> Iterator[tuple[int, int, Array]]:
        """Yield the residuals (K, n, C) for runs of learners, each learner left out of its own cluster.

        A learner is left out by one Newton step from its cluster's model, with the learner's own derivatives
        subtracted. Residuals are NaN where nobody else is in the cluster.
        """
        coefficients, total_curvatures, own_curvatures, own_slopes = self._fitted(labels, n_clusters)
        n_members = np.bincount(labels, minlength=n_clusters)
        # At the cluster's model all slopes sum to zero; the others' are then minus the learner's own.
        step = np.linalg.solve(total_curvatures[:, labels] - own_curvatures, own_slopes[..., None])[..., 0]
        without_owner = coefficients[:, labels] + bounded_step(step)
        without_owner[:, n_members[labels] == 1] = np.nan
        coefficients[:, n_members == 0] = np.nan
        for first_learner, next_learner in self.runs(n_clusters):
            rows = self._rows_of(first_learner, next_learner)
            Z, owner = self._Z[rows], self.learners.owner[rows]
            log_odds = np.moveaxis(coefficients @ Z.T, 0, -1)
            own_log_odds = np.einsum("nd,cnd->nc", Z, without_owner[:, owner])
            log_odds[labels[owner], np.arange(len(Z))] = own_log_odds
            yield first_learner, next_learner, self.learners.y[rows] - shares_of(expit(log_odds))

    def residuals(self, labels: Array, n_clusters: int) -> Array:
        """Return the residuals (K, N, C) of all rows under each cluster, own contributions left out."""
        return np.concatenate([block for _, _, block in self.residual_blocks(labels, n_clusters)], axis=1)
