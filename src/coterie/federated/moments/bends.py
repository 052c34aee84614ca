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
KNOTS_IN_SPREADS = (-1.0, -1 / 3, 1 / 3, 1.0)
# Others' knots are taken up to here: sites that came later move middle and spread.
MAX_SPREADS_FROM_MIDDLE = 2.0
# With more knots than this in all columns together, a message is a megabyte and a small cluster fits noise:
# then there are none.
MAX_KNOTS = 100
# Significant digits in which the place of a knot is sent.
KNOT_DIGITS = 4


def usual_knots(messages: Sequence[Moments]) -> Knots:
    """Return the knots that most messages have, of equals the largest; empty where no message has knots."""
    n_messages_by_knots = Counter(message.knots for message in messages if message.knots)
    return (
        max(n_messages_by_knots, key=lambda knots: (n_messages_by_knots[knots], knots))
        if n_messages_by_knots
        else ()
    )


def _is_mark(means: Array, squares: Array) -> Array:
    """Tell which columns (p,) are indicators, zero or one in every row, at most of the L sites.

    ``means`` and ``squares`` (L, p) are the sites' means of x and of x squared, which are equal for such a
    column only. It has no curve to bend.
    """
    is_mark: Array = np.isclose(means, squares, rtol=1e-9, atol=0).mean(axis=0) > 1 / 2
    return is_mark


def _are_harmless(knots: Knots, middle: Array, spread: Array) -> bool:
    """Tell whether every column has few knots, all of them near its middle.

    ``middle`` and ``spread`` (p,) are in units of the columns. A knot far out would have a single row above
    it, and the moments would show that row.
    """
    return all(
        len(column_knots) <= len(KNOTS_IN_SPREADS)
        and all(abs(knot - column_middle) <= MAX_SPREADS_FROM_MIDDLE * column_spread for knot in column_knots)
        for column_knots, column_middle, column_spread in zip(knots, middle, spread, strict=True)
    )


def _places(middle: float, spread: float) -> tuple[float, ...]:
    """Return the knots of a column with this middle and spread, sorted.

    They are rounded to a few digits. There are none where rounding leaves fewer than two different ones.
    """
    rounded_knots = sorted(
        {float(f"{middle + spread * n_spreads:.{KNOT_DIGITS}g}") for n_spreads in KNOTS_IN_SPREADS}
    )
    return tuple(rounded_knots) if len(rounded_knots) > 1 else ()


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
    # Only moments of the same columns in the same units can be added up.
    own_kind = mine.columns, mine.target, mine.schema
    comparable = [
        message for message in messages if (message.columns, message.target, message.schema) == own_kind
    ]
    # Rows by a schema are private and sent once: a second message would spend their privacy again.
    if mine.schema:
        return ()
    # (L, q, q): sums of products of (1, x, y) over the rows of each site; entry (0, 0) counts them.
    moments = np.array([unpacked(message).sum(axis=0) for message in comparable])
    n_rows = moments[:, 0, 0][:, None]
    means = moments[:, 0, 1:-1] / n_rows
    squares = np.diagonal(moments, axis1=1, axis2=2)[:, 1:-1] / n_rows
    middle = np.median(means, axis=0)
    # Spread of a column over all rows: within sites, and between their means; medians, lest one site decide.
    variance_within = np.median(np.maximum(squares - means * means, 0.0), axis=0)
    spread = np.sqrt(variance_within + np.median((means - middle) ** 2, axis=0))
    knots_of_most = usual_knots(comparable)
    # Messages that have knots already are reused: only moments with equal knots can be added up.
    if knots_of_most and _are_harmless(knots_of_most, middle, spread):
        return knots_of_most
    is_bent = (spread > 0) & ~_is_mark(means, squares)
    # No column with a curve, or more knots than a message and a small cluster bear.
    if not 0 < is_bent.sum() * len(KNOTS_IN_SPREADS) <= MAX_KNOTS:
        return ()
    return tuple(
        _places(column_middle, column_spread) if column_is_bent else ()
        for column_middle, column_spread, column_is_bent in zip(middle, spread, is_bent, strict=True)
    )
