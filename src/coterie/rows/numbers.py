"""Numbers of whatever kind, as float64; or the reason why something is none."""

from __future__ import annotations

from datetime import date, time, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie._arrays import Array

# Libraries have entries of their own for "missing", which answer no comparison with a truth value.
_MISSING = ("NAType", "NaTType", "MaskedConstant")
_DATES = (date, time, timedelta, np.datetime64, np.timedelta64)

# Columns whose largest entry lies between these powers of two are left as they are. Trees take values that
# differ by less than 1e-7 for equal ones, and hold them in single precision.
SMALLEST_ORDINARY, LARGEST_ORDINARY = -13, 100


class NoNumberError(Exception):
    """An entry is no number: ``why`` is "dates", "complex", "large", "fields" or "other"."""

    def __init__(self, why: str, detail: str = "") -> None:
        super().__init__(why, detail)
        self.why, self.detail = why, detail


def is_missing(value: Any) -> bool:
    """Tell whether an entry stands for nothing; a tuple does where one of its parts does."""
    if isinstance(value, tuple):
        return any(is_missing(part) for part in value)
    return value is None or type(value).__name__ in _MISSING or bool(value != value)


def _from_objects(values: Array) -> Array:
    """Return objects or texts as float64, NaN for what stands for "missing" in some library.

    A NoNumberError says why an entry is none: "dates", "complex", "large" or "other".
    """
    kinds = set(map(type, values.ravel().tolist()))
    if any(kind.__name__ in _MISSING for kind in kinds):
        gaps = [type(value).__name__ in _MISSING for value in values.ravel().tolist()]
        values = values.copy()
        values[np.reshape(gaps, values.shape)] = None
        kinds = {kind for kind in kinds if kind.__name__ not in _MISSING}
    # numpy would count the days of a date.
    if any(issubclass(kind, _DATES) for kind in kinds):
        raise NoNumberError("dates")
    if any(issubclass(kind, (complex, np.complexfloating)) for kind in kinds):
        raise NoNumberError("complex")
    try:
        return values.astype(np.float64)
    except OverflowError:
        raise NoNumberError("large") from None
    except TypeError as error:
        raise NoNumberError("other", str(error)) from None
    # An object's own conversion may fail in any way.
    except Exception:
        raise NoNumberError("other") from None


def as_array(values: Any) -> Array:
    """Return anything as an array; what a masked array hides stays hidden. A ValueError says why not."""
    try:
        if isinstance(values, np.ma.MaskedArray):
            return values
        if isinstance(values, (list, tuple)) and any(isinstance(v, np.ma.MaskedArray) for v in values):
            stacked: Array = np.ma.stack(values)
            return stacked
        return np.asarray(values)
    # Whatever an object's own conversion raises.
    except Exception as error:
        text = str(error).split("\n")[0]
        if "inhomogeneous" in text or "same shape" in text:
            raise ValueError("has entries of different lengths: give it one length") from None
        raise ValueError(f"cannot be read as an array ({type(error).__name__}: {text})") from None


def as_numbers(values: Array) -> Array:
    """Return an array as float64, NaN where it has gaps or is masked.

    It is the same array where it was one already. A NoNumberError says why there is none.
    """
    if isinstance(values, np.ma.MaskedArray):
        hidden = np.ma.getmaskarray(values)
        if values.dtype.kind == "O":
            mask = values.data.copy()
            mask[hidden] = None
            return as_numbers(mask)
        numbers = as_numbers(values.data)
        return np.where(hidden, np.nan, numbers) if hidden.any() else numbers
    kind = values.dtype.kind
    reason = {"m": "dates", "M": "dates", "c": "complex", "V": "fields"}.get(kind)
    if reason is not None:
        raise NoNumberError(reason)
    if kind not in "biuf":
        return _from_objects(values)
    # A longdouble beyond the range becomes infinite, which is refused by name.
    with np.errstate(over="ignore"):
        return values.astype(np.float64, copy=False)


def _are_ordinary(exponents: Any) -> Any:
    return (exponents >= SMALLEST_ORDINARY) & (exponents <= LARGEST_ORDINARY)


def extreme_exponents(X: Array) -> NDArray[np.int_]:
    """Return the powers of two, of shape (p,), that bring columns of extreme units to a size of about one.

    They are zero for columns in ordinary units. Dividing by a power of two loses no digit, so the answer is
    that of ordinary units. Extreme ones would leave the range of single precision, in which trees hold them.
    """
    largest = np.maximum(X.max(axis=0, initial=0.0), -X.min(axis=0, initial=0.0))
    exponents: NDArray[np.int_] = np.frexp(largest)[1].astype(int)
    for column in np.flatnonzero(~_are_ordinary(exponents)).tolist():
        # One wild cell is not the unit of a column.
        sizes = np.sort(np.abs(X[X[:, column] != 0, column]))
        if not len(sizes) or _are_ordinary(np.frexp(sizes[len(sizes) // 2])[1]):
            exponents[column] = 0
    return np.where(_are_ordinary(exponents), 0, exponents)


def divided(X: Array, exponents: NDArray[np.int_]) -> Array:
    """Divide columns by powers of two; ordinary columns stay as they are."""
    if not exponents.any():
        return X
    with np.errstate(over="ignore", under="ignore"):
        scaled: Array = np.ldexp(X, -exponents)
    return scaled
