"""Rows in time order: the time of each row, and learners whose rows follow it."""

from __future__ import annotations

import math
import re
from datetime import datetime
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np

from coterie._arrays import Array
from coterie._options import brief, listed
from coterie.encoding.entries import DATE_FORMATS
from coterie.rows.learners import Learners
from coterie.rows.numbers import as_array, is_missing
from coterie.rows.tables import as_table


def split_time_column(X: Any, column: str, caller: str, *, needed: bool = True) -> tuple[Any, Any]:
    """Take the column of times out of a table; return the rest and the times, in the table's own library.

    Where it is not ``needed`` it may be missing: then X comes back as it is, with None. ``caller`` is for the
    error.
    """
    table = as_table(X)
    if table is None or column not in table.columns:
        if not needed:
            return X, None
        has = "is no table" if table is None else f"has the columns {listed(table.columns, most=12)}"
        raise ValueError(f"The time column {column!r} of {caller} is not a column of X, which {has}.")
    return table.drop(column).to_native(), table[column].to_native()


def as_date(text: str) -> datetime | None:
    """Return a date that is written as text; of a month, its first day.

    None where the text is no date. The ISO form is tried first, then `DATE_FORMATS`.
    """
    month = re.fullmatch(r"[0-9]{4}-[0-9]{2}", text)
    try:
        return datetime.fromisoformat(f"{text}-01" if month else text)
    except ValueError:
        pass
    for form in DATE_FORMATS:
        try:
            return datetime.strptime(text, form)
        except ValueError:
            continue
    return None


def _as_number(text: str) -> float | None:
    """Return the finite number that a text holds, None if it holds none."""
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        return number if math.isfinite(number) and "_" not in text else None
    return None


def _read(texts: list[str], caller: str) -> list[Any]:
    """Return times that are written as text as numbers or dates; refuse what is neither.

    Equal texts are read once. ``caller`` names the function in the error.
    """
    time_of: dict[str, Any] = {}
    for text in dict.fromkeys(texts):
        number = _as_number(text)
        time_of[text] = as_date(text.strip()) if number is None else number
        if time_of[text] is None:
            raise ValueError(
                f"The 'time' argument of {caller} holds text that is no number, and no date such as "
                f"2024-12-31 or 31.12.2024: {brief(text)}. Pass dates or numbers."
            )
    return [time_of[text] for text in texts]


def time_ranks(times: Any, n_rows: int, caller: str) -> Array:
    """Return the rank (N,) of each row's time, 0 for the earliest; equal times have equal ranks.

    ``times`` are N dates or numbers, or texts that are written as either, in a list, an array or a column.
    Only the order matters to the method. ``caller`` names the function in errors.
    """
    series = nw.from_native(times, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        values: Any = series.to_list()
    else:
        values = times if isinstance(times, list) else as_array(times).tolist()
    if not isinstance(values, list) or any(isinstance(value, list | tuple) for value in values):
        raise ValueError(f"The 'time' argument of {caller} must have one dimension, one entry per row of X.")
    if len(values) != n_rows:
        raise ValueError(
            f"The 'time' argument of {caller} must have one entry per row of X ({n_rows}). Got {len(values)}."
        )
    missing = sum(is_missing(value) for value in values)
    if missing:
        raise ValueError(
            f"The 'time' argument of {caller} is missing in {missing} of {n_rows} rows: drop them."
        )
    if all(isinstance(value, str) for value in values):
        values = _read(values, caller)
    try:
        distinct = sorted(set(values))
    except TypeError:
        raise ValueError(
            f"The 'time' argument of {caller} mixes entries that cannot be compared: give it one type."
        ) from None
    rank_of = {value: rank for rank, value in enumerate(distinct)}
    return np.array([rank_of[value] for value in values], dtype=int)


def in_time_order(learners: Learners, ranks: Array) -> Learners:
    """Return the same learners, the rows of each in time order; ``ranks`` are those of the table's rows."""
    return learners.rearranged(np.lexsort((ranks[learners.rows], learners.owner)))
