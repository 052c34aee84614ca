"""Everybody's moments in common units, and what follows from their sums: lines, and what lines lose.

The moments of rows z = (1, x, y), with q = p + 2 entries, are the sums of zz' over the rows: a matrix (q, q).

A linear model, or line, is u = (w, -1): coefficients of the constant and of the predictors, and minus one for
the response. Its sum of squared errors on rows with the moments M is u'Mu. Noise on M makes that a noisy
number, whose spread is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from coterie._arrays import Array
from coterie.federated.moments.bounds import bound_contributions, scale_rows
from coterie.federated.moments.noise import noise_scale
from coterie.federated.moments.schema import Schema, schema_from
from coterie.federated.moments.site import CONSTANT
from coterie.federated.tables import Moments

# A site weighs at most this many times what the site in the middle weighs, whatever it says of its rows.
MAX_WEIGHT_RATIO = 3.0
# Added to moments before a line is fitted, as a share of their mean eigenvalue.
RIDGE = 1e-6


def unpacked(message: Moments, *, bent: bool = False) -> Array:
    """Return the symmetric moments of both halves of a site's rows, of shape (2, q, q), from a message.

    A message holds their upper triangles. With ``bent``, columns above knots are among the q; without it,
    only 1, x and y are.
    """
    size = len(message.columns) + sum(map(len, message.knots)) + 2
    halves = np.zeros((2, size, size))
    upper_triangle = np.triu_indices(size)
    for half, entries in zip(halves, message.halves, strict=True):
        half[upper_triangle] = entries
        half.T[upper_triangle] = entries
    # The constant and the predictors, and the response, which stands last behind the hinges.
    without_knots = np.r_[: len(message.columns) + 1, size - 1]
    return halves if bent else halves[:, without_knots[:, None], without_knots]


@dataclass(frozen=True)
class PoolUnits:
    """A row (x, y) is measured from ``middle`` in units of ``half``, both (p + 1,); ``constant`` leads it."""

    middle: Array
    half: Array
    constant: float

    @classmethod
    def of_schema(cls, schema: Schema) -> PoolUnits:
        """Return the units in which a schema scales rows."""
        middle, half = np.array([*schema.units, schema.target_unit]).T
        return cls(middle, half, CONSTANT)

    @classmethod
    def of_sites(cls, moments: Array, n_rows: Array) -> PoolUnits:
        """Return units in which columns have about mean zero and variance one, from exact moments (L, q, q).

        They are medians over the L sites of their means and standard deviations, so that no single site sets
        them. ``n_rows`` (L,) are rows.
        """
        means = moments[:, 0, 1:] / n_rows[:, None]
        mean_squares = np.diagonal(moments, axis1=1, axis2=2)[:, 1:] / n_rows[:, None]
        spreads = np.median(np.sqrt(np.maximum(mean_squares - means * means, 0.0)), axis=0)
        return cls(np.median(means, axis=0), np.where(spreads > 0, spreads, 1.0), 1.0)

    def scaled(self, moments: Array) -> Array:
        """Return moments (..., q, q) of rows (1, x, y) as those of the same rows in these units.

        A change of units is a matrix T on rows, so that moments M become TMT'.
        """
        n_entries = len(self.middle) + 1
        row_transform = np.zeros((n_entries, n_entries))
        row_transform[0, 0] = self.constant
        row_transform[1:, 0] = -self.middle / self.half
        row_transform[1:, 1:] = np.diag(1 / self.half)
        scaled: Array = row_transform @ moments @ row_transform.T
        return scaled

    def rows(self, X: Array) -> Array:
        """Return predictors (n, p) as rows (n, p + 1) in these units, the constant first."""
        scaled = (np.asarray(X, dtype=float) - self.middle[:-1]) / self.half[:-1]
        return np.column_stack([np.full(len(scaled), self.constant), scaled])

    def predictions(self, lines: Array, X: Array) -> Array:
        """Return what lines (..., p + 1) in these units predict for rows (n, p), of shape (..., n).

        Rows and predictions are in the units of the table.
        """
        predictions: Array = self.middle[-1] + self.half[-1] * (lines @ self.rows(X).T)
        return predictions


@dataclass(frozen=True)
class Pool:
    """Sites whose moments can be added up.

    ``halves`` (2, L, q, q) are in common units, and scaled down for those who would weigh too much; the noise
    on the diagonal of each has the standard deviation ``scales`` (L,). ``n_rows`` (L,) are rows, scaled down
    likewise. ``bounded`` (L,) tells who would weigh too much in some direction. Scaling down keeps a site
    that states huge numbers from deciding for all.
    """

    sites: tuple[str, ...]
    halves: Array = field(repr=False)
    scales: Array
    n_rows: Array
    units: PoolUnits
    bounded: Array

    @property
    def moments(self) -> Array:
        """The moments of all rows of each site, of shape (L, q, q)."""
        moments: Array = self.halves.sum(axis=0)
        return moments


def pool_of(messages: Sequence[Moments], *, bent: bool = False) -> Pool:
    """Return messages of L sites in common units as a pool, in which no site outweighs the others.

    All messages have one schema, or none; with ``bent``, they also have the same knots. Sites are bounded
    twice: in each direction, by `bound_contributions`, and then in their trace.
    """
    # (L, 2, q, q): site, half of its rows, and the matrix of moments.
    halves_by_site = np.array([unpacked(message, bent=bent) for message in messages])
    n_rows = np.array([float(message.n_rows) for message in messages])
    scales = np.array([noise_scale(message.promise) for message in messages])
    if messages[0].schema:
        units = PoolUnits.of_schema(schema_from(messages[0].schema))
    else:
        units = PoolUnits.of_sites(halves_by_site.sum(axis=1), n_rows)
        halves_by_site = units.scaled(halves_by_site)
    moments = halves_by_site.sum(axis=1)
    # Each half has noise of its own, so that their sum has twice the variance.
    noise = scales * np.sqrt(2.0)
    row_scales, counted_rows = bound_contributions(moments[:, :-1, :-1], n_rows, noise)
    # Whoever is within the limit keeps the identity as scale, exactly.
    bounded = ~(row_scales == np.eye(row_scales.shape[1])).all(axis=(1, 2))
    own_lines, counted_shares = fit_lines(moments, noise), counted_rows / n_rows
    for site in np.flatnonzero(bounded):
        halves_by_site[site] = scale_rows(
            halves_by_site[site], own_lines[site], row_scales[site], counted_shares[site]
        )
    # The trace is the sum of squares of all entries of a site's rows: its weight in sums.
    traces = np.maximum(np.abs(np.trace(halves_by_site, axis1=2, axis2=3).sum(axis=1)), 1e-300)
    weights = np.minimum(1.0, MAX_WEIGHT_RATIO * np.median(traces) / traces)
    halves = np.moveaxis(halves_by_site * weights[:, None, None, None], 0, 1)
    weights = weights * counted_shares
    return Pool(
        sites=tuple(message.site for message in messages),
        halves=halves,
        scales=scales * weights,
        n_rows=n_rows * weights,
        units=units,
        bounded=bounded,
    )


def spread_of_sums(member: Array, scales: Array) -> Array:
    """Return the standard deviation (K,) of the noise on the summed moments of K clusters.

    ``member`` (K, L) says how much each site counts in each cluster, ``scales`` (L,) are the sites' own.
    """
    spread: Array = np.sqrt(member @ (scales * scales))
    return spread


def fit_lines(moments: Array, noise: Array | float) -> Array:
    """Return least-squares lines (..., q - 1) from moments (..., q, q) that carry noise.

    ``noise`` (...) is its standard deviation. Eigenvalues of X'X below the largest that noise alone would
    have are unknown, so the inverse 1 / v becomes v / (v^2 + edge^2), as in ridge regression.
    """
    eigenvalues, eigenvectors = np.linalg.eigh(moments[..., :-1, :-1])
    noise_edge = np.asarray(noise)[..., None] * np.sqrt(2.0 * eigenvalues.shape[-1])
    eigenvalues = np.maximum(eigenvalues, 0.0)
    # Never zero, not even of an empty cluster.
    eigenvalues = eigenvalues + RIDGE * eigenvalues.mean(axis=-1, keepdims=True) + 1e-150
    # X'y in the directions of the eigenvectors of X'X.
    projections = np.einsum("...ji,...j->...i", eigenvectors, moments[..., :-1, -1])
    projections *= eigenvalues / (eigenvalues * eigenvalues + noise_edge * noise_edge)
    coefficients: Array = np.einsum("...ij,...j->...i", eigenvectors, projections)
    return coefficients


def losses_of(lines: Array, moments: Array) -> Array:
    """Return the sums of squared errors of lines (K, q - 1) on moments (L, q, q), of shape (K, L).

    With u = (w, -1), the sum over the rows behind M is u'Mu: no rows are needed.
    """
    lines_and_response = np.column_stack([lines, -np.ones(len(lines))])
    losses: Array = np.einsum("kq,lqr,kr->kl", lines_and_response, moments, lines_and_response, optimize=True)
    return losses


def lines_of(member: Array, moments: Array, scales: Array) -> Array:
    """Return the least-squares line of each of K clusters, of shape (K, q - 1).

    ``member`` (K, L) says how much each site counts, ``moments`` (L, q, q) are the sites', and ``scales``
    (L,) the standard deviations of their noise.
    """
    return fit_lines(np.tensordot(member, moments, axes=1), spread_of_sums(member, scales))
