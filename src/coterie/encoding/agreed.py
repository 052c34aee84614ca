"""Columns that were agreed on before anybody looked at rows: each entry is read by itself.

Nothing is guessed from a column: what an entry becomes depends on the entry and on what was agreed, never on
other rows. So a row that changes changes its own numbers only, which private moments rely on. An entry that
cannot be read is a gap, and no entry is refused.

Entries are texts. A number, a truth value or a date of a typed column counts as the text that a CSV file
would have. In a text file a row is a line, and quotes never reach beyond the end of it. So a broken line,
with too few or too many fields or a stray quote, is one row of gaps and leaves the other rows alone.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime
from functools import cache
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np

from coterie._arrays import Array
from coterie._options import listed
from coterie.encoding.columns import ColumnPlan
from coterie.encoding.times import as_date
from coterie.rows.tables import as_table

# What stands for a missing entry in text files, beside nothing at all.
MISSING = ("NA", "N/A", "n/a", "NaN", "nan", "null", "NULL")
TRUTHS = {"true": 1.0, "false": 0.0}

_NUMBERS = {
    ".": re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII),
    # Points may part thousands.
    ",": re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+|(?=,\d))(,\d*)?([eE][+-]?\d+)?", re.ASCII),
}
_PARTS: dict[str, Callable[[datetime], float]] = {
    "year": lambda day: day.year,
    "month": lambda day: day.month,
    "weekday": lambda day: day.isoweekday(),
    "hour": lambda day: day.hour,
}

Texts = Sequence[str | None]


def rows_of(text: str, delimiter: str) -> tuple[list[str], list[Texts]]:
    """Return the names in the first line of a text, and the fields of every other line.

    Lines end as the first one does: within ``\\r\\n``, a single ``\\n`` is part of a field in quotes, as
    spreadsheets write it. A broken line has no fields: each of them is None.
    """
    head, line_end, rest = text.partition("\n")
    if head.endswith("\r"):
        head, line_end = head[:-1], "\r\n"
    names = _fields(head, delimiter) or []
    lines = rest.removesuffix(line_end or "\n").split(line_end or "\n") if rest else []
    gaps: Texts = [None] * len(names)
    read = (_fields(line, delimiter) for line in lines)
    return names, [fields if fields and len(fields) == len(names) else gaps for fields in read]


def _fields(line: str, delimiter: str) -> list[str] | None:
    """Return the fields of a line; None where quotes are broken."""
    try:
        return next(csv.reader([line.removesuffix("\r")], delimiter=delimiter, strict=True), [])
    except csv.Error:
        return None


def texts_of(series: Any, decimal: str = ".") -> Texts:
    """Return the entries of a column, a narwhals Series, as texts; numbers have this decimal sign.

    A duration becomes seconds, a time loses its zone, and what has no text (a list) is None, a gap. The type
    of the column decides how entries are read, never an entry: one that cannot be read is a gap by itself.
    """
    kind = series.dtype
    if kind == nw.Duration:
        series = series.dt.total_microseconds().cast(nw.Float64) / 1e6
    elif kind in (nw.Date, nw.Datetime):
        series = _within_the_calendar(series)
        series = series.dt.replace_time_zone(None) if kind == nw.Datetime else series
    values: list[Any]
    if kind in (nw.List, nw.Array, nw.Struct):
        values = [None] * len(series)
    elif kind == nw.Binary:
        values = [_decoded(value) for value in series.to_list()]
    elif kind in (nw.Object, nw.Unknown):
        values = series.to_list()
    else:
        values = series.cast(nw.String).to_list()
    if decimal == "." or not (kind.is_numeric() or kind == nw.Duration):
        return [None if value is None else str(value).strip() for value in values]
    return [None if value is None else str(value).replace(".", decimal) for value in values]


def _decoded(value: bytes | None) -> str | None:
    """Return bytes as text; None, a gap, where they are no UTF-8."""
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def _within_the_calendar(series: Any) -> Any:
    """Return dates or times with gaps for those outside the years 2 to 9998, which polars cannot spell.

    Files may hold any whole number as a date. The first and last year leave room for a change of zone.
    """
    if not series.implementation.is_polars():
        return series
    per_day = 1
    if series.dtype == nw.Datetime:
        per_day = 86_400 * {"ms": 10**3, "us": 10**6, "ns": 10**9}[series.dtype.time_unit]
    # Nanoseconds in 64 bits do not reach these years.
    first, last = ((date(year, 1, 1) - date(1970, 1, 1)).days * per_day for year in (2, 9999))
    first, last = max(first, -(2**63)), min(last, 2**63 - 1)
    entry = nw.col(series.name)
    is_known = (entry.cast(nw.Int64) >= first) & (entry.cast(nw.Int64) <= last)
    return series.to_frame().select(nw.when(is_known).then(entry))[series.name]


def _is_missing(text: str | None) -> bool:
    return not text or text in MISSING


def number_of(text: str | None, decimal: str = ".") -> float:
    """Return the number that a text is, NaN where it is none; "true" is one and "false" is zero."""
    if not text or text.lower() in TRUTHS:
        return TRUTHS[text.lower()] if text else math.nan
    if not _NUMBERS[decimal].fullmatch(text):
        return math.nan
    plain = text if decimal == "." else text.replace(".", "").replace(",", ".")
    number = float(plain)
    return number if math.isfinite(number) else math.nan


def _by_text(texts: Texts, read: Callable[[str | None], Any]) -> list[Any]:
    """Return what each text is read as; equal ones are read once."""
    return list(map(cache(read), texts))


def numbers_of(texts: Texts, decimal: str = ".") -> Array:
    """Return texts as numbers (n,), NaN for a gap."""
    return np.array(_by_text(texts, lambda text: number_of(text, decimal)), dtype=np.float64)


def places_of(texts: Texts, levels: Sequence[str], decimal: str = ".") -> Array:
    """Return the place (n,) of each text among levels; NaN for a gap, their number for any other entry.

    An entry is a level if the texts are equal, or if both are the same number, as ``1`` and ``1.0`` are. The
    levels (agreed entries of a category) have decimal points, ``decimal`` is the sign of the texts.
    """
    # From the last: of two levels that are one number the first counts.
    indices = list(enumerate(levels))[::-1]
    by_text = {level.strip(): float(index) for index, level in indices}
    by_number = {number_of(level.strip()): float(index) for index, level in indices}

    def index(text: str | None) -> float:
        if text is None or (text not in by_text and _is_missing(text)):
            return math.nan
        if text in by_text:
            return by_text[text]
        number = number_of(text, decimal)
        return float(len(levels)) if math.isnan(number) else by_number.get(number, float(len(levels)))

    return np.array(_by_text(texts, index), dtype=np.float64)


def _encoded(plan: ColumnPlan, texts: Texts, decimal: str) -> tuple[list[Array], Array]:
    """Return the columns of numbers (n,) that a column of n texts becomes by its plan, and its gaps (n,).

    A number stays one column, a category becomes an indicator for each level but the first, and a date one
    column for each of its parts. Entries that cannot be read are gaps, where numbers and dates are NaN.
    Returned are (columns, gaps).
    """
    if plan.kind == "number":
        values = numbers_of(texts, decimal)
        return [values], np.isnan(values)
    if plan.kind == "category":
        indices = places_of(texts, plan.levels, decimal)
        # An entry that is no level has the index behind the last one: its indicator is there if rare entries
        # share one.
        indicators = [indices == index for index in range(1, len(plan.levels) + plan.other)]
        return [indicator.astype(np.float64) for indicator in indicators], np.isnan(indices)
    days = _by_text(texts, lambda text: None if text is None else as_date(text))
    gaps = np.array([day is None for day in days], dtype=bool)
    parts = (_PARTS[part] for part in plan.parts)
    return [np.array([np.nan if day is None else part(day) for day in days]) for part in parts], gaps


def note_of(name: str, kind: str, texts: Texts, gaps: Array) -> list[str]:
    """Say how many entries of a column are gaps because they cannot be read, in a list of one note or none.

    ``gaps`` (n,) marks the gaps; those that were empty in the table need no note.
    """
    unread = [text for text, gap in zip(texts, gaps, strict=True) if gap and not _is_missing(text)]
    if not unread:
        return []
    examples = listed(list(dict.fromkeys(unread)))
    return [f"{len(unread)} of {len(texts)} entries of {name!r} are no {kind} and count as gaps: {examples}."]


def encode_agreed(
    table: Any, plans: Iterable[ColumnPlan], decimal: str = ".", notes: list[str] | None = None
) -> Array:
    """Return the numbers (n, q), without gaps, that the columns of a table become.

    Parameters
    ----------
    table : table of shape (n, p)
        A pandas, polars or pyarrow table with the columns of the plans among its own.
    plans : iterable of ColumnPlan
        What becomes of each column.
    decimal : str, default="."
        The decimal sign of numbers that are written as text.
    notes : list of str or None, default=None
        Here it is said which entries cannot be read: for the site, and for nobody else.

    Returns
    -------
    ndarray of shape (n, q)
        Row by row: what a row becomes depends on no other row.
    """
    whole, columns = as_table(table), []
    for plan in plans:
        if plan.kind == "left out":
            continue
        texts = texts_of(whole[plan.name], decimal)
        encoded, gaps = _encoded(plan, texts, decimal)
        if notes is not None:
            notes += note_of(plan.name, plan.kind, texts, gaps)
        fills = plan.fills or (0.0,) * len(encoded)
        columns += [np.where(gaps, fill, values) for fill, values in zip(fills, encoded, strict=True)]
        if plan.indicator:
            columns.append(gaps.astype(np.float64))
    return np.column_stack(columns)
