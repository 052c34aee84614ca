"""Entries of a column as what they are: objects of Python, and dates that are written as text."""

from __future__ import annotations

from datetime import date
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np

from coterie.rows.numbers import NoNumberError, as_numbers, is_missing

# How dates are written. A date with slashes is left as text: the month may come first or second.
DATE_FORMATS = ("%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%d.%m.%Y")
# The first entries tell the format of all.
_LOOKED_AT = 20


def _of_objects(series: Any) -> Any:
    """Return a column of objects as numbers, dates or text; as it is where it holds anything else."""
    values = [None if is_missing(value) else value for value in series.to_list()]
    known = [value for value in values if value is not None]
    made: tuple[Any, Any]
    if not known:
        made = values, nw.String
    elif all(isinstance(value, date) for value in known):
        days = np.array([np.datetime64("NaT") if v is None else np.datetime64(v) for v in values])
        made = days.astype("M8[us]"), nw.Datetime("us")
    elif any(isinstance(value, str) for value in known):
        plain = all(isinstance(value, (str, int, float)) for value in known)
        if not plain:
            return series
        made = [None if value is None else str(value) for value in values], nw.String
    else:
        objects = np.empty(len(values), dtype=object)
        objects[:] = values
        try:
            made = as_numbers(objects), nw.Float64
        except NoNumberError:
            return series
    backend = nw.get_native_namespace(series)
    return nw.new_series(name=series.name, values=made[0], dtype=made[1], backend=backend)


def as_dates(series: Any) -> Any | None:
    """Return text as dates where all of its entries are written in one known way, else None."""
    known = series.drop_nulls()
    if not len(known):
        return None
    for form in DATE_FORMATS:
        try:
            known.head(_LOOKED_AT).str.to_datetime(format=form)
            return series.str.to_datetime(format=form)
        # Each library raises its own error.
        except Exception:
            continue
    return None


def typed(series: Any) -> Any:
    """Return a narwhals Series whose type says what its entries are."""
    if series.dtype not in (nw.Object, nw.Unknown):
        return series
    return _of_objects(series)
