"""What one site can contribute to sums over sites: in no direction much more than a typical site does.

Moments are sums over rows, so a site with rows far out, or with many, can outweigh all others in a single
direction, while its sum of squares looks usual. Each site is compared with a robust centre of all sites'
matrices, the geometric median. Unlike the median of each entry, that is a weighted mean of matrices, so it
stays positive definite.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2

from coterie._arrays import Array

# In any direction, a site counts at most as this many times the centre, or as chance alone makes of its rows.
LEAST_LIMIT = 1.5
# What is below so many standard deviations of the noise may be nothing.
NOTHING = 3.0
# Eigenvalues below this share of the largest are rounding.
ROUNDING = 1e-10
# Steps of Weiszfeld's algorithm at most, and the change at which it ends.
STEPS, TOLERANCE = 200, 1e-6
# A site whose line differs from the others' counts less below the first chance, and not at all at the second.
DOUBTED, REFUSED = 0.05, 1e-4


def _roots(matrix: Array, least: float = 0.0) -> tuple[Array, Array]:
    """Return the root of a symmetric matrix (d, d) and its inverse; eigenvalues are raised to ``least``."""
    values, vectors = np.linalg.eigh(matrix)
    values = np.maximum(values, max(least, ROUNDING * values[-1], 1e-300))
    return (vectors * np.sqrt(values)) @ vectors.T, (vectors / np.sqrt(values)) @ vectors.T


def geometric_median(matrices: Array) -> Array:
    """Return the matrix (d, d) with the least sum of distances to matrices (L, d, d): a weighted mean."""
    centre = np.median(matrices, axis=0)
    for _ in range(STEPS):
        distances = np.sqrt(np.square(matrices - centre).sum(axis=(1, 2)))
        weights = 1 / np.maximum(distances, 1e-9 * max(float(np.median(distances)), 1e-150))
        before, centre = centre, np.tensordot(weights / weights.sum(), matrices, axes=1)
        if np.abs(centre - before).max() <= TOLERANCE * np.abs(centre).max():
            break
    return centre


def robust_centre(A: Array) -> Array:
    """Return the geometric median of matrices (L, d, d), in units in which all directions are alike.

    The units are those of the mean of all matrices, each divided by its trace: one site alone cannot set
    them, however large it is.
    """
    size = np.maximum(np.trace(A, axis1=1, axis2=2), 1e-300)
    root, inverse = _roots((A / size[:, None, None]).mean(axis=0))
    centre: Array = root @ geometric_median(inverse @ A @ inverse) @ root
    return centre


def usual_limit(n_columns: int, n_rows: Array) -> float:
    """Return the largest u'Au of an honest site of typical size, in multiples of that of the centre.

    Of n rows with d columns, the largest eigenvalue is near (1 + sqrt(d / n))^2 (Marchenko and Pastur, 1967).
    """
    return max(LEAST_LIMIT, (1 + float(np.sqrt(n_columns / np.median(n_rows)))) ** 2)


def bound_contributions(
    A: Array, n_rows: Array, noise: Array | float = 0.0, limit: float | None = None
) -> tuple[Array, Array]:
    """Return how each site's predictors have to be scaled, so that no site outweighs others in a direction.

    Parameters
    ----------
    A : ndarray of shape (L, d, d)
        Sums of xx' over the rows of each site; the first predictor is the constant.
    n_rows : ndarray of shape (L,)
        Rows of each site.
    noise : ndarray of shape (L,) or float, default=0.0
        Standard deviation of the noise on each diagonal of ``A``.
    limit : float or None, default=None
        The largest u'Au of a site, in multiples of that of the centre. None: `usual_limit`.

    Returns
    -------
    scale : ndarray of shape (L, d, d)
        D, so that u'DAD'u is at most ``limit`` times u'Cu for all u, C being `robust_centre`. It is the
        identity for sites that are within the limit.
    n_rows : ndarray of shape (L,)
        The rows that count.
    """
    d = A.shape[1]
    limit = usual_limit(d, n_rows) if limit is None else limit
    scale = np.tile(np.eye(d), (len(A), 1, 1))
    noise = np.broadcast_to(np.asarray(noise, dtype=float), (len(A),))
    # Where noise alone makes eigenvalues, the centre tells nothing and nobody is bounded by it.
    root, inverse = _roots(robust_centre(A), float(np.median(noise)) * np.sqrt(2.0 * d))
    values, vectors = np.linalg.eigh(inverse @ A @ inverse)
    for index in np.flatnonzero(values[:, -1] > limit):
        v = vectors[index]
        shrink = np.sqrt(limit / np.maximum(values[index], limit))
        scale[index] = root @ (v * shrink) @ v.T @ inverse
    before, after = A[:, 0, 0], np.einsum("ld,lde,le->l", scale[:, 0], A, scale[:, 0])
    known = (before > NOTHING * noise) & (after > NOTHING * noise)
    share = np.divide(after, before, out=np.ones(len(A)), where=known)
    return scale, n_rows * np.minimum(share, 1.0)


def scale_rows(moments: Array, line: Array, scale: Array, share: float) -> Array:
    """Return moments (..., d + 1, d + 1) of rows (x, y) as those of (Dx, line'Dx + root(share) e).

    Here e = y - line'x is what the site's own ``line`` (d,) leaves, and ``scale`` (d, d) is D. So the line
    and the noise level of the site stay what they are.
    """
    d = len(line)
    change = np.zeros((d + 1, d + 1))
    change[:d, :d] = scale
    change[d, :d] = line @ scale - np.sqrt(share) * line
    change[d, d] = np.sqrt(share)
    scaled: Array = change @ moments @ change.T
    return scaled


def _inverse(matrix: Array) -> Array:
    """Return the inverse of a symmetric matrix (d, d), with raised eigenvalues where they are rounding."""
    inverse = _roots(matrix)[1]
    return inverse @ inverse


def _disagreements(A: Array, a: Array, levels: Array, weights: Array) -> Array:
    """Return how far each site's own line is from that of the others (L,), as a chi-squared statistic."""
    total, inner, result = (
        np.tensordot(weights, A, axes=1),
        np.tensordot(weights, a, axes=1),
        np.zeros(len(A)),
    )
    for index, (mine, weight) in enumerate(zip(A, weights, strict=True)):
        others = total - weight * mine
        apart = _inverse(mine) @ a[index] - _inverse(others) @ (inner - weight * a[index])
        # Both lines vary; this is the inverse of the sum of their covariances.
        result[index] = apart @ mine @ _inverse(mine + others) @ others @ apart / levels[index]
    return np.maximum(result, 0.0)


def agreement_weights(
    A: Array, a: Array, levels: Array, labels: Array, counted: Array, rounds: int = 10
) -> Array:
    """Return how much each site counts in the line of its cluster: less, the surer its own line differs.

    Parameters
    ----------
    A, a : ndarray of shape (L, d, d) and (L, d)
        Sums of xx' and of xy over the rows of each site.
    levels : ndarray of shape (L,)
        Noise level of each site; a level above the median is not believed.
    labels : ndarray of shape (L,)
        Cluster of each site.
    counted : ndarray of shape (L,)
        Who counts at all, and at most how much.
    rounds : int, default=10
        How often the others' line is fitted again with the new weights.

    Returns
    -------
    ndarray of shape (L,)
        Between zero and ``counted``. In a cluster of two nobody can say who is right, and both count.
    """
    d = A.shape[1]
    levels = np.minimum(levels, np.median(levels))
    usual, least, most = chi2.isf([0.5, DOUBTED, REFUSED], d)
    weights = counted.astype(float)
    clusters = [np.flatnonzero(labels == k) for k in np.unique(labels)]
    clusters = [members for members in clusters if np.count_nonzero(counted[members]) > 2]
    for _ in range(rounds if clusters else 0):
        result = np.full(len(A), np.nan)
        for members in clusters:
            result[members] = _disagreements(A[members], a[members], levels[members], weights[members])
        # Where honest sites differ a little, all of them disagree by more than chance.
        ratio = max(float(np.nanmedian(result)) / usual, 1.0)
        share = np.nan_to_num(np.clip((most - result / ratio) / (most - least), 0.0, 1.0), nan=1.0)
        weights = counted * share
    for members in clusters:
        # Where half of the others' votes are lost, nobody can say who is right.
        if 2 * weights[members].sum() <= counted[members].sum() * (1 + ROUNDING):
            weights[members] = counted[members]
    return weights
