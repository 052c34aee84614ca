"""Where lines of moments bend: at the same places at all sites, so that curves can be pooled, too.

Moments of (1, x, y) describe straight lines only. From everybody's moments follow the middle and the spread
of each column over sites, and from these four places where a line may bend. Each site then sends its moments
once more, with how far x is above each of these places. Their sums give curves of pooled rows, as sums of the
others give lines. On tables with curves that brought far more than averages of the sites' models did.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from coterie._arrays import Array
from coterie.federated.moments.pool import unpacked
from coterie.federated.moments.site import Knots
from coterie.federated.tables import Moments

# Places from the middle, in units of the spread. Three were worse on real tables, five and seven no better.
KNOTS = (-1.0, -1 / 3, 1 / 3, 1.0)
# Others' knots are taken up to here: sites that came later move middle and spread.
FARTHEST = 2.0
# With more bends than this in all, a message is a megabyte and a small cluster fits noise: then none.
MOST_BENDS = 100
# Digits in which the place of a knot is sent.
DIGITS = 4


def usual_knots(messages: Sequence[Moments]) -> Knots:
    """Return the knots that most messages have; empty where none has any."""
    counts = Counter(message.knots for message in messages if message.knots)
    return max(counts, key=lambda knots: (counts[knots], knots)) if counts else ()


def _is_mark(means: Array, squares: Array) -> Array:
    """Tell which columns (p,) are zero or one at most sites: their means (L, p) are those of squares."""
    same: Array = np.isclose(means, squares, rtol=1e-9, atol=0).mean(axis=0) > 1 / 2
    return same


def _are_harmless(knots: Knots, middle: Array, spread: Array) -> bool:
    """Tell whether knots are few and near the middle: far out, one would show single rows."""
    return all(
        len(indices) <= len(KNOTS) and all(abs(index - at) <= FARTHEST * size for index in indices)
        for indices, at, size in zip(knots, middle, spread, strict=True)
    )


def _places(middle: float, spread: float) -> tuple[float, ...]:
    """Return a column's knots; none where rounding leaves fewer than two."""
    indices = sorted({float(f"{middle + spread * knot:.{DIGITS}g}") for knot in KNOTS})
    return tuple(indices) if len(indices) > 1 else ()


def knots_for(messages: Sequence[Moments], mine: Moments) -> Knots:
    """Return where a site's columns bend, as the others' do; empty where none should.

    Parameters
    ----------
    messages : sequence of Moments
        From all sites; those with other columns are not looked at.
    mine : Moments
        The site's own.

    Returns
    -------
    tuple of tuple of float
        The knots that most have, if any has some that single out no rows; else four around the middle of each
        column.
    """
    columns = mine.columns, mine.target, mine.schema
    alike = [message for message in messages if (message.columns, message.target, message.schema) == columns]
    if mine.schema:
        return ()
    whole = np.array([unpacked(message).sum(axis=0) for message in alike])
    rows = whole[:, 0, 0][:, None]
    means = whole[:, 0, 1:-1] / rows
    squares = np.diagonal(whole, axis1=1, axis2=2)[:, 1:-1] / rows
    middle = np.median(means, axis=0)
    within = np.median(np.maximum(squares - means * means, 0.0), axis=0)
    spread = np.sqrt(within + np.median((means - middle) ** 2, axis=0))
    known = usual_knots(alike)
    if known and _are_harmless(known, middle, spread):
        return known
    bends = (spread > 0) & ~_is_mark(means, squares)
    if not 0 < bends.sum() * len(KNOTS) <= MOST_BENDS:
        return ()
    return tuple(
        _places(at, size) if bend else () for at, size, bend in zip(middle, spread, bends, strict=True)
    )
