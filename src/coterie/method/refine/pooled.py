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
    """Each learner's sums X'X (L, d, d) and X'e (L, d, C), over the variance of the noise.

    The e are residuals of one linear model of all learners.
    """

    G: Array
    c: Array

    def of_clusters(self, labels: Array, n_clusters: int) -> tuple[Array, Array]:
        """Return the sums X'X (K, d, d) and X'e (K, d, C) of the members of each cluster."""
        member = (labels == np.arange(n_clusters)[:, None]).astype(float)
        return cluster_sums(member, self.G), cluster_sums(member, self.c)


def log_probability(G: Array, c: Array, precision: float) -> Array:
    """Return the log marginal likelihood of rows under a Bayesian linear model, less a constant.

    ``G`` of shape (..., d, d) are sums X'X in units of noise, ``c`` of shape (..., d, C) the sums X'y, and
    ``precision`` is that of the coefficients' normal prior around zero. The coefficients are integrated out.
    What is left away does not depend on who shares a model, so that clusterings can be compared.
    """
    # In units of the prior's precision.
    posterior_precision = G / precision + np.eye(G.shape[-1])
    posterior_means = np.linalg.solve(posterior_precision, c / precision)
    explained = np.einsum("...dc,...dc->...", posterior_means, c)
    log_likelihood: Array = 0.5 * (explained - c.shape[-1] * np.linalg.slogdet(posterior_precision)[1])
    return log_likelihood


def _gains(rows: _NoiseMoments, labels: Array, open_to: Array, precision: float) -> Array:
    """Return by how much the log likelihood grows if one learner moves to one cluster, of shape (K, L).

    Gains are zero for moves that ``open_to`` (K, L) forbids, for staying, and for leaving a cluster empty.
    The ``precision`` is that of the coefficients' prior. By sums, joining is an addition and leaving a
    subtraction, so that all K L moves are scored without looking at rows.
    """
    n_clusters = len(open_to)
    G, c = rows.of_clusters(labels, n_clusters)
    likelihood_now = log_probability(G, c, precision)
    gain_of_joining = (
        log_probability(G[:, None] + rows.G, c[:, None] + rows.c, precision) - likelihood_now[:, None]
    )
    cost_of_leaving = likelihood_now[labels] - log_probability(
        G[labels] - rows.G, c[labels] - rows.c, precision
    )
    gains: Array = gain_of_joining - cost_of_leaving
    gains[~open_to] = 0.0
    gains[labels, np.arange(len(labels))] = 0.0
    # No move leaves a cluster empty: the number of clusters is known.
    gains[:, np.bincount(labels, minlength=n_clusters)[labels] == 1] = 0.0
    return gains


def _total_log_likelihood(rows: _NoiseMoments, labels: Array, n_clusters: int, precision: float) -> float:
    """Return the log likelihood of all rows under a labelling (L,), summed over its clusters."""
    return float(log_probability(*rows.of_clusters(labels, n_clusters), precision).sum())


def _reassign(rows: _NoiseMoments, labels: Array, open_to: Array, precision: float) -> Array:
    """Move learners to more probable clusters until no move makes the rows more probable.

    In each round all learners move who gain by it, if the rows become more probable than by the best single
    move; else only the learner moves who gains most. ``open_to`` (K, L) tells which moves are allowed.
    Returns the labels (L,); no cluster becomes empty.
    """
    n_clusters = len(open_to)
    for _ in range(len(labels)):
        gains = _gains(rows, labels, open_to, precision)
        best_gains = gains.max(axis=0)
        if best_gains.max() < 1e-9:
            break
        now = _total_log_likelihood(rows, labels, n_clusters, precision)
        all_moved = np.where(best_gains > 1e-9, gains.argmax(axis=0), labels)
        no_cluster_is_empty = len(np.unique(all_moved)) == n_clusters
        if (
            no_cluster_is_empty
            and _total_log_likelihood(rows, all_moved, n_clusters, precision) > now + best_gains.max()
        ):
            labels = all_moved
        else:
            labels = labels.copy()
            labels[best_gains.argmax()] = gains[:, best_gains.argmax()].argmax()
    return labels


def _most_probable(rows: _NoiseMoments, labels: Array, n_clusters: int) -> tuple[float, float]:
    """Return the log likelihood of the rows under the best prior, and that prior's precision.

    This is empirical Bayes over a grid of precisions, in units of the average learner's information.
    """
    information = float(np.trace(rows.G.mean(axis=0)) / rows.G.shape[-1])
    precisions = [prior * information for prior in REASSIGN.priors]
    return max(
        (_total_log_likelihood(rows, labels, n_clusters, precision), precision) for precision in precisions
    )


def reassigned_labels(
    G: Array, c: Array, squares: Array, n_rows: int, ridge: Array, labels: Array, open_to: Array
) -> Array:
    """Return the labels (L,) under which the rows are most probable, with as many clusters as there are.

    ``G`` (L, d, d), ``c`` (L, d, C) and ``squares`` (L,) are the sums X'X, X'y and y'y of each learner's
    rows, in the weights in which learners are pooled. ``n_rows`` counts the rows of all learners. ``ridge``
    (d, d) is added to each cluster's X'X where the level of noise is estimated.

    ``open_to`` of shape (K, L) tells which clusters a learner may move to. ``labels`` (L,) stay where no move
    makes the rows more probable.
    """
    n_clusters, d = len(open_to), G.shape[-1]
    model_of_all = np.linalg.solve(G.sum(axis=0) + ridge, c.sum(axis=0))
    residual_products = c - G @ model_of_all
    residual_squares = (
        squares
        - 2 * np.einsum("jdc,dc->j", c, model_of_all)
        + np.einsum("jde,dc,ec->j", G, model_of_all, model_of_all)
    )
    cluster_grams, cluster_products = _NoiseMoments(G, residual_products).of_clusters(labels, n_clusters)
    departures = np.linalg.solve(cluster_grams + ridge, cluster_products)
    noise_variance = (residual_squares.sum() - float(np.sum(departures * cluster_products))) / (
        n_rows - n_clusters * d
    )
    # Without noise the losses have said it all, and these differences of large numbers would not.
    if not noise_variance > 1e-9 * residual_squares.sum() / n_rows:
        return labels
    rows = _NoiseMoments(G / noise_variance, residual_products / noise_variance)
    return _reassign(rows, labels, open_to, _most_probable(rows, labels, n_clusters)[1])


class PooledLosses(LocalLosses):
    """Losses of clusters that predict by one linear model on their members' pooled rows.

    Models come from each learner's sums X'X and X'y, so that leaving a learner out is a subtraction.
    Arguments are as for `LocalLosses`.
    """

    def __init__(self, learners: Learners, selection: Selection) -> None:
        """Compute each learner's weighted sums X'X, X'y and y'y in a standardised frame.

        Learners count by their precision, and rows that their own model misses by far count less. The ridge
        is small against a hundred rows.
        """
        super().__init__(learners, selection)
        # _Z (N, d) are standardised rows with a column of ones; _y (N, C) is the response less its mean.
        frame = StandardizedColumns(learners)
        self._Z, self._y = frame.rows(self.learners.X), self.learners.y - frame.middle
        weights = 1.0 if self.learners.weights is None else self.learners.weights
        tempered = replace(self.learners, weights=weights * self.tempering)
        G, c, squares = second_moments(self._Z, self._y, tempered)
        # Rows of quiet learners count more.
        weight = learners.sizes * bounded_weights(1 / selection.noise)
        # Each learner's sums: _G (L, d, d) is X'X, _c (L, d, C) is X'y, _squares (L,) is y'y.
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
        """Return a labelling (L,) of K clusters that is worth refining: the best of many random starts.

        It is found by linear models from sums X'X and X'y, without looking at rows.
        """
        return [search_moments(self._G, self._c, self._ridge, n_clusters, seed)]

    def one_truth_test(self, seed: int) -> tuple[float, float]:
        """Return how much more two clusters explain than they would of noise around one model.

        This is a number of standard deviations, and a share of what one model leaves unexplained. Both are
        NaN where the test does not apply: rows are too few or depend on each other, or it would take too
        long.
        """
        (n, d), n_learners = self._Z.shape, len(self.learners)
        # Signs drawn row by row would hide that rows depend on each other.
        is_unsuited = self.selection.dependent or n <= 2 * d or not 3 <= n_learners <= LIMITS.many
        if is_unsuited or SEARCH.starts * n_learners * d**2 > LIMITS.numbers:
            return float("nan"), float("nan")
        model_of_all = np.linalg.solve(self._G.sum(axis=0) + self._ridge, self._c.sum(axis=0))
        residuals = self._y - self._Z @ model_of_all
        return compare_with_one_truth(self._Z, residuals, self.clips, self.learners, self._ridge, seed)

    def reassigned(self, labels: Array) -> Array:
        """Return labels (L,) in which learners sit where their rows are most probable.

        Only learners may move whose losses with two clusters do not differ clearly. The labels stay as they
        are where there is one cluster, rows are too few, or it would take too long.
        """
        (n, d), n_clusters = self._Z.shape, int(labels.max()) + 1
        is_costly = len(labels) * n_clusters * d**3 > LIMITS.numbers
        if n_clusters == 1 or n <= (n_clusters + 1) * d or is_costly:
            return labels
        # The losses decide where they can: others may not be moved by a model that believes in normal noise.
        open_to = self._no_worse(labels, REASSIGN.doubt)
        return reassigned_labels(self._G, self._c, self._squares, n, self._ridge, labels, open_to)

    def residual_blocks(self, labels: Array, n_clusters: int) -> Iterator[tuple[int, int, Array]]:
        """Yield the residuals (K, n, C) for runs of learners, each learner left out of its own cluster.

        Residuals are NaN where nobody else is in the cluster.
        """
        owner = self.learners.owner
        members = membership(labels, n_clusters, np.ones(len(labels)))
        cluster_G, cluster_c = cluster_sums(members, self._G), cluster_sums(members, self._c)
        coefficients = np.linalg.solve(cluster_G + self._ridge, cluster_c)
        n_members = members.sum(axis=1)
        coefficients[n_members == 0] = np.nan
        for first_learner, next_learner in self.runs(n_clusters):
            run, rows = slice(first_learner, next_learner), self._rows_of(first_learner, next_learner)
            clusters_of_run = labels[run]
            grams_of_others = cluster_G[clusters_of_run] - self._G[run] + self._ridge
            models_of_others = np.linalg.solve(grams_of_others, cluster_c[clusters_of_run] - self._c[run])
            models_of_others[n_members[clusters_of_run] == 1] = np.nan
            # One product for all clusters and columns.
            model_rows = coefficients.transpose(0, 2, 1)
            flat_predictions = model_rows.reshape(-1, model_rows.shape[2]) @ self._Z[rows].T
            residuals: Array = flat_predictions.reshape(*model_rows.shape[:2], -1).transpose(0, 2, 1)
            np.subtract(self._y[rows], residuals, out=residuals)
            own_entries = labels[owner[rows]], np.arange(residuals.shape[1])
            predictions_of_others = np.einsum(
                "nd,ndc->nc", self._Z[rows], models_of_others[owner[rows] - first_learner]
            )
            residuals[own_entries] = self._y[rows] - predictions_of_others
            yield first_learner, next_learner, residuals

    def residuals(self, labels: Array, n_clusters: int) -> Array:
        """Return the residuals (K, N, C) of all rows under each cluster, own contributions left out."""
        return np.concatenate([block for _, _, block in self.residual_blocks(labels, n_clusters)], axis=1)
