"""Cells and rows of the page's tables, from numbers."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

Line = dict[str, Any]


def read(path: Path) -> list[Line]:
    """Return the lines of a file of results; none where there is no such file."""
    if not path.is_file():
        return []
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def mean_and_error(values: Iterable[float]) -> tuple[float, float]:
    """Return the mean of values and its standard error."""
    known = np.array([value for value in values if math.isfinite(value)])
    if not len(known):
        return math.nan, math.nan
    return float(known.mean()), float(known.std(ddof=1) / math.sqrt(len(known))) if len(
        known
    ) > 1 else math.nan


def number(line: Line, name: str) -> float:
    """Return a number of a line, NaN where it is empty."""
    return float(line[name]) if line[name] != "" else math.nan


def cell(value: float, shape: str, broken: bool = False) -> str:
    """Return a number as text, a dash where it is not known, in bold where it breaks a bound."""
    text = "-" if math.isnan(value) else format(value, shape)
    return f"**{text}**" if broken else text


def per_cent(value: float, broken: bool = False) -> str:
    """Return a share in per cent."""
    return cell(100 * value, ".1f", broken)


def markdown(head: list[str], rows: list[list[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    return [
        "| " + " | ".join(head) + " |",
        "|---" * len(head) + "|",
        *("| " + " | ".join(r) + " |" for r in rows),
    ]
