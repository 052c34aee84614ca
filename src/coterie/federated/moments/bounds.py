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
MIN_LIMIT_RATIO = 1.5
# A number of rows below this many standard deviations of the noise may be noise alone.
MIN_NOISE_RATIO = 3.0
# Eigenvalues below this share of the largest are rounding.
ROUNDING = 1e-10
# Steps of Weiszfeld's algorithm at most, and the change at which it ends.
MAX_STEPS, TOLERANCE = 200, 1e-6
# P-values of the test that a site's line equals that of the others: below the first a site counts less, at
# the second not at all.
P_VALUE_DOUBTED, P_VALUE_REFUSED = 0.05, 1e-4


def _roots(matrix: Array, min_eigenvalue: float = 0.0) -> tuple[Array, Array]:
    """Return the square root of a symmetric matrix (d, d), and the inverse of that root.

    Eigenvalues below ``min_eigenvalue``, or so small that they are rounding, are raised: the inverse stays
    finite.
    """
    eigenvalues, vectors = np.linalg.eigh(matrix)
    eigenvalues = np.maximum(eigenvalues, max(min_eigenvalue, ROUNDING * eigenvalues[-1], 1e-300))
    return (vectors * np.sqrt(eigenvalues)) @ vectors.T, (vectors / np.sqrt(eigenvalues)) @ vectors.T


def geometric_median(matrices: Array) -> Array:
    """Return the geometric median (d, d) of matrices (L, d, d): the least sum of distances to all of them.

    Weiszfeld's algorithm finds it as a weighted mean with weights of one over the distance. So outliers move
    it little, and it is positive definite where they are.
    """
    centre = np.median(matrices, axis=0)
    for _ in range(MAX_STEPS):
        distances = np.sqrt(np.square(matrices - centre).sum(axis=(1, 2)))
        # A floor, for a matrix at the centre itself would weigh infinitely.
        weights = 1 / np.maximum(distances, 1e-9 * max(float(np.median(distances)), 1e-150))
        previous, centre = centre, np.tensordot(weights / weights.sum(), matrices, axes=1)
        if np.abs(centre - previous).max() <= TOLERANCE * np.abs(centre).max():
            break
    return centre


def robust_centre(A: Array) -> Array:
    """Return the geometric median (d, d) of sums of xx' (L, d, d) of L sites, whatever the units of x.

    Distances are measured after whitening with the mean of all matrices, each divided by its trace. So one
    site alone cannot set the units, however large it is.
    """
    traces = np.maximum(np.trace(A, axis1=1, axis2=2), 1e-300)
    root, inverse = _roots((A / traces[:, None, None]).mean(axis=0))
    centre: Array = root @ geometric_median(inverse @ A @ inverse) @ root
    return centre


def usual_limit(n_columns: int, n_rows: Array) -> float:
    """Return how large u'Au of an ordinary site may be, as a multiple of u'Cu of the robust centre C.

    A site that sends true moments exceeds C by chance in some direction u. Of n rows with d columns, the
    largest eigenvalue is near (1 + sqrt(d / n))^2 (Marchenko and Pastur, 1967).
    """
    return max(MIN_LIMIT_RATIO, (1 + float(np.sqrt(n_columns / np.median(n_rows)))) ** 2)


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
    eigenvalues, eigenvectors = np.linalg.eigh(inverse @ A @ inverse)
    # In units of the centre, eigenvalues say how many times the centre a site counts in each direction.
    for site in np.flatnonzero(eigenvalues[:, -1] > limit):
        directions = eigenvectors[site]
        shrink = np.sqrt(limit / np.maximum(eigenvalues[site], limit))
        scale[site] = root @ (directions * shrink) @ directions.T @ inverse
    # The first predictor is the constant, so entry (0, 0) of the moments is proportional to the rows.
    n_rows_sent, n_rows_scaled = A[:, 0, 0], np.einsum("ld,lde,le->l", scale[:, 0], A, scale[:, 0])
    above_noise = (n_rows_sent > MIN_NOISE_RATIO * noise) & (n_rows_scaled > MIN_NOISE_RATIO * noise)
    share = np.divide(n_rows_scaled, n_rows_sent, out=np.ones(len(A)), where=above_noise)
    return scale, n_rows * np.minimum(share, 1.0)


def scale_rows(moments: Array, line: Array, scale: Array, share: float) -> Array:
    """Return the moments (..., d + 1, d + 1) that a site would have after its predictors x became Dx.

    ``scale`` (d, d) is D. The response becomes line'Dx + root(share) e, where e = y - line'x is what the
    site's own ``line`` (d,) leaves. So the site's coefficients and its noise level stay what they are.
    """
    d = len(line)
    row_transform = np.zeros((d + 1, d + 1))
    row_transform[:d, :d] = scale
    row_transform[d, :d] = line @ scale - np.sqrt(share) * line
    row_transform[d, d] = np.sqrt(share)
    scaled: Array = row_transform @ moments @ row_transform.T
    return scaled


def _inverse(matrix: Array) -> Array:
    """Return the inverse of a symmetric matrix (d, d), with raised eigenvalues where they are rounding."""
    inverse_root = _roots(matrix)[1]
    return inverse_root @ inverse_root


def _disagreements(A: Array, a: Array, levels: Array, weights: Array) -> Array:
    """Return how far each site's own least-squares line is from that of the others, of shape (L,).

    It is the Wald statistic of the difference, chi-squared with d degrees of freedom. ``A`` (L, d, d) and
    ``a`` (L, d) are sums of xx' and xy, ``levels`` (L,) variances of the noise, and ``weights`` (L,) how much
    each counts.
    """
    total_A, total_a, statistics = (
        np.tensordot(weights, A, axes=1),
        np.tensordot(weights, a, axes=1),
        np.zeros(len(A)),
    )
    for site, (own_A, weight) in enumerate(zip(A, weights, strict=True)):
        others_A = total_A - weight * own_A
        difference = _inverse(own_A) @ a[site] - _inverse(others_A) @ (total_a - weight * a[site])
        # Both lines vary; this is the inverse of the sum of their covariances.
        statistics[site] = (
            difference @ own_A @ _inverse(own_A + others_A) @ others_A @ difference / levels[site]
        )
    return np.maximum(statistics, 0.0)


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
    # Critical values of chi-squared: the typical one, and those between which the weight falls to nought.
    median_statistic, doubted_from, refused_from = chi2.isf([0.5, P_VALUE_DOUBTED, P_VALUE_REFUSED], d)
    weights = counted.astype(float)
    clusters = [np.flatnonzero(labels == cluster) for cluster in np.unique(labels)]
    clusters = [members for members in clusters if np.count_nonzero(counted[members]) > 2]
    for _ in range(rounds if clusters else 0):
        # NaN stays for sites of clusters that are too small to compare: their share is one.
        statistics = np.full(len(A), np.nan)
        for members in clusters:
            statistics[members] = _disagreements(A[members], a[members], levels[members], weights[members])
        # Where true lines differ a little between sites, all statistics exceed chance: they are scaled back.
        inflation = max(float(np.nanmedian(statistics)) / median_statistic, 1.0)
        share = np.nan_to_num(
            np.clip((refused_from - statistics / inflation) / (refused_from - doubted_from), 0.0, 1.0),
            nan=1.0,
        )
        weights = counted * share
    for members in clusters:
        # Where half of the others' votes are lost, nobody can say who is right.
        if 2 * weights[members].sum() <= counted[members].sum() * (1 + ROUNDING):
            weights[members] = counted[members]
    return weights
