"""Cluster: spectral clustering of the learners by Ng, Jordan and Weiss, for a given number of clusters.

S = exp(-a v); the top K eigenvectors of D^-1/2 S D^-1/2; rows scaled to length one; k-means. The scale a
is free in the paper. ``"noise"`` measures v in units of the learners' noise, so that the unit of the
response does not matter. When the graph falls into more than K parts, its eigenvectors cannot tell which
parts belong together, and average linkage on v decides.

Of very many learners S is never stored: its spectrum comes from products with tiles of it, and linkage from a
sample of the learners, whom the others join.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse.linalg import LinearOperator, eigsh
from scipy.spatial.distance import squareform
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from coterie._arrays import Array
from coterie._options import check_option, check_positive
from coterie.kernels.devices import top_pairs_of
from coterie.kernels.kmeans import ITERATIONS, kmeans
from coterie.kernels.limits import LIMITS, half_the_digits
from coterie.kernels.matrix_free import nystrom_pairs, spans
from coterie.kernels.similarities import ExchangeSimilarity
from coterie.records import Exchange


def is_large(n_learners: int) -> bool:
    """Tell whether matrices of all pairs of learners are to be avoided."""
    return n_learners > LIMITS.huge


def avoids_pairs(exchange: Exchange) -> bool:
    """Tell whether the learners are too many for all pairs, or all pairs were not exchanged."""
    return exchange.landmarks is not None or is_large(len(exchange.learner_ids))


def _representatives(exchange: Exchange) -> Array:
    """Return the positions of those whose losses with everybody stand for all losses."""
    if exchange.landmarks is not None:
        return exchange.landmarks
    return _sample(len(exchange.learner_ids), LIMITS.many)


def _sample(n_learners: int, size: int) -> Array:
    """Return the positions of some learners, the same ones every time."""
    return np.sort(np.random.default_rng(0).choice(n_learners, min(size, n_learners), replace=False))


def check_scale(scale: Any) -> None:
    """Refuse what is neither a known scale nor a positive number."""
    if isinstance(scale, str):
        check_option(scale, "scale", ("noise", "median"))
    else:
        check_positive(scale, "scale", "'noise' or 'median'")


def resolve_scale(exchange: Exchange, scale: Any) -> float:
    """Return the factor a of S = exp(-a v), positive and finite.

    It is one over the median noise level, one over the median dissimilarity, or the number given. If the
    chosen level is zero, it is one over the median of the positive dissimilarities. If all learners agree, it
    is one.
    """
    check_scale(scale)
    if not isinstance(scale, str):
        return float(scale)
    level = float(np.median(exchange.noise)) if scale == "noise" else 0.0
    if not level > 0:
        among = exchange.take(_representatives(exchange)) if avoids_pairs(exchange) else exchange
        v = among.dissimilarity
        apart = v[np.triu_indices(len(v), 1)]
        level = float(np.median(apart)) if len(apart) else 0.0
        if not level > 0:
            level = float(np.median(apart[apart > 0])) if (apart > 0).any() else 1.0
    return 1.0 / level if np.isfinite(1.0 / level) else 1.0


def count_parts(similarity: Array) -> int:
    """Count the parts into which the graph of similarities falls."""
    unseen = np.ones(len(similarity), dtype=bool)
    parts = 0
    while unseen.any():
        parts += 1
        frontier = np.flatnonzero(unseen)[:1]
        unseen[frontier] = False
        while len(frontier) and unseen.any():
            # A learner's similarity with itself is one: what is rounding against it does not connect.
            reached = unseen & (similarity[frontier] > LIMITS.rounding).any(axis=0)
            unseen &= ~reached
            frontier = np.flatnonzero(reached)
    return parts


@dataclass(frozen=True)
class Spectrum:
    """Top eigenpairs of the normalised similarity.

    ``eigenvalues`` (M,) descend, ``eigenvectors`` (L, M) have a fixed sign, ``n_parts`` are the parts into
    which the graph falls. Where the spectrum was iterated for without storing S, ``residual`` is the largest
    norm of operator times vector minus value times vector among the pairs that were waited for, and
    ``plain_values`` (M,) are the eigenvalues of S itself.
    """

    eigenvalues: Array
    eigenvectors: Array
    n_parts: int
    residual: float = 0.0
    plain_values: Array | None = None

    def embedding(self, n_clusters: int) -> Array:
        """Return the rows of the top eigenvectors, scaled to length one; no more than are not zero."""
        # Eigenvectors of an eigenvalue of zero are rounding: learners that agree would be torn apart.
        n_columns = max(1, int(np.sum(self.eigenvalues[:n_clusters] > LIMITS.rounding)))
        U = self.eigenvectors[:, :n_columns]
        lengths = np.linalg.norm(U, axis=1, keepdims=True)
        embedding: Array = np.divide(U, lengths, out=np.zeros_like(U), where=lengths > 0)
        # A learner without any similarity has no direction: it gets the first axis.
        embedding[lengths[:, 0] == 0, 0] = 1.0
        return embedding


def _signed(vectors: Array) -> Array:
    """Give eigenvectors, whose sign is arbitrary, one that is the same everywhere."""
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])])
    return vectors * np.where(signs == 0, 1.0, signs)


def top_eigenpairs(matrix: Array, degrees: Array | None, count: int) -> tuple[Array, Array]:
    """Return the largest eigenvalues and vectors of the matrix, scaled by D^-1/2 on both sides."""
    n = len(matrix)
    root = np.ones(n) if degrees is None else 1.0 / np.sqrt(degrees)
    if n <= max(LIMITS.few, 3 * count):
        # Of all drivers only this one never fails on eigenvalues that repeat.
        values, vectors = np.linalg.eigh(matrix * root[:, None] * root)
        values, vectors = values[::-1][:count], vectors[:, ::-1][:, :count]
    else:
        operator = LinearOperator((n, n), matvec=lambda x: root * (matrix @ (root * x.ravel())), dtype=float)
        values, vectors = eigsh(operator, k=count, which="LA", v0=np.ones(n), tol=1e-7)
        order = np.argsort(-values, kind="stable")
        values, vectors = values[order], vectors[:, order]
    return values, _signed(vectors)


def spectrum_of(similarity: Array, count: int) -> Spectrum:
    """Return the top eigenpairs of D^-1/2 S D^-1/2 and the number of parts of the graph."""
    count = min(count, len(similarity))
    values, vectors = top_eigenpairs(similarity, similarity.sum(axis=1), count)
    return Spectrum(values, vectors, count_parts(similarity))


def matrix_free_spectrum(
    exchange: Exchange, scale: float, count: int, device: str = "cpu", needed: int = 1
) -> Spectrum:
    """Return the top eigenpairs of D^-1/2 S D^-1/2, with their residual, without storing S.

    ``needed`` pairs must be precise, beside those in front of the largest drop of the eigenvalues. Parts are
    counted by the eigenvalues that are one. Where only landmarks were exchanged with, it is their Nystrom
    extension.
    """
    if exchange.landmarks is not None:
        count = min(count, len(exchange.landmarks))
        pairs = nystrom_pairs(ExchangeSimilarity(exchange, scale), exchange.landmarks, count)
    else:
        count = min(count, len(exchange.learner_ids))
        pairs = top_pairs_of(exchange, scale, count, device, min(needed, count))
    values = np.asarray(pairs.values, dtype=float)
    n_parts = max(1, int(np.sum(values > 1 - half_the_digits(pairs.values.dtype))))
    vectors = _signed(np.asarray(pairs.vectors, dtype=float))
    return Spectrum(values, vectors, n_parts, pairs.residual, np.asarray(pairs.plain_values, dtype=float))


def _cluster_many(points: Array, n_clusters: int, seed: int) -> tuple[Array, float]:
    """Return the same by scikit-learn's k-means, whose iterations over many rows are faster."""
    distinct = len(np.unique(np.round(points[_sample(len(points), LIMITS.many)], 9), axis=0))
    if n_clusters == 1 or distinct == 1:
        return np.zeros(len(points), dtype=int), float(((points - points.mean(axis=0)) ** 2).sum())
    count, state = min(n_clusters, distinct), seed % 2**32
    search = KMeans(count, n_init=3, max_iter=ITERATIONS, random_state=state)
    with warnings.catch_warnings():
        # Rows may coincide: fewer clusters are then found, as is said of this function.
        warnings.simplefilter("ignore", ConvergenceWarning)
        # Centres found among some of the rows need but a few steps with all of them.
        centres = search.fit(points[_sample(len(points), LIMITS.huge)]).cluster_centers_
        search = KMeans(count, init=centres, n_init=1, max_iter=3, random_state=state)
        search.fit(points)
    return search.labels_.astype(int), float(search.inertia_)


def cluster_rows(points: Array, n_clusters: int, seed: int) -> tuple[Array, float]:
    """Return the k-means labels of an embedding's rows, and their within-cluster sum of squares.

    Rows that coincide share a label, whatever the number of clusters.
    """
    if is_large(len(points)):
        return _cluster_many(points, n_clusters, seed)
    distinct = len(np.unique(np.round(points, 9), axis=0))
    # Each start costs in proportion to the learners; with many of them fewer starts go wrong.
    restarts = 10 if len(points) <= LIMITS.few else 3
    generator = np.random.default_rng(seed)
    labels, sums = kmeans(points[None], min(n_clusters, distinct), generator, restarts)
    return labels[0], float(sums[0])


def linkage_labels(dissimilarity: Array, n_clusters: int) -> Array:
    """Return the clusters of average linkage on v."""
    if len(dissimilarity) == 1:
        return np.zeros(1, dtype=int)
    tree = linkage(squareform(dissimilarity, checks=False), "average")
    labels: Array = fcluster(tree, n_clusters, "maxclust") - 1
    return labels


class SampledLinkage:
    """Average linkage of a sample of learners; everybody else joins the cluster that is nearest on average.

    ``most`` is the largest number of clusters that will be needed.
    """

    def __init__(self, exchange: Exchange, most: int) -> None:
        """Draw the sample, build its tree, and add up all learners' dissimilarities by finest cluster."""
        n = len(exchange.learner_ids)
        sample = _representatives(exchange)
        condensed = squareform(exchange.take(sample).dissimilarity, checks=False)
        self._tree = linkage(condensed, "average")
        # Cuts of one tree are nested: sums over the finest clusters give those over all others.
        self._finest = fcluster(self._tree, most, "maxclust") - 1
        members = np.eye(int(self._finest.max()) + 1)[self._finest]
        self._sums = np.vstack(
            [exchange.dissimilarity_tile(rows, sample) @ members for rows in spans(n, LIMITS.many)]
        )
        self._sample = sample

    def labels(self, n_clusters: int) -> Array:
        """Return labels of all learners: others join the sampled cluster that is nearest."""
        cut = fcluster(self._tree, n_clusters, "maxclust") - 1
        joined = np.zeros((self._sums.shape[1], int(cut.max()) + 1))
        joined[self._finest, cut] = 1.0
        labels: Array = (self._sums @ joined / np.bincount(cut)).argmin(axis=1)
        labels[self._sample] = cut
        return labels


def linkage_of(exchange: Exchange, most: int) -> Callable[[int], Array]:
    """Return what answers with the clusters of average linkage on v, for a number of clusters."""
    if avoids_pairs(exchange):
        return SampledLinkage(exchange, most).labels
    return lambda n_clusters: linkage_labels(exchange.dissimilarity, n_clusters)


def tidy_labels(labels: Array) -> Array:
    """Number the clusters 0 to K - 1, the largest first; of equal ones the one seen first."""
    _, first, codes, counts = np.unique(labels, return_index=True, return_inverse=True, return_counts=True)
    order = np.lexsort((first, -counts))
    rank = np.empty(len(order), dtype=int)
    rank[order] = np.arange(len(order))
    return rank[codes]
