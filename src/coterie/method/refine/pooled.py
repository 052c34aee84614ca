"""Clusters that predict by one linear model on their members' pooled rows; who most probably belongs where.

Pooled rows are sums of second moments, so leaving one learner out is a subtraction and one small solve.
Members count by their precision 1 / h_j per row.

Once the number of clusters is known, the same moments reassign learners. A learner's loss with a cluster's
model does not say how sure that model is. Where a cluster has few rows, its model is off by chance, and with
it the loss of everybody who is judged by it. The probability of a learner's rows, given the rows of the
others in the cluster, knows this. Clusters' coefficients depart from those of all by a normal prior, whose
spread is the one that makes the rows most probable; learners move to where their rows are most probable until
nobody wants to. It costs a few small solves.

Refine looks for models that predict, and a learner that is left out of its own cluster is predicted by fewer
rows there than elsewhere. At low signal that costs labels: see ``benchmarks/quality/peers``. Probabilities
believe in normal noise and in the same truth for all of a cluster, losses do not: so only learners whose
losses cannot tell the clusters apart are moved. Without that, wild rows and large learners that differ a
little drove odd learners into the crowd; other starts than the refined labels did, too, and gained nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from coterie._arrays import Array
from coterie.kernels.affine import StandardizedColumns, second_moments
from coterie.kernels.limits import LIMITS
from coterie.method.n_clusters.one_truth import compare_with_one_truth
from coterie.method.refine.averages import bounded_weights, membership
from coterie.method.refine.losses import LocalLosses, LocalRows
from coterie.method.refine.moment_starts import SEARCH, cluster_sums, search_moments
from coterie.records import Selection
from coterie.rows.learners import Learners

# A ridge that steadies tiny clusters and duplicated columns and is nothing against a hundred rows.
RIDGE = 1e-2


@dataclass(frozen=True)
class ReassignRule:
    """The priors that are tried, and which learners may move."""

    # What the prior of a cluster's coefficients may be worth, in average learners; the most probable is
    # taken. At high signal clusters lie far apart, and a prior that does not allow for it would join them.
    priors: tuple[float, ...] = tuple(10.0 ** np.arange(-8.0, 0.75, 0.5))
    # Standard errors by which a cluster's loss may be higher than that of the learner's own for it to move
    # there. Without this bound, wild rows drove odd learners into the crowd.
    doubt: float = 1.5


REASSIGN = ReassignRule()


@dataclass(frozen=True)
class _NoiseMoments:
    """Second moments about the model of all, in units of noise."""

    G: Array
    c: Array

    def of_clusters(self, labels: Array, n_clusters: int) -> tuple[Array, Array]:
        """Return the sums of the learners' moments by cluster."""
        member = (labels == np.arange(n_clusters)[:, None]).astype(float)
        return cluster_sums(member, self.G), cluster_sums(member, self.c)


def log_probability(G: Array, c: Array, precision: float) -> Array:
    """Return how probable rows are, less what does not depend on who shares a model.

    ``G`` of shape (..., d, d) are second moments of predictors in units of noise, ``c`` of shape (..., d, C)
    their products with the response, ``precision`` that of the coefficients' normal prior around zero. It is
    the log of the probability of the response, integrated over coefficients.
    """
    shrunk = G / precision + np.eye(G.shape[-1])
    fitted = np.linalg.solve(shrunk, c / precision)
    explained = np.einsum("...dc,...dc->...", fitted, c)
    result: Array = 0.5 * (explained - c.shape[-1] * np.linalg.slogdet(shrunk)[1])
    return result


def _gains(rows: _NoiseMoments, labels: Array, open_to: Array, precision: float) -> Array:
    """Return what each move makes more probable, of shape (K, L)."""
    n_clusters = len(open_to)
    G, c = rows.of_clusters(labels, n_clusters)
    now = log_probability(G, c, precision)
    joined = log_probability(G[:, None] + rows.G, c[:, None] + rows.c, precision) - now[:, None]
    cost_of_leaving = now[labels] - log_probability(G[labels] - rows.G, c[labels] - rows.c, precision)
    gains: Array = joined - cost_of_leaving
    gains[~open_to] = 0.0
    gains[labels, np.arange(len(labels))] = 0.0
    # No move leaves a cluster empty: the number of clusters is known.
    gains[:, np.bincount(labels, minlength=n_clusters)[labels] == 1] = 0.0
    return gains


def _total(rows: _NoiseMoments, labels: Array, n_clusters: int, precision: float) -> float:
    return float(log_probability(*rows.of_clusters(labels, n_clusters), precision).sum())


def _reassign(rows: _NoiseMoments, labels: Array, open_to: Array, precision: float) -> Array:
    """Move learners until nobody wants to: all who want to if that pays, else the one who gains most."""
    n_clusters = len(open_to)
    for _ in range(len(labels)):
        gains = _gains(rows, labels, open_to, precision)
        best = gains.max(axis=0)
        if best.max() < 1e-9:
            break
        now = _total(rows, labels, n_clusters, precision)
        all_moved = np.where(best > 1e-9, gains.argmax(axis=0), labels)
        full = len(np.unique(all_moved)) == n_clusters
        if full and _total(rows, all_moved, n_clusters, precision) > now + best.max():
            labels = all_moved
        else:
            labels = labels.copy()
            labels[best.argmax()] = gains[:, best.argmax()].argmax()
    return labels


def _most_probable(rows: _NoiseMoments, labels: Array, n_clusters: int) -> tuple[float, float]:
    """Return how probable the rows are under the best prior, and that prior's precision."""
    information = float(np.trace(rows.G.mean(axis=0)) / rows.G.shape[-1])
    precisions = [prior * information for prior in REASSIGN.priors]
    return max((_total(rows, labels, n_clusters, precision), precision) for precision in precisions)


def reassigned_labels(
    G: Array, c: Array, squares: Array, n_rows: int, ridge: Array, labels: Array, open_to: Array
) -> Array:
    """Return the labels under which the rows are most probable, with as many clusters as there are.

    ``G`` of shape (L, d, d), ``c`` of shape (L, d, C) and ``squares`` of shape (L,) are the second moments of
    each learner's rows, in the weights in which learners are pooled. ``n_rows`` counts the rows of all
    learners. ``ridge`` of shape (d, d) is added to the moments of every cluster where the level of noise is
    estimated. ``open_to`` of shape (K, L) tells which clusters a learner may move to. The labels given stay
    where no move makes the rows more probable.
    """
    n_clusters, d = len(open_to), G.shape[-1]
    one = np.linalg.solve(G.sum(axis=0) + ridge, c.sum(axis=0))
    about = c - G @ one
    unexplained = squares - 2 * np.einsum("jdc,dc->j", c, one) + np.einsum("jde,dc,ec->j", G, one, one)
    sums, products = _NoiseMoments(G, about).of_clusters(labels, n_clusters)
    fitted = np.linalg.solve(sums + ridge, products)
    noise = (unexplained.sum() - float(np.sum(fitted * products))) / (n_rows - n_clusters * d)
    # Without noise the losses have said it all, and these differences of large numbers would not.
    if not noise > 1e-9 * unexplained.sum() / n_rows:
        return labels
    rows = _NoiseMoments(G / noise, about / noise)
    return _reassign(rows, labels, open_to, _most_probable(rows, labels, n_clusters)[1])


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
