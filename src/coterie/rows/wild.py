"""Rows with a wild cell: a value so far from all others of its column that one row would rule what is shared.

One -9999 in a predictor decides the slopes of everybody whose rows are pooled with it, the units of the
predictor, and its learner's own model. Such rows are set aside before anything is fitted, and a note says so.

What is far depends on the column. Let a(1) <= a(2) <= ... be the distances from the column's median. In a
tail that falls like a power, the largest gap log a(n) - log a(n - 1) is exponential with mean g, and Hill's
estimator of g is known from the distances below. A gap of `WIDE_GAP` times g happens by chance less than once
in a thousand columns, and far more seldom in lighter tails. Normal predictors thus have narrow limits, skewed
ones have wide limits.

A learner may live far away from the others. Where more than half of a learner's rows are beyond the limits,
all of them stay.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie._options import listed

# A gap in the logs of the distances, in units of the tail's own mean gap (e^-8 is one in three thousand), and
# the least factor, however short the tail: among noughts and ones, a nine is odd and no more. Less will do
# for a value that is known as a code and occurs more than once.
WIDE_GAP, LEAST_FACTOR = 8.0, 10.0
WIDE_GAP_OF_CODES, LEAST_FACTOR_OF_CODES = 4.0, 3.0
# The tail is known from the upper tenth of the distances, from ten at least (codes: from any), and from two
# more that are e times as far: few distances do not show a long tail.
TAIL = 0.1
FEWEST_IN_TAIL = 10
PRIOR = 2.0
# Where more of a column's cells than this lie beyond a gap, the column has two parts. Codes may be more.
LARGEST_SHARE = 0.05
# Differences below this share of a column's size are rounding.
ROUNDING = 1e-9
# What tables write where a value is missing: nines, the ends of integers, and what file formats fill in.
# Prices end in .99, hours and ages reach 99: what is below 999 and positive is no code.
_NINES = [float("9" * digits) for digits in range(2, 10)]
_FILLS = [32767.0, 2147483647.0, 1e20, 1e30, 9.969209968386869e36, float(np.finfo(np.float32).max)]
CODES = np.array([*_NINES[1:], *_FILLS, *(-code for code in (*_NINES, *_FILLS)), -32768.0, -2147483648.0])
# The limits of a column if nothing is known about it.
UNLIMITED = np.array([[-np.inf], [np.inf]])


def _distances(values: Array, median: float) -> Array:
    """Return the values' distances from their median that are more than rounding, smallest first."""
    distances = np.abs(values - median)
    distances = distances[distances > ROUNDING * abs(median)]
    distances.sort()
    return distances


def _has_gap(values: Array) -> bool:
    """Tell whether a column's extremes are so far from its median that a gap is possible.

    This is a cheap look at the extremes and at a sample of the values, which spares most columns a sort.
    """
    sample = values[:: max(1, len(values) // 10_000)]
    is_code = np.isin(sample, CODES)
    sample = sample if is_code.all() else sample[~is_code]
    median = float(np.median(sample))
    distances = _distances(sample, median)
    if not len(distances):
        return bool(np.any(values != median))
    upper_quartile = distances[int(0.75 * (len(distances) - 1))]
    low, high = values.min(), values.max()
    possible_codes = CODES[(low <= CODES) & (high >= CODES)]
    far = max(high - median, median - low) > LEAST_FACTOR * upper_quartile
    return bool(far or (np.abs(possible_codes - median) > LEAST_FACTOR_OF_CODES * upper_quartile).any())


def tame_limits(values: Array, *, codes: bool = False) -> tuple[float, float]:
    """Return the limits beyond which values of a column are wild; infinite where none is.

    They lie at equal distances from the median, in the middle (on the log scale) of a gap between distances.
    It is the first gap that is much wider than the mean gap of the tail below it. That mean is by Hill's
    estimator, the usual one for tails that fall like a power. ``codes`` says that the largest distance is
    that of a value known as a code for "missing", for which a narrower gap does.
    """
    median = float(np.median(values))
    distances = _distances(values, median)
    n = len(distances)
    max_wild = min(max(1, int(LARGEST_SHARE * len(values))), n - (1 if codes else FEWEST_IN_TAIL))
    if max_wild < 1:
        return -np.inf, np.inf
    wide_gap, least_factor = (WIDE_GAP_OF_CODES, LEAST_FACTOR_OF_CODES) if codes else (WIDE_GAP, LEAST_FACTOR)
    logs = np.log(distances)
    sums = np.r_[0.0, np.cumsum(logs)]
    # Each gap that is tried lies above the distance at ``last``, and its tail begins at ``first``.
    last = np.arange(n - 1 - max_wild, n - 1)
    first = np.maximum(last + 1 - max(FEWEST_IN_TAIL, int(TAIL * n)), 0)
    tail_sizes = last + 1 - first
    mean_gaps = (sums[last + 1] - sums[first] - tail_sizes * logs[first] + PRIOR) / (tail_sizes + PRIOR)
    gaps = logs[last + 1] - logs[last]
    wide = np.flatnonzero(gaps > np.maximum(wide_gap * mean_gaps, np.log(least_factor)))
    if codes:
        # Only the gap below the code itself: what lies before it is judged as every other value is.
        wide = wide[last[wide] == n - 2]
    if not len(wide):
        return -np.inf, np.inf
    reach = float(np.exp(logs[last[wide[0]]] + 0.5 * gaps[wide[0]]))
    return median - reach, median + reach


def _limits(values: Array) -> tuple[float, float]:
    """Return the lower and upper limit of a column, beyond which values are wild; infinite where none is.

    Values known as codes for "missing" that occur twice or more are also judged one by one, beside the other
    values, and may be nearer to these than other wild values.
    """
    if not len(values) or not _has_gap(values):
        return -np.inf, np.inf
    is_code = np.isin(values, CODES)
    low, high = tame_limits(values)
    if 0 < 2 * np.count_nonzero(is_code) < len(values):
        others, (codes, counts) = values[~is_code], np.unique(values[is_code], return_counts=True)
        for code in codes[counts > 1]:
            # Once, however often it occurs: more than a twentieth of all cells may be codes.
            below, above = tame_limits(np.r_[others, code], codes=True)
            if not below <= code <= above:
                low, high = max(low, below), min(high, above)
    return low, high


def column_limits(columns: Iterable[Array]) -> Array:
    """Return lower and upper limits of shape (2, p + 1) of the p predictors and of the response behind them.

    They are infinite where no cell is wild.
    """
    return np.array([_limits(values) for values in columns]).T


@dataclass(frozen=True)
class WildCells:
    """Cells of one learner that hold the same value, far from all others of the column.

    ``column`` is named as in a sentence. Where most rows of the learner are beyond the limits, its rows are
    ``kept``.
    """

    learner: Any
    column: str
    value: float
    count: int
    kept: bool


def _too_many(rows: Array, owner: Array, sizes: Array) -> Array:
    """Tell which learners (L,) hold more than half of their ``sizes`` (L,) rows in positions ``rows``."""
    most_rows: Array = 2 * np.bincount(owner[rows], minlength=len(sizes)) > sizes
    return most_rows


def set_aside(
    X: Array, y: Array, owner: Array, ids: Array, limits: Array, names: Sequence[str] | None = None
) -> tuple[Array, tuple[WildCells, ...]]:
    """Find the rows that have a cell beyond the limits, which are from `column_limits`.

    ``owner`` of shape (N,) is the position in ``ids`` of the learner who holds each row. Returns the rows to
    be set aside, of shape (N,), at most half of any learner's, and what is to be said of them, and of codes
    in rows that stay. The last column of the ``limits`` is that of the response; ``names`` are for notes.
    """
    sizes, learners = np.bincount(owner, minlength=len(ids)), ids.tolist()
    aside, beyond = np.zeros(len(y), dtype=bool), {}
    for column in np.flatnonzero(np.isfinite(limits).any(axis=0)).tolist():
        values = y if column == X.shape[1] else X[:, column]
        rows = np.flatnonzero((values < limits[0, column]) | (values > limits[1, column]))
        # Learners whose values are mostly far from the others': that is where they live.
        lives_elsewhere = _too_many(rows, owner, sizes)
        # Of amounts that are mostly nought, those that are not tell where a learner lives.
        n_varied = np.bincount(owner[values != np.median(values)], minlength=len(ids))
        several = np.bincount(owner[rows], minlength=len(ids)) >= FEWEST_IN_TAIL
        lives_elsewhere |= several & _too_many(rows, owner, n_varied)
        beyond[column] = rows, values[rows]
        aside[rows[~lives_elsewhere[owner[rows]]]] = True
    aside &= ~_too_many(np.flatnonzero(aside), owner, sizes)[owner]
    cells = []
    for column, (rows, values) in beyond.items():
        label = "The response" if column == X.shape[1] else f"Column {names[column]!r}" if names else None
        # How many cells of a learner have the same value and the same fate.
        counts: dict[tuple[int, float, bool], int] = {}
        for row, value in zip(rows.tolist(), values.tolist(), strict=True):
            key = int(owner[row]), value, not aside[row]
            counts[key] = counts.get(key, 0) + 1
        for (j, value, kept), count in counts.items():
            if not kept or value in CODES:
                cells.append(WildCells(learners[j], label or f"Column {column}", value, count, kept))
    return aside, tuple(cells)


def _note(column: str, value: float | None, kept: bool, cells: Sequence[WildCells]) -> str:
    """Say which far cells of a column were found, and what became of their rows.

    ``value`` is the code that they hold, None for other values; ``kept`` says that their rows stay.
    """
    count = sum(cell.count for cell in cells)
    many = f"{count} cell{'s' if count > 1 else ''}"
    what = f"{many} of {value:.6g}" if value is not None else f"{many} far from all others"
    if value is None:
        what += f" ({', '.join(f'{v:.6g}' for v in list(dict.fromkeys(c.value for c in cells))[:3])})"
    whose = f"in rows of learner {listed(dict.fromkeys(cell.learner for cell in cells))}"
    likely = "" if value is None else ", likely a code for a missing value"
    then = "the rows were set aside" if count > 1 else "the row was set aside"
    if kept:
        then = "as most of the learner's rows are far from all others, it was taken as a number"
    return f"{column} has {what} {whose}{likely}: {then}."


def notes_on(cells: Sequence[WildCells]) -> tuple[str, ...]:
    """Say in sentences which cells were wild: one for each column, code and fate of the rows."""
    cells_by_sentence: dict[tuple[str, float | None, bool], list[WildCells]] = {}
    for cell in cells:
        code = cell.value if cell.value in CODES else None
        cells_by_sentence.setdefault((cell.column, code, cell.kept), []).append(cell)
    return tuple(_note(*key, cells_alike) for key, cells_alike in cells_by_sentence.items())


def warn_of(cells: Sequence[WildCells], stacklevel: int = 3) -> None:
    """Warn of wild cells, in the name of whoever called the caller."""
    for note in notes_on(cells):
        warnings.warn(note, UserWarning, stacklevel=stacklevel)
