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
    """Return squared distances of points (R, n, d) to centres (R, k, d)."""
    squares: Array = (centres**2).sum(axis=-1)[:, None, :] + (points**2).sum(axis=-1)[..., None]
    squares -= 2 * (points @ centres.transpose(0, 2, 1))
    return squares


def _spread_centres(points: Array, n_clusters: int, generator: np.random.Generator) -> Array:
    """Choose centres by k-means++, in every set at once; points have the shape (sets, L, d)."""
    sets, n, _ = points.shape
    every = np.arange(sets)
    first = points[every, generator.integers(n, size=sets)]
    centres = [first]
    nearest = ((points - first[:, None]) ** 2).sum(axis=-1)
    for _ in range(1, n_clusters):
        ladder = np.cumsum(nearest, axis=1)
        draw = generator.random(sets) * ladder[:, -1]
        chosen = points[every, np.minimum((ladder < draw[:, None]).sum(axis=1), n - 1)]
        centres.append(chosen)
        nearest = np.minimum(nearest, ((points - chosen[:, None]) ** 2).sum(axis=-1))
    return np.stack(centres, axis=1)


def kmeans(
    points: Array, n_clusters: int, generator: np.random.Generator, restarts: int = 10
) -> tuple[Array, Array]:
    """Cluster each of several point sets of shape (sets, L, d), the best of a few restarts.

    Returns labels of shape (sets, L) and within-cluster sums of squares of shape (sets,).
    """
    sets = len(points)
    if n_clusters == 1:
        centred = points - points.mean(axis=1, keepdims=True)
        return np.zeros(points.shape[:2], dtype=int), (centred**2).sum(axis=(1, 2))
    repeated = np.repeat(points, restarts, axis=0)
    centres = _spread_centres(repeated, n_clusters, generator)
    labels = _squared_distances(repeated, centres).argmin(axis=-1)
    moving = np.arange(len(repeated))
    for _ in range(ITERATIONS):
        subset, old_labels = repeated[moving], labels[moving]
        member = (old_labels[..., None] == np.arange(n_clusters)).astype(float)
        counts = member.sum(axis=1)[..., None]
        sums = member.transpose(0, 2, 1) @ subset
        centres[moving] = np.where(counts > 0, sums / np.maximum(counts, 1), centres[moving])
        labels[moving] = _squared_distances(subset, centres[moving]).argmin(axis=-1)
        # A start whose labels stay as they are is done; the others go on without it.
        moving = moving[(labels[moving] != old_labels).any(axis=1)]
        if not len(moving):
            break
    within = np.maximum(_squared_distances(repeated, centres).min(axis=-1), 0).sum(axis=-1)
    best = within.reshape(sets, restarts).argmin(axis=1) + restarts * np.arange(sets)
    return labels[best], within[best]
