"""Rows to be predicted that are unlike what fit saw: warnings that name the column.

A model answers any row. Whether it has seen such rows is another question: a column in another unit, a column
that is missing altogether, or numbers in place of a category give predictions that mean nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coterie._arrays import Array


class OutsideFitWarning(UserWarning):
    """Rows are unlike those of ``fit``: they lie far outside its range, lack a column, or hold other entries.

    ``warnings.simplefilter("error", coterie.OutsideFitWarning)`` turns it into an error, as ``--strict`` does
    on the command line.
    """


@dataclass(frozen=True)
class OutsideRule:
    """From where on rows are unlike those of fit.

    In 80 random halves of 16 real tables no column of the other half is beyond these limits. In halves of
    the stress settings none is but codes for missing values.
    """

    # A row is far outside if it is further from the range of fit than the range is wide.
    far: float = 1.0
    # Of a long tail some rows are. More than this share of the rows are not.
    share: float = 0.05
    # A single row says so if it is this many ranges away.
    farthest: float = 10.0
    # The range of fewer rows than these says little.
    fewest: int = 20
    # Gaps and rare entries of fit explain this many times as many later, as a count and as a share.
    times: int = 10


OUTSIDE = OutsideRule()


def ranges_of(X: Array) -> Array:
    """Return the smallest and the largest value of each column, of shape (2, p)."""
    return np.array([X.min(axis=0), X.max(axis=0)])


def more_than_fit(count: int, n_rows: int, count_in_fit: int, rows_of_fit: int) -> bool:
    """Tell whether so many of some rows are so more often than rows of fit were that it is no chance.

    ``count`` of ``n_rows`` are so now, ``count_in_fit`` of ``rows_of_fit`` were. Both count and share have to
    be many times as large: a learner may hold all that were so in fit, and be predicted alone.
    """
    most = OUTSIDE.times * count_in_fit
    return count > OUTSIDE.share * n_rows and count > most and count * rows_of_fit > most * n_rows


def warn_outside(message: str, stacklevel: int = 3) -> None:
    """Warn of rows that are unlike those of fit, in the name of whoever called the caller."""
    warnings.warn(message, OutsideFitWarning, stacklevel=stacklevel)


def warn_of_ranges(X: Array, ranges: Array, names: Sequence[str] | None, stacklevel: int = 4) -> None:
    """Warn of columns of finite X (N, p) whose rows lie far outside the ``ranges`` (2, p) of fit.

    Far is in widths of a column's range; see `OutsideRule`. ``names`` are those of the columns, if any;
    ``stacklevel`` makes the warning point at the user's line.
    """
    low, high = ranges
    # A column with one value taught nothing.
    known = np.flatnonzero(high > low)
    with np.errstate(over="ignore"):
        lowest, highest = X[:, known].min(axis=0), X[:, known].max(axis=0)
        width = (high - low)[known]
        beyond = np.maximum(low[known] - lowest, highest - high[known]) > OUTSIDE.far * width
    for column in known[beyond].tolist():
        values, first, last = X[:, column], low[column], high[column]
        away = np.maximum(first - values, values - last) / (last - first)
        worst = int(away.argmax())
        if (away > OUTSIDE.far).mean() > OUTSIDE.share or away[worst] > OUTSIDE.farthest:
            label = repr(names[column]) if names else str(column)
            warn_outside(
                f"Column {label}: {np.count_nonzero(away > 0)} of {len(values)} rows lie outside what fit "
                f"saw ({first:.4g} to {last:.4g}), the farthest at {values[worst]:.4g}, "
                f"{away[worst]:.2g} times that range away: check its unit.",
                stacklevel + 1,
            )
