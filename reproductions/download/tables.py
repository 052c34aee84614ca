"""Reading a table of numbers from a file, or refusing it with what is wrong."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import TextIOWrapper
from itertools import chain
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from reproductions.download.cache import open_content
from reproductions.download.transfer import DatasetCorrupted


@dataclass(frozen=True, eq=False)
class Table:  # numpydoc ignore=PR02
    """One table for regression.

    Parameters
    ----------
    X : ndarray of float, shape (n_rows, n_features)
        Predictors.
    y : ndarray of float, shape (n_rows,)
        Response.
    feature_names : tuple of str
        Names of the columns of `X`.
    path : Path
        The file it was read from.
    """

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    feature_names: tuple[str, ...]
    path: Path


def corrupted(path: Path, cause: str) -> DatasetCorrupted:
    """Return the error about a file that is not what it should be."""
    return DatasetCorrupted(
        f"The file {path} is truncated or altered ({cause}); replace it with a fresh copy, or "
        "remove it to have it downloaded again."
    )


def _checked_rows(stream: TextIO, columns: Sequence[str], n_whole: int) -> Iterator[str]:
    """Yield the data lines; a ValueError says what is wrong with the text."""
    header = [name.strip().strip('"') for name in stream.readline().split(",")]
    if header != list(columns):
        raise ValueError(
            f"its header does not name the {len(columns)} columns {columns[0]}, ..., {columns[-1]}"
        )
    line, n_rows = "\n", 0
    for number, line in enumerate(stream, start=2):
        if line.isspace():
            continue
        n_columns = line.count(",") + 1
        if n_columns != len(columns):
            raise ValueError(f"line {number} has {n_columns} columns instead of {len(columns)}")
        n_rows += 1
        yield line
    if n_rows == 0:
        raise ValueError("it has no rows")
    # A cut inside the last number leaves a valid row. Only the line's end tells; the whole file
    # is let off, since nobody promises that its last line has one.
    if not line.endswith("\n") and n_rows != n_whole:
        raise ValueError(f"it ends inside row {n_rows}")


def read_csv(path: Path, columns: Sequence[str], n_numeric: int, n_whole: int) -> NDArray[np.float64]:
    """Read the first `n_numeric` of `columns`, and refuse whatever is not a clean table."""
    try:
        with open_content(path) as content, TextIOWrapper(content, encoding="utf-8") as stream:
            rows = _checked_rows(stream, columns, n_whole)
            # loadtxt warns about an empty input before our own check can speak.
            values = np.loadtxt(
                chain([next(rows)], rows),
                delimiter=",",
                comments=None,
                usecols=range(n_numeric),
                ndmin=2,
            )
    except UnicodeDecodeError:
        raise corrupted(path, "it is not text") from None
    except (ValueError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise corrupted(path, str(error).rstrip(".")) from None
    if not np.isfinite(values).all():
        row, column = np.argwhere(~np.isfinite(values))[0]
        raise corrupted(path, f"row {row + 1} has no finite number in column {columns[column]}")
    return values


def check_rows(path: Path, n_rows: int, expected: int) -> None:
    """Refuse a table of another length."""
    if n_rows != expected:
        raise corrupted(path, f"it has {n_rows:,} rows instead of {expected:,}")
