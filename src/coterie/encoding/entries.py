"""Entries of a column as what they are: objects of Python, and dates and numbers that are written as text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from datetime import date
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np

from coterie._arrays import Array
from coterie.rows.numbers import NoNumberError, as_numbers, is_missing

# How dates are written. A date with slashes is left as text: the month may come first or second.
DATE_FORMATS = ("%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%d.%m.%Y")
# The format of all entries is looked for in this many first ones.
_N_FIRST_ENTRIES = 20

# A number as any reader of files knows it; and with a decimal comma, perhaps with points between thousands.
_PLAIN = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_WITH_COMMA = re.compile(r"[+-]?([0-9]+|[0-9]{1,3}(\.[0-9]{3})+)(,[0-9]+)?([eE][+-]?[0-9]+)?")
# Three digits behind a comma may also be thousands.
_SURE_COMMA = re.compile(r".*,([0-9]{1,2}|[0-9]{4,})([eE][+-]?[0-9]+)?")
# Nobody writes a number so; it is a code, such as 007.
_CODE = re.compile(r"[+-]?0[0-9].*")
# Text with at most this share of entries that are no numbers is numbers with gaps: one entry of twenty. Of
# codes such as A1 and 12, or of house numbers, more have letters.
_MAX_ODD_SHARE = 0.05


def _of_objects(series: Any) -> Any:
    """Return a column of objects as numbers, dates or text; as it is where it holds anything else.

    pandas keeps mixed or missing entries as Python objects. Numbers among texts become texts.
    """
    values = [None if is_missing(value) else value for value in series.to_list()]
    known = [value for value in values if value is not None]
    # The new entries and their type.
    made: tuple[Any, Any]
    if not known:
        made = values, nw.String
    elif all(isinstance(value, date) for value in known):
        days = np.array([np.datetime64("NaT") if v is None else np.datetime64(v) for v in values])
        made = days.astype("M8[us]"), nw.Datetime("us")
    elif any(isinstance(value, str) for value in known):
        plain = all(isinstance(value, (str, int, float, np.number)) for value in known)
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
    """Return text as dates where all of its entries are written in one known way, else None.

    A few first entries are tried before the whole column, which is slow.
    """
    known = series.drop_nulls()
    if not len(known):
        return None
    for form in DATE_FORMATS:
        try:
            known.head(_N_FIRST_ENTRIES).str.to_datetime(format=form)
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


def _as_number(text: str, comma: bool) -> float:
    """Return an entry as a number, NaN where it is none."""
    text = text.strip()
    if not (_WITH_COMMA if comma else _PLAIN).fullmatch(text):
        return float("nan")
    return float(text.replace(".", "").replace(",", ".") if comma else text)


def texts_of(series: Any) -> list[str | None]:
    """Return the entries of a column of text; pandas has NaN where one is missing."""
    return [entry if isinstance(entry, str) else None for entry in series.to_list()]


def numbers_in(texts: Sequence[str | None], comma: bool) -> Array:
    """Return the numbers that entries stand for, of shape (n,), each read by itself; NaN for no number."""
    read = {text: float("nan") if text is None else _as_number(text, comma) for text in set(texts)}
    return np.array([read[text] for text in texts], dtype=np.float64)


def odd_entries(texts: Sequence[str | None], numbers: Array) -> Counter[str]:
    """Count the entries that are there and are no numbers."""
    gaps = np.flatnonzero(np.isnan(numbers)).tolist()
    return Counter(text for text in (texts[row] for row in gaps) if text is not None)


def has_commas(texts: Sequence[str | None]) -> bool | None:
    """Tell whether text that is nearly all numbers has decimal commas. None: it is no such text.

    Text that any reader would have taken for numbers is text because somebody wanted it to be (postal codes).
    If some entries are no such numbers, these may be why it is text.
    """
    counts = Counter(text for text in texts if text is not None)
    if all(_PLAIN.fullmatch(text) for text in counts):
        return None
    # How many entries are numbers with decimal points (False) or commas (True).
    n_numbers: dict[bool, int] = {}
    for comma in (False, True):
        form = _WITH_COMMA if comma else _PLAIN
        numbers = [
            text for text in counts if form.fullmatch(text.strip()) and not _CODE.fullmatch(text.strip())
        ]
        if not comma or any(_SURE_COMMA.fullmatch(text.strip()) for text in numbers):
            n_numbers[comma] = sum(counts[text] for text in numbers)
    # Of equals the decimal point, which was counted first.
    comma = max(n_numbers, key=lambda with_comma: n_numbers[with_comma])
    return comma if counts.total() - n_numbers[comma] <= _MAX_ODD_SHARE * counts.total() else None
