"""Everybody's moments in common units, and what follows from their sums: lines, and what lines lose.

A line is u = (w, -1): coefficients of the constant and of the predictors, and minus one for the response. It
loses u'Mu on rows with the moments M. Noise on M makes that a noisy number, whose spread is known.
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
MOST_WEIGHT = 3.0
# Added to moments before a line is fitted, as a share of their mean eigenvalue.
RIDGE = 1e-6


def unpacked(message: Moments, *, bent: bool = False) -> Array:
    """Return the moments of both halves, of shape (2, q, q); ``bent``: those above knots among them."""
    size = len(message.columns) + sum(map(len, message.knots)) + 2
    halves = np.zeros((2, size, size))
    above = np.triu_indices(size)
    for half, values in zip(halves, message.halves, strict=True):
        half[above] = values
        half.T[above] = values
    straight = np.r_[: len(message.columns) + 1, size - 1]
    return halves if bent else halves[:, straight[:, None], straight]


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
        """Return the middle and spread of the rows of the site in the middle; moments (L, q, q) are exact."""
        means = moments[:, 0, 1:] / n_rows[:, None]
        squares = np.diagonal(moments, axis1=1, axis2=2)[:, 1:] / n_rows[:, None]
        spreads = np.median(np.sqrt(np.maximum(squares - means * means, 0.0)), axis=0)
        return cls(np.median(means, axis=0), np.where(spreads > 0, spreads, 1.0), 1.0)

    def scaled(self, moments: Array) -> Array:
        """Return moments (..., q, q) of rows (1, x, y) as those of rows in these units."""
        size = len(self.middle) + 1
        change = np.zeros((size, size))
        change[0, 0] = self.constant
        change[1:, 0] = -self.middle / self.half
        change[1:, 1:] = np.diag(1 / self.half)
        scaled: Array = change @ moments @ change.T
        return scaled

    def rows(self, X: Array) -> Array:
        """Return predictors (n, p) as rows (n, p + 1) in these units, the constant first."""
        values = (np.asarray(X, dtype=float) - self.middle[:-1]) / self.half[:-1]
        return np.column_stack([np.full(len(values), self.constant), values])

    def predictions(self, lines: Array, X: Array) -> Array:
        """Return what lines (..., p + 1) predict of rows (n, p), in the units of the response, (..., n)."""
        predicted: Array = self.middle[-1] + self.half[-1] * (lines @ self.rows(X).T)
        return predicted


@dataclass(frozen=True)
class Pool:
    """Sites whose moments can be added up.

    ``halves`` (2, L, q, q) are in common units, and scaled down for those who would weigh too much; the noise
    on the diagonal of each has the standard deviation ``scales`` (L,). ``n_rows`` (L,) are rows, scaled down
    likewise. ``bounded`` (L,) tells who would weigh too much in some direction.
    """

    sites: tuple[str, ...]
    halves: Array = field(repr=False)
    scales: Array
    n_rows: Array
    units: PoolUnits
    bounded: Array

    @property
    def moments(self) -> Array:
        """The moments of both halves together, of shape (L, q, q)."""
        whole: Array = self.halves.sum(axis=0)
        return whole


def pool_of(messages: Sequence[Moments], *, bent: bool = False) -> Pool:
    """Return the pool of messages of one kind: by one schema, or by none; ``bent``: with the same knots."""
    whole = np.array([unpacked(message, bent=bent) for message in messages])
    n_rows = np.array([float(message.n_rows) for message in messages])
    scales = np.array([noise_scale(message.promise) for message in messages])
    if messages[0].schema:
        units = PoolUnits.of_schema(schema_from(messages[0].schema))
    else:
        units = PoolUnits.of_sites(whole.sum(axis=1), n_rows)
        whole = units.scaled(whole)
    summed = whole.sum(axis=1)
    noise = scales * np.sqrt(2.0)
    scale, counted = bound_contributions(summed[:, :-1, :-1], n_rows, noise)
    bounded = ~(scale == np.eye(scale.shape[1])).all(axis=(1, 2))
    lines, shares = fit_lines(summed, noise), counted / n_rows
    for index in np.flatnonzero(bounded):
        whole[index] = scale_rows(whole[index], lines[index], scale[index], shares[index])
    size = np.maximum(np.abs(np.trace(whole, axis1=2, axis2=3).sum(axis=1)), 1e-300)
    share = np.minimum(1.0, MOST_WEIGHT * np.median(size) / size)
    halves = np.moveaxis(whole * share[:, None, None, None], 0, 1)
    share = share * shares
    return Pool(tuple(m.site for m in messages), halves, scales * share, n_rows * share, units, bounded)


def spread_of_sums(member: Array, scales: Array) -> Array:
    """Return the spread (K,) of the noise on sums over the members (K, L) of clusters."""
    spread: Array = np.sqrt(member @ (scales * scales))
    return spread


def fit_lines(moments: Array, noise: Array | float) -> Array:
    """Return lines (..., q - 1) of moments (..., q, q) whose noise has this spread (...).

    Eigenvalues of the predictors' moments tell nothing where they are below the largest one that noise alone
    would have, and those well above it are right: each direction counts as far as it stands out.
    """
    values, vectors = np.linalg.eigh(moments[..., :-1, :-1])
    edge = np.asarray(noise)[..., None] * np.sqrt(2.0 * values.shape[-1])
    values = np.maximum(values, 0.0)
    # Never zero, not even of an empty cluster.
    values = values + RIDGE * values.mean(axis=-1, keepdims=True) + 1e-150
    inner = np.einsum("...ji,...j->...i", vectors, moments[..., :-1, -1])
    inner *= values / (values * values + edge * edge)
    lines: Array = np.einsum("...ij,...j->...i", vectors, inner)
    return lines


def losses_of(lines: Array, moments: Array) -> Array:
    """Return what lines (K, q - 1) lose in all on moments (L, q, q), of shape (K, L)."""
    whole = np.column_stack([lines, -np.ones(len(lines))])
    losses: Array = np.einsum("kq,lqr,kr->kl", whole, moments, whole, optimize=True)
    return losses


def lines_of(member: Array, moments: Array, scales: Array) -> Array:
    """Return the lines (K, q - 1) of clusters with members (K, L) whose moments are (L, q, q)."""
    return fit_lines(np.tensordot(member, moments, axes=1), spread_of_sums(member, scales))
