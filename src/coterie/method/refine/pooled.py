"""Clusters that predict by one linear model on their members' pooled rows.

Pooled rows are sums of second moments, so leaving one learner out is a subtraction and one small solve.
Members count by their precision 1 / h_j per row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from coterie._arrays import Array
from coterie.kernels.affine import StandardizedColumns, second_moments
from coterie.kernels.limits import LIMITS
from coterie.method.n_clusters.one_truth import compare_with_one_truth
from coterie.method.refine.averages import bounded_weights, membership
from coterie.method.refine.losses import LocalLosses, LocalRows
from coterie.method.refine.moment_starts import SEARCH, cluster_sums, search_moments
from coterie.method.refine.reassign import REASSIGN, reassigned_labels
from coterie.records import Selection
from coterie.rows.learners import Learners

# A ridge that steadies tiny clusters and duplicated columns and is nothing against a hundred rows.
RIDGE = 1e-2


class PooledLosses(LocalLosses):
    """Losses of linear models on pooled rows, by second moments; arguments as for `LocalLosses`."""

    def __init__(self, learners: Learners, selection: Selection) -> None:
        """Prepare second moments of each half of each learner's rows."""
        super().__init__(learners, selection)
        frame = StandardizedColumns(learners)
        self._Z, self._y = frame.rows(self.learners.X), self.learners.y - frame.middle
        weights = 1.0 if self.learners.weights is None else self.learners.weights
        tempered = replace(self.learners, weights=weights * self.tempering)
        G, c, squares = second_moments(self._Z, self._y, tempered)
        weight = learners.sizes * bounded_weights(1 / selection.noise)
        self._G, self._c = G * weight[:, None, None], c * weight[:, None, None]
        self._squares = squares * weight
        # Where noise is nothing against the signal, the ridge's bias must be nothing against the noise.
        share = np.sqrt(np.median(selection.noise) / max(float(self._y.var(axis=0).sum()), 1e-300))
        self._ridge = RIDGE * min(1.0, share) * np.eye(self._Z.shape[1])

    @property
    def local(self) -> LocalRows:
        """What these moments add to a search."""
        return LocalRows(suggest=self.suggest, one_truth_test=self.one_truth_test, reassign=self.reassigned)

    def suggest(self, n_clusters: int, seed: int) -> list[Array]:
        """Return the labelling that the learners' moments like best, from random starts."""
        return [search_moments(self._G, self._c, self._ridge, n_clusters, seed)]

    def one_truth_test(self, seed: int) -> tuple[float, float]:
        """Return by how much two clusters explain more than they would of one truth; NaN: not known."""
        (n, d), n_learners = self._Z.shape, len(self.learners)
        # Signs drawn row by row would hide that rows depend on each other.
        unsuited = self.selection.dependent or n <= 2 * d or not 3 <= n_learners <= LIMITS.many
        if unsuited or SEARCH.starts * n_learners * d**2 > LIMITS.numbers:
            return float("nan"), float("nan")
        one = np.linalg.solve(self._G.sum(axis=0) + self._ridge, self._c.sum(axis=0))
        residuals = self._y - self._Z @ one
        return compare_with_one_truth(self._Z, residuals, self.clips, self.learners, self._ridge, seed)

    def reassigned(self, labels: Array) -> Array:
        """Return who most probably belongs where, among those whose losses do not say."""
        (n, d), n_clusters = self._Z.shape, int(labels.max()) + 1
        costly = len(labels) * n_clusters * d**3 > LIMITS.numbers
        if n_clusters == 1 or n <= (n_clusters + 1) * d or costly:
            return labels
        open_to = self._no_worse(labels, REASSIGN.doubt)
        return reassigned_labels(self._G, self._c, self._squares, n, self._ridge, labels, open_to)

    def residual_blocks(self, labels: Array, n_clusters: int) -> Iterator[tuple[int, int, Array]]:
        """Give out the residuals for runs of learners, own contributions left out."""
        owner = self.learners.owner
        member = membership(labels, n_clusters, np.ones(len(labels)))
        G, c = cluster_sums(member, self._G), cluster_sums(member, self._c)
        coefficients = np.linalg.solve(G + self._ridge, c)
        counts = member.sum(axis=1)
        coefficients[counts == 0] = np.nan
        for start, stop in self.runs(n_clusters):
            run, rows = slice(start, stop), self._rows_of(start, stop)
            theirs = labels[run]
            other_grams = G[theirs] - self._G[run] + self._ridge
            without = np.linalg.solve(other_grams, c[theirs] - self._c[run])
            without[counts[theirs] == 1] = np.nan
            # One product for all clusters and columns.
            columns = coefficients.transpose(0, 2, 1)
            flat = columns.reshape(-1, columns.shape[2]) @ self._Z[rows].T
            residuals: Array = flat.reshape(*columns.shape[:2], -1).transpose(0, 2, 1)
            np.subtract(self._y[rows], residuals, out=residuals)
            own_cluster = labels[owner[rows]], np.arange(residuals.shape[1])
            own = np.einsum("nd,ndc->nc", self._Z[rows], without[owner[rows] - start])
            residuals[own_cluster] = self._y[rows] - own
            yield start, stop, residuals

    def residuals(self, labels: Array, n_clusters: int) -> Array:
        """Return residuals of shape (K, N, C), own contributions left out."""
        return np.concatenate([block for _, _, block in self.residual_blocks(labels, n_clusters)], axis=1)
