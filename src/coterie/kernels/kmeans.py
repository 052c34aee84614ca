"""Clustering by k-means on many small point sets at once.

The rules for the number of clusters ask for k-means hundreds of times: for every K, from several starts, and
on dozens of reference sets. Each problem is tiny, so what would dominate is the overhead of a call. Here
Lloyd's iterations run on all sets and starts together, as array operations.
"""

from __future__ import annotations

import numpy as np

from coterie._arrays import Array

# Lloyd's steps of a start at most.
ITERATIONS = 25


def _squared_distances(points: Array, centres: Array) -> Array:
    """Return the squared distances (R, n, k) of points (R, n, d) to centres (R, k, d), in each of R sets.

    By |x - c|^2 = |x|^2 + |c|^2 - 2 x'c, so that one matrix product does most of the work; rounding may leave
    values a little below zero.
    """
    squared_distances: Array = (centres**2).sum(axis=-1)[:, None, :] + (points**2).sum(axis=-1)[..., None]
    squared_distances -= 2 * (points @ centres.transpose(0, 2, 1))
    return squared_distances


def _spread_centres(points: Array, n_clusters: int, generator: np.random.Generator) -> Array:
    """Return initial centres (sets, k, d) by k-means++, drawn in every set of points (sets, L, d) at once.

    Each next centre is a point, drawn with a probability in proportion to its squared distance from the
    nearest centre so far.
    """
    n_sets, n_points, _ = points.shape
    all_sets = np.arange(n_sets)
    first_centres = points[all_sets, generator.integers(n_points, size=n_sets)]
    centres = [first_centres]
    squared_distances = ((points - first_centres[:, None]) ** 2).sum(axis=-1)
    for _ in range(1, n_clusters):
        cumulative = np.cumsum(squared_distances, axis=1)
        thresholds = generator.random(n_sets) * cumulative[:, -1]
        new_centres = points[
            all_sets, np.minimum((cumulative < thresholds[:, None]).sum(axis=1), n_points - 1)
        ]
        centres.append(new_centres)
        squared_distances = np.minimum(squared_distances, ((points - new_centres[:, None]) ** 2).sum(axis=-1))
    return np.stack(centres, axis=1)


def kmeans(
    points: Array, n_clusters: int, generator: np.random.Generator, restarts: int = 10
) -> tuple[Array, Array]:
    """Cluster each of several point sets (sets, L, d) by k-means, and keep the best of a few restarts.

    Returns labels of shape (sets, L) and within-cluster sums of squares of shape (sets,). All sets and
    restarts are iterated together, because the problems are small and calls would cost more than arithmetic.
    """
    n_sets = len(points)
    if n_clusters == 1:
        deviations = points - points.mean(axis=1, keepdims=True)
        return np.zeros(points.shape[:2], dtype=int), (deviations**2).sum(axis=(1, 2))
    points_by_start = np.repeat(points, restarts, axis=0)
    centres = _spread_centres(points_by_start, n_clusters, generator)
    labels = _squared_distances(points_by_start, centres).argmin(axis=-1)
    unfinished = np.arange(len(points_by_start))
    for _ in range(ITERATIONS):
        unfinished_points, old_labels = points_by_start[unfinished], labels[unfinished]
        membership = (old_labels[..., None] == np.arange(n_clusters)).astype(float)
        cluster_sizes = membership.sum(axis=1)[..., None]
        coordinate_sums = membership.transpose(0, 2, 1) @ unfinished_points
        # A centre without points stays where it is.
        centres[unfinished] = np.where(
            cluster_sizes > 0, coordinate_sums / np.maximum(cluster_sizes, 1), centres[unfinished]
        )
        labels[unfinished] = _squared_distances(unfinished_points, centres[unfinished]).argmin(axis=-1)
        # A start whose labels stay as they are is done; the others go on without it.
        unfinished = unfinished[(labels[unfinished] != old_labels).any(axis=1)]
        if not len(unfinished):
            break
    within_sums = np.maximum(_squared_distances(points_by_start, centres).min(axis=-1), 0).sum(axis=-1)
    best_starts = within_sums.reshape(n_sets, restarts).argmin(axis=1) + restarts * np.arange(n_sets)
    return labels[best_starts], within_sums[best_starts]
