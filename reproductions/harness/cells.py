"""Means, standard errors and ratios over replications, and how they are written in a table's cell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reproductions.harness.experiment import Record

Array = NDArray[Any]


def column(records: Iterable[Record], name: str, **where: Any) -> Array:
    """Return one name's values over the records that have the given values under other names."""
    chosen = (record for record in records if all(record.get(key) == value for key, value in where.items()))
    return np.array([record[name] for record in chosen], dtype=float)


def mean_and_error(values: Array) -> tuple[float, float]:
    """Return the mean and its standard error; the error of a single value is not known."""
    if len(values) < 2:
        return float(np.mean(values)), float("nan")
    return float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values)))


def ratio_and_error(top: Array, bottom: Array) -> tuple[float, float]:
    """Return the ratio of two means over the same replications, and its standard error (delta method)."""
    ratio = float(np.mean(top) / np.mean(bottom))
    if len(top) < 2:
        return ratio, float("nan")
    spread = np.std(top - ratio * bottom, ddof=1) / np.sqrt(len(top))
    return ratio, float(spread / abs(np.mean(bottom)))


def cell(estimate: Sequence[float], digits: int = 2) -> str:
    """Write a value with what belongs in parentheses behind it: a standard error, or a deviation.

    Examples
    --------
    >>> from reproductions.harness.cells import cell
    >>> cell((1.2345, 0.0678), 3)
    '1.234 (0.068)'
    """
    value, error = estimate
    shown = f"{value:.{digits}f}"
    return shown if np.isnan(error) else f"{shown} ({error:.{digits}f})"
