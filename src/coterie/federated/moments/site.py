"""What a site sends: the second moments of its rows, over two halves of them.

Which half a row is in is drawn without a look at the rows, so that replacing one row moves one half only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie._seeds import generator_for
from coterie.federated.messages import ProtocolError
from coterie.federated.moments.noise import Below, noisy, on_grid, summed
from coterie.federated.moments.schema import Schema
from coterie.federated.site import software_versions
from coterie.federated.tables import Moments, Promise

# What stands for the constant in a row whose other entries are one at the ends of their ranges. From a tenth
# to a half, coteries and errors were the same for ranges of one to five standard deviations.
CONSTANT = 0.25
# Entries are clipped here, in units of half their range: their squares must not overflow.
MAX_HALF_RANGES = 1e6

# For each column, the places where it bends.
Knots = tuple[tuple[float, ...], ...]


def bounded_rows(X: Any, y: Any, schema: Schema) -> Array:
    """Return rows (constant, x, y) in units of the schema, scaled to the length one, of shape (n, p + 2).

    A row is scaled as a whole, so that a linear relation between x and y stays what it is. That rows which
    are far out count less makes errors 1 to 3 % larger where they are normal; that all rows have the same
    length makes it matter little how wide the ranges are. A row without a response is zero.
    """
    middle, half = np.array([*schema.units, schema.target_unit]).T
    columns = np.column_stack([np.asarray(X, dtype=float), np.asarray(y, dtype=float)])
    # A row with a gap becomes zeros and still counts as a row: the number of rows is no secret, gaps are.
    is_complete = np.isfinite(columns).all(axis=1)
    scaled = np.clip(
        (np.where(is_complete[:, None], columns, 0.0) - middle) / half, -MAX_HALF_RANGES, MAX_HALF_RANGES
    )
    rows = np.column_stack([np.full(len(scaled), CONSTANT), scaled])
    bounded: Array = rows / np.linalg.norm(rows, axis=1, keepdims=True) * is_complete[:, None]
    return bounded


def bent(X: Any, knots: Knots) -> Array:
    """Return predictors (n, p) and behind them the hinge functions max(x - knot, 0), of shape (n, p + b).

    A linear model of these is piecewise linear in x and bends at the b knots. Hinges are in units from the
    column's first knot to its last: most sites may be below all of them.
    """
    predictors = np.asarray(X, dtype=float)
    above = [
        np.maximum(predictors[:, [column]] - np.array(column_knots), 0.0)
        / (column_knots[-1] - column_knots[0])
        for column, column_knots in enumerate(knots)
        if column_knots
    ]
    return np.hstack([predictors, *above])


def moments_by_half(rows: Array, second: Array) -> Array:
    """Return the second moments Z'Z of rows Z (n, q) in the first half and in the second, of shape (2, q, q).

    ``second`` (n,) marks the rows of the second half.
    """
    return np.array([rows[half].T @ rows[half] for half in (~second, second)])


def _packed(halves: Array) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the upper triangles of both symmetric matrices (2, q, q), as a message has them."""
    upper_triangle = np.triu_indices(halves.shape[1])
    first, last = (tuple(half[upper_triangle].tolist()) for half in halves)
    return first, last


def _halving(n_rows: int, generator: np.random.Generator) -> Array:
    """Return which of the rows are in the second half, of shape (n,); half of them, drawn at random.

    One half judges what was fitted on the other.
    """
    second = np.zeros(n_rows, dtype=bool)
    second[generator.permutation(n_rows)[: n_rows // 2]] = True
    return second


def moments_of(
    X: Any, y: Any, *, site: str, schema: Schema, promise: Promise, below: Below | None = None
) -> Moments:
    """Return a site's noisy moments.

    Parameters
    ----------
    X : array-like of shape (n, p)
        Predictors, as the schema's encoder makes them.
    y : array-like of shape (n,)
        Response; a row without one counts as a row of zeros.
    site : str
        Who speaks.
    schema : Schema
        What the sites agreed on.
    promise : Promise
        How private the message has to be.
    below : callable or None, default=None
        Draws the noise's integers; see `noisy`.

    Returns
    -------
    Moments
        The message, with fresh noise.
    """
    integer_rows = on_grid(bounded_rows(X, y, schema))
    # The promise holds for every halving, even one that is known.
    second = _halving(len(integer_rows), np.random.default_rng())
    halves = noisy([summed(integer_rows[~second]), summed(integer_rows[second])], promise, below)
    return Moments(
        site=site,
        n_rows=len(integer_rows),
        columns=schema.features,
        target=schema.target.name,
        schema=schema.text,
        halves=_packed(halves),
        promise=promise,
        software=software_versions(),
    )


def open_moments(
    X: Any,
    y: Any,
    *,
    site: str,
    columns: tuple[str, ...],
    target: str,
    seed: int,
    knots: Knots = (),
) -> Moments:
    """Return a site's moments as they are, in the units of the columns; nothing is private about them.

    Parameters
    ----------
    X : array-like of shape (n, p)
        Predictors, without gaps.
    y : array-like of shape (n,)
        Response, without gaps.
    site : str
        Who speaks.
    columns : tuple of str
        Names of the predictors.
    target : str
        Name of the response.
    seed : int
        Decides with the site's name which half a row is in.
    knots : tuple of tuple of float, default=()
        Where columns bend, from `knots_for`; empty: nowhere.

    Returns
    -------
    Moments
        The message, the same for the same rows in the same order.
    """
    # The constant, predictors, hinges and response: entry (0, 0) of the moments counts the rows.
    rows = np.column_stack([np.ones(len(X)), bent(X, knots), np.asarray(y, dtype=float)])
    with np.errstate(over="ignore", invalid="ignore"):
        halves = moments_by_half(rows, _halving(len(rows), generator_for(seed, site)))
    if not np.isfinite(halves).all():
        raise ProtocolError("The moments of the rows are too large: give the columns in other units.")
    return Moments(
        site=site,
        n_rows=len(rows),
        columns=columns,
        target=target,
        schema=b"",
        halves=_packed(halves),
        promise=None,
        software=software_versions(),
        knots=knots,
    )
