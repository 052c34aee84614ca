"""Within-cluster sums of squares of the embedding's rows, for one point set or for many at once.

The gap statistic asks for k-means on dozens of reference sets. They are small and of one shape, so Lloyd's
iterations run on all of them together, as array operations.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

ITERATIONS = 25


def _seeded_centres(points: Array, n_clusters: int, generator: np.random.Generator) -> Array:
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


def _squared_distances(points: Array, centres: Array) -> Array:
    products = points @ centres.transpose(0, 2, 1)
    squares: Array = (centres**2).sum(axis=-1)[:, None, :] + (points**2).sum(axis=-1)[..., None]
    squares -= 2 * products
    return squares


def within_sums(points: Array, n_clusters: int, generator: np.random.Generator, restarts: int = 4) -> Array:
    """Return the within-cluster sum of squares of each point set, the best of a few restarts.

    Parameters
    ----------
    points : ndarray of shape (sets, L, d)
        Point sets of one shape.
    n_clusters : int
        Clusters to look for in each.
    generator : Generator
        For the starting centres.
    restarts : int, default=4
        Starts of which the best is kept.

    Returns
    -------
    ndarray of shape (sets,)
        Sums of squared distances to the nearest centre.
    """
    if n_clusters == 1:
        centred = points - points.mean(axis=1, keepdims=True)
        total: Array = (centred**2).sum(axis=(1, 2))
        return total
    sets = len(points)
    repeated = np.repeat(points, restarts, axis=0)
    centres = _seeded_centres(repeated, n_clusters, generator)
    for _ in range(ITERATIONS):
        distances = _squared_distances(repeated, centres)
        member = (distances.argmin(axis=-1)[..., None] == np.arange(n_clusters)).astype(float)
        counts = member.sum(axis=1)[..., None]
        sums = member.transpose(0, 2, 1) @ repeated
        moved = np.where(counts > 0, sums / np.maximum(counts, 1), centres)
        if np.allclose(moved, centres, rtol=0, atol=1e-10):
            break
        centres = moved
    best = np.maximum(_squared_distances(repeated, centres).min(axis=-1), 0).sum(axis=-1)
    lowest: Array = best.reshape(sets, restarts).min(axis=1)
    return lowest
