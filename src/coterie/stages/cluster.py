"""Cluster: spectral clustering of the learners by Ng, Jordan and Weiss, for a given number of clusters.

S = exp(-a v); the top K eigenvectors of D^-1/2 S D^-1/2; rows scaled to length one; k-means. The scale a
is free in the paper. ``"noise"`` measures v in units of the learners' noise, so that the unit of the
response does not matter. When the graph falls into more than K parts, its eigenvectors cannot tell which
parts belong together, and average linkage on v decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse.linalg import LinearOperator, eigsh
from scipy.spatial.distance import squareform

from coterie._options import check_option, check_positive
from coterie.kernels.kmeans import kmeans
from coterie.records import Exchange

Array = NDArray[Any]

# Up to this many learners a dense decomposition costs less than an iteration to convergence.
DENSE_LEARNERS = 600
SMALLEST_EIGENVALUE = 1e-10
# Beyond this many learners k-means starts less often.
MANY_LEARNERS = 500
# Similarities below this do not connect: they are rounding against a learner's own, which is one.
CONNECTED = 1e-12


def check_scale(scale: Any) -> None:
    """Refuse what is neither a known scale nor a positive number."""
    if isinstance(scale, str):
        check_option(scale, "scale", ("noise", "median"))
    else:
        check_positive(scale, "scale", "'noise' or 'median'")


def resolve_scale(exchange: Exchange, scale: Any) -> float:
    """Return the factor a of S = exp(-a v).

    Parameters
    ----------
    exchange : Exchange
        Of the learners to be clustered.
    scale : {"noise", "median"} or float
        One over the median noise level, one over the median dissimilarity, or the factor itself.

    Returns
    -------
    float
        Positive and finite. Where the level asked for is zero, one over the smallest positive
        dissimilarity's median; where all learners agree, one.
    """
    check_scale(scale)
    if not isinstance(scale, str):
        return float(scale)
    level = float(np.median(exchange.noise)) if scale == "noise" else 0.0
    if not level > 0:
        v = exchange.dissimilarity
        apart = v[np.triu_indices(len(v), 1)]
        level = float(np.median(apart)) if len(apart) else 0.0
        if not level > 0:
            level = float(np.median(apart[apart > 0])) if (apart > 0).any() else 1.0
    return 1.0 / level if np.isfinite(1.0 / level) else 1.0


def similarity_matrix(exchange: Exchange, scale: float, units: Array | None = None) -> Array:
    """Return S = exp(-a v), built tile by tile; ``units`` as in `Exchange.dissimilarity_tiles`."""
    n = len(exchange.learner_ids)
    S = np.empty((n, n))
    for rows, columns, tile in exchange.dissimilarity_tiles(units):
        np.exp(-scale * tile, out=tile)
        S[rows, columns] = tile
        S[columns, rows] = tile.T
    return S


def count_parts(similarity: Array) -> int:
    """Count the parts into which the graph of similarities falls."""
    unseen = np.ones(len(similarity), dtype=bool)
    parts = 0
    while unseen.any():
        parts += 1
        frontier = np.flatnonzero(unseen)[:1]
        unseen[frontier] = False
        while len(frontier) and unseen.any():
            reached = unseen & (similarity[frontier] > CONNECTED).any(axis=0)
            unseen &= ~reached
            frontier = np.flatnonzero(reached)
    return parts


@dataclass(frozen=True)
class Spectrum:
    """Top eigenpairs of the normalised similarity.

    Parameters
    ----------
    eigenvalues : ndarray of shape (M,)
        In descending order.
    eigenvectors : ndarray of shape (L, M)
        Their vectors, with a fixed sign.
    n_parts : int
        Parts into which the graph falls.
    """

    eigenvalues: Array
    eigenvectors: Array
    n_parts: int

    def embedding(self, n_clusters: int) -> Array:
        """Return the rows of the top eigenvectors, scaled to length one; no more than are not zero."""
        # Eigenvectors of an eigenvalue of zero are rounding: learners that agree would be torn apart.
        n_columns = max(1, int(np.sum(self.eigenvalues[:n_clusters] > SMALLEST_EIGENVALUE)))
        U = self.eigenvectors[:, :n_columns]
        lengths = np.linalg.norm(U, axis=1, keepdims=True)
        embedding: Array = np.divide(U, lengths, out=np.zeros_like(U), where=lengths > 0)
        # A learner without any similarity has no direction: it gets the first axis.
        embedding[lengths[:, 0] == 0, 0] = 1.0
        return embedding


def top_eigenpairs(matrix: Array, degrees: Array | None, count: int) -> tuple[Array, Array]:
    """Return the largest eigenvalues and vectors of the matrix, scaled by D^-1/2 on both sides."""
    n = len(matrix)
    root = np.ones(n) if degrees is None else 1.0 / np.sqrt(degrees)
    if n <= max(DENSE_LEARNERS, 3 * count):
        # Of all drivers only this one never fails on eigenvalues that repeat.
        values, vectors = np.linalg.eigh(matrix * root[:, None] * root)
        values, vectors = values[::-1][:count], vectors[:, ::-1][:, :count]
    else:
        operator = LinearOperator((n, n), matvec=lambda x: root * (matrix @ (root * x.ravel())), dtype=float)
        values, vectors = eigsh(operator, k=count, which="LA", v0=np.ones(n), tol=1e-7)
        order = np.argsort(-values, kind="stable")
        values, vectors = values[order], vectors[:, order]
    # An eigenvector's sign is arbitrary; a fixed one makes results the same everywhere.
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])])
    return values, vectors * np.where(signs == 0, 1.0, signs)


def spectrum_of(similarity: Array, count: int) -> Spectrum:
    """Return the top eigenpairs of D^-1/2 S D^-1/2 and the number of parts of the graph."""
    count = min(count, len(similarity))
    values, vectors = top_eigenpairs(similarity, similarity.sum(axis=1), count)
    return Spectrum(values, vectors, count_parts(similarity))


def cluster_rows(points: Array, n_clusters: int, seed: int) -> tuple[Array, float]:
    """Return the k-means labels of an embedding's rows, and their within-cluster sum of squares.

    Rows that coincide share a label, however many clusters are asked for.
    """
    distinct = len(np.unique(np.round(points, 9), axis=0))
    # Each start costs in proportion to the learners; with many of them fewer starts go wrong.
    restarts = 10 if len(points) <= MANY_LEARNERS else 3
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


def spectral_labels(spectrum: Spectrum, exchange: Exchange, n_clusters: int, seed: int) -> Array:
    """Return the clusters of the embedding's rows, or of average linkage where the graph falls apart."""
    if n_clusters == 1:
        return np.zeros(len(exchange.learner_ids), dtype=int)
    if spectrum.n_parts > n_clusters:
        return linkage_labels(exchange.dissimilarity, n_clusters)
    return cluster_rows(spectrum.embedding(n_clusters), n_clusters, seed)[0]


def tidy_labels(labels: Array) -> Array:
    """Number the clusters 0 to K - 1, the largest first; of equal ones the one seen first."""
    _, first, codes, counts = np.unique(labels, return_index=True, return_inverse=True, return_counts=True)
    order = np.lexsort((first, -counts))
    rank = np.empty(len(order), dtype=int)
    rank[order] = np.arange(len(order))
    return rank[codes]
