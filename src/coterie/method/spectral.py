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
    """Return the positions of learners whose losses with everybody stand for the whole matrix.

    These are the landmarks where only landmarks were exchanged with, else a sample of the learners.
    """
    if exchange.landmarks is not None:
        return exchange.landmarks
    return _sample(len(exchange.learner_ids), LIMITS.many)


def _sample(n_learners: int, size: int) -> Array:
    """Return the sorted positions of ``size`` random learners, the same ones in every call."""
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
        small_exchange = exchange.take(_representatives(exchange)) if avoids_pairs(exchange) else exchange
        v = small_exchange.dissimilarity
        # Each pair once.
        distances = v[np.triu_indices(len(v), 1)]
        level = float(np.median(distances)) if len(distances) else 0.0
        if not level > 0:
            level = float(np.median(distances[distances > 0])) if (distances > 0).any() else 1.0
    return 1.0 / level if np.isfinite(1.0 / level) else 1.0


def count_parts(similarity: Array) -> int:
    """Count the connected components of the graph whose edges are similarities above rounding.

    ``similarity`` has the shape (L, L). With more components than clusters, eigenvectors cannot tell which
    components belong together. The search is breadth-first.
    """
    is_unseen = np.ones(len(similarity), dtype=bool)
    n_parts = 0
    while is_unseen.any():
        n_parts += 1
        frontier = np.flatnonzero(is_unseen)[:1]
        is_unseen[frontier] = False
        while len(frontier) and is_unseen.any():
            # A learner's similarity with itself is one: what is rounding against it does not connect.
            is_reached = is_unseen & (similarity[frontier] > LIMITS.rounding).any(axis=0)
            is_unseen &= ~is_reached
            frontier = np.flatnonzero(is_reached)
    return n_parts


@dataclass(frozen=True)
class Spectrum:
    """Top eigenpairs of the normalised similarity.

    ``eigenvalues`` (M,) descend, ``eigenvectors`` (L, M) have a fixed sign, and ``n_parts`` counts the
    connected components of the graph.

    Two fields are known only where the spectrum was iterated for without storing S. ``residual`` is the
    largest norm of operator times vector minus value times vector among the pairs that had to be precise.
    ``plain_values`` (M,) are the eigenvalues of S itself.
    """

    eigenvalues: Array
    eigenvectors: Array
    n_parts: int
    residual: float = 0.0
    plain_values: Array | None = None

    def embedding(self, n_clusters: int) -> Array:
        """Return the learners' positions for k-means: rows of the top K eigenvectors, scaled to length one.

        The result has shape (L, K); it has fewer columns where fewer eigenvalues are above rounding.
        """
        # Eigenvectors of an eigenvalue of zero are rounding: learners that agree would be torn apart.
        n_columns = max(1, int(np.sum(self.eigenvalues[:n_clusters] > LIMITS.rounding)))
        top_vectors = self.eigenvectors[:, :n_columns]
        lengths = np.linalg.norm(top_vectors, axis=1, keepdims=True)
        embedding: Array = np.divide(top_vectors, lengths, out=np.zeros_like(top_vectors), where=lengths > 0)
        # A learner without any similarity has no direction: it gets the first axis.
        embedding[lengths[:, 0] == 0, 0] = 1.0
        return embedding


def _signed(vectors: Array) -> Array:
    """Return eigenvectors (n, M) with their sign fixed: the largest entry of each is positive.

    The sign of an eigenvector is arbitrary; without this, results would differ between machines.
    """
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])])
    return vectors * np.where(signs == 0, 1.0, signs)


def top_eigenpairs(matrix: Array, degrees: Array | None, count: int) -> tuple[Array, Array]:
    """Return the ``count`` largest eigenvalues and eigenvectors of D^-1/2 A D^-1/2, in descending order.

    ``matrix`` A is symmetric of shape (n, n), and ``degrees`` (n,) are the diagonal of D; None: of A itself.
    Small matrices are decomposed in full, large ones by Lanczos iterations.
    """
    n = len(matrix)
    inverse_root = np.ones(n) if degrees is None else 1.0 / np.sqrt(degrees)
    if n <= max(LIMITS.few, 3 * count):
        # Of all drivers only this one never fails on eigenvalues that repeat. It gives them ascending.
        eigenvalues, eigenvectors = np.linalg.eigh(matrix * inverse_root[:, None] * inverse_root)
        eigenvalues, eigenvectors = eigenvalues[::-1][:count], eigenvectors[:, ::-1][:, :count]
    else:
        operator = LinearOperator(
            (n, n), matvec=lambda x: inverse_root * (matrix @ (inverse_root * x.ravel())), dtype=float
        )
        eigenvalues, eigenvectors = eigsh(operator, k=count, which="LA", v0=np.ones(n), tol=1e-7)
        order = np.argsort(-eigenvalues, kind="stable")
        eigenvalues, eigenvectors = eigenvalues[order], eigenvectors[:, order]
    return eigenvalues, _signed(eigenvectors)


def spectrum_of(similarity: Array, count: int) -> Spectrum:
    """Return the spectrum of a similarity S that is stored, of shape (L, L).

    It holds the ``count`` top eigenpairs of D^-1/2 S D^-1/2, where D has the row sums of S, and the number of
    connected components of the graph.
    """
    count = min(count, len(similarity))
    eigenvalues, eigenvectors = top_eigenpairs(similarity, similarity.sum(axis=1), count)
    return Spectrum(eigenvalues, eigenvectors, count_parts(similarity))


def matrix_free_spectrum(
    exchange: Exchange, scale: float, count: int, device: str = "cpu", needed: int = 1
) -> Spectrum:
    """Return the ``count`` top eigenpairs of D^-1/2 S D^-1/2, with their residual, without storing S.

    The first ``needed`` pairs are iterated for until they are precise, and so are those in front of the
    largest drop of the eigenvalues. Components of the graph are counted as eigenvalues that are one. Where
    only landmarks were exchanged with, the spectrum is the Nystrom extension of theirs.
    """
    if exchange.landmarks is not None:
        count = min(count, len(exchange.landmarks))
        pairs = nystrom_pairs(ExchangeSimilarity(exchange, scale), exchange.landmarks, count)
    else:
        count = min(count, len(exchange.learner_ids))
        pairs = top_pairs_of(exchange, scale, count, device, min(needed, count))
    eigenvalues = np.asarray(pairs.values, dtype=float)
    # Each separate part of the graph has one eigenvalue of one; half the digits may be rounding.
    n_parts = max(1, int(np.sum(eigenvalues > 1 - half_the_digits(pairs.values.dtype))))
    eigenvectors = _signed(np.asarray(pairs.vectors, dtype=float))
    return Spectrum(
        eigenvalues=eigenvalues,
        eigenvectors=eigenvectors,
        n_parts=n_parts,
        residual=pairs.residual,
        plain_values=np.asarray(pairs.plain_values, dtype=float),
    )


def _cluster_many(points: Array, n_clusters: int, seed: int) -> tuple[Array, float]:
    """Return k-means labels (n,) of many points (n, d), and their within-cluster sum of squares.

    As `cluster_rows`, but by scikit-learn's k-means, whose iterations over many rows are faster.
    """
    n_distinct = len(np.unique(np.round(points[_sample(len(points), LIMITS.many)], 9), axis=0))
    if n_clusters == 1 or n_distinct == 1:
        return np.zeros(len(points), dtype=int), float(((points - points.mean(axis=0)) ** 2).sum())
    n_centres, state = min(n_clusters, n_distinct), seed % 2**32
    estimator = KMeans(n_centres, n_init=3, max_iter=ITERATIONS, random_state=state)
    with warnings.catch_warnings():
        # Rows may coincide: fewer clusters are then found, as is said of this function.
        warnings.simplefilter("ignore", ConvergenceWarning)
        # Centres found among some of the rows need but a few steps with all of them.
        centres = estimator.fit(points[_sample(len(points), LIMITS.huge)]).cluster_centers_
        estimator = KMeans(n_centres, init=centres, n_init=1, max_iter=3, random_state=state)
        estimator.fit(points)
    return estimator.labels_.astype(int), float(estimator.inertia_)


def cluster_rows(points: Array, n_clusters: int, seed: int) -> tuple[Array, float]:
    """Return the k-means labels (n,) of an embedding's rows, and their within-cluster sum of squares.

    ``points`` has the shape (n, d). Rows that coincide share a label, so that there may be fewer clusters
    than asked for.
    """
    if is_large(len(points)):
        return _cluster_many(points, n_clusters, seed)
    # Rows have length one: nine decimals are the same row up to rounding.
    n_distinct = len(np.unique(np.round(points, 9), axis=0))
    # Each start costs in proportion to the learners; with many of them fewer starts go wrong.
    restarts = 10 if len(points) <= LIMITS.few else 3
    generator = np.random.default_rng(seed)
    labels, sums_of_squares = kmeans(points[None], min(n_clusters, n_distinct), generator, restarts)
    return labels[0], float(sums_of_squares[0])


def linkage_labels(dissimilarity: Array, n_clusters: int) -> Array:
    """Return labels (L,) by average-linkage clustering of a stored dissimilarity v (L, L).

    There may be fewer clusters than ``n_clusters`` where dissimilarities tie.
    """
    if len(dissimilarity) == 1:
        return np.zeros(1, dtype=int)
    tree = linkage(squareform(dissimilarity, checks=False), "average")
    labels: Array = fcluster(tree, n_clusters, "maxclust") - 1
    return labels


class SampledLinkage:
    """Average linkage of a sample of learners; everybody else joins the cluster that is nearest on average.

    Where learners are too many for a matrix of all pairs, this takes L times sample dissimilarities only.
    ``most`` is the largest number of clusters that will be needed.
    """

    def __init__(self, exchange: Exchange, most: int) -> None:
        """Build the tree of a sample, and sum everybody's dissimilarities to each of its finest clusters.

        Clusters for smaller numbers are unions of these, so that their sums need no further look at the
        exchange.
        """
        n_learners = len(exchange.learner_ids)
        sample = _representatives(exchange)
        pairs_in_sample = squareform(exchange.take(sample).dissimilarity, checks=False)
        self._tree = linkage(pairs_in_sample, "average")
        self._finest = fcluster(self._tree, most, "maxclust") - 1
        membership = np.eye(int(self._finest.max()) + 1)[self._finest]
        self._sums = np.vstack(
            [
                exchange.dissimilarity_tile(rows, sample) @ membership
                for rows in spans(n_learners, LIMITS.many)
            ]
        )
        self._sample = sample

    def labels(self, n_clusters: int) -> Array:
        """Return labels (L,) for a number of clusters, which is at most ``most``.

        The tree of the sample is cut, and every other learner joins the cluster with the lowest mean
        dissimilarity.
        """
        sample_labels = fcluster(self._tree, n_clusters, "maxclust") - 1
        coarse_of_finest = np.zeros((self._sums.shape[1], int(sample_labels.max()) + 1))
        coarse_of_finest[self._finest, sample_labels] = 1.0
        labels: Array = (self._sums @ coarse_of_finest / np.bincount(sample_labels)).argmin(axis=1)
        labels[self._sample] = sample_labels
        return labels


def linkage_of(exchange: Exchange, most: int) -> Callable[[int], Array]:
    """Return a function from a number of clusters to the labels (L,) of average linkage on v.

    ``most`` is the largest number that it will be called with. Where pairs of learners are too many to store,
    the tree is built of a sample, once for all numbers.
    """
    if avoids_pairs(exchange):
        return SampledLinkage(exchange, most).labels
    return lambda n_clusters: linkage_labels(exchange.dissimilarity, n_clusters)


def tidy_labels(labels: Array) -> Array:
    """Renumber clusters from 0 to K - 1, the largest first; of equally large ones, the one seen first.

    Labels (L,) of the same partition are then equal, whatever its clusters were called.
    """
    _, first_positions, cluster_codes, cluster_sizes = np.unique(
        labels, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.lexsort((first_positions, -cluster_sizes))
    number_of_cluster = np.empty(len(order), dtype=int)
    number_of_cluster[order] = np.arange(len(order))
    return number_of_cluster[cluster_codes]
