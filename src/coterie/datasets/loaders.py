"""The paper's real tables: the electrical grid and the CT slices."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import TextIOWrapper
from itertools import chain
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from coterie.datasets.files import (
    fetch_member,
    local_copy,
    open_content,
    record_checksum,
    verify_checksum,
    verify_record,
)
from coterie.datasets.transfer import DatasetCorrupted

GRID_URL = "https://archive.ics.uci.edu/static/public/471/electrical+grid+stability+simulated+data.zip"
GRID_FILE = "Data_for_UCI_named.csv"
GRID_SHA256 = "7afc3154fed9cd65258b3403b60381fe6b0d832bf817a1ea4866395d05a84a83"
GRID_ROWS = 10_000
GRID_FEATURES = tuple(f"{name}{number}" for name in ("tau", "p", "g") for number in (1, 2, 3, 4))

CT_URL = "https://archive.ics.uci.edu/static/public/206/relative+location+of+ct+slices+on+axial+axis.zip"
CT_FILE = "slice_localization_data.csv"
CT_ROWS = 53_500
CT_PATIENTS = 97
CT_FEATURES = tuple(f"value{number}" for number in range(384))


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


@dataclass(frozen=True, eq=False)
class GroupedTable(Table):  # numpydoc ignore=PR02
    """One table for regression whose rows belong to learners.

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
    groups : ndarray of int, shape (n_rows,)
        Learner of each row.
    """

    groups: NDArray[np.int64]


def _corrupted(path: Path, cause: str) -> DatasetCorrupted:
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


def _read_csv(path: Path, columns: Sequence[str], n_numeric: int, n_whole: int) -> NDArray[np.float64]:
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
        raise _corrupted(path, "it is not text") from None
    except (ValueError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise _corrupted(path, str(error).rstrip(".")) from None
    if not np.isfinite(values).all():
        row, column = np.argwhere(~np.isfinite(values))[0]
        raise _corrupted(path, f"row {row + 1} has no finite number in column {columns[column]}")
    return values


def _check_rows(path: Path, n_rows: int, expected: int) -> None:
    if n_rows != expected:
        raise _corrupted(path, f"it has {n_rows:,} rows instead of {expected:,}")


def load_grid_stability() -> Table:
    """Load the simulated electrical grid of the UCI archive (Arzamasov et al., 2018).

    The file is taken from the folder `grid_stability` of the folder named by COTERIE_DATA, else
    from the cache, else downloaded into the cache. Its checksum is verified every time.

    Returns
    -------
    Table
        The 10,000 rows: `X` of shape (10000, 12) with tau1-4, p1-4 and g1-4, and `y`, the
        column stab. The label stabf is left out, being a function of stab.

    Raises
    ------
    DatasetUnavailable
        When there is no copy and none can be downloaded.
    DatasetCorrupted
        When the file is truncated or altered.
    """
    path = local_copy("grid_stability", GRID_FILE)
    if path is None:
        path = fetch_member(GRID_URL, "grid_stability", GRID_FILE, GRID_SHA256)
    values = _read_csv(path, (*GRID_FEATURES, "stab", "stabf"), 13, GRID_ROWS)
    _check_rows(path, len(values), GRID_ROWS)
    # Only after the structure: "line 7 has 3 columns" says more than two checksums.
    verify_checksum(path, GRID_SHA256)
    return Table(np.ascontiguousarray(values[:, :12]), values[:, 12].copy(), GRID_FEATURES, path)


def parse_ct_slices(path: str | os.PathLike[str]) -> GroupedTable:
    """Read the table of CT slices, or the head of it, from a file.

    Parameters
    ----------
    path : path-like
        The file slice_localization_data.csv, or its first rows; plain or compressed by gzip.

    Returns
    -------
    GroupedTable
        `X` of shape (n_rows, 384) with value0-383, `y`, the column reference, and `groups`, the
        column patientId.

    Raises
    ------
    DatasetCorrupted
        When the file is truncated inside a row, or altered.
    """
    path = Path(path)
    columns = ("patientId", *CT_FEATURES, "reference")
    values = _read_csv(path, columns, len(columns), CT_ROWS)
    groups = values[:, 0].astype(np.int64)
    if (groups != values[:, 0]).any():
        raise _corrupted(path, "a patientId is not a whole number")
    return GroupedTable(
        X=np.ascontiguousarray(values[:, 1:-1]),
        y=values[:, -1].copy(),
        feature_names=CT_FEATURES,
        path=path,
        groups=groups,
    )


def _whole_ct(path: Path) -> GroupedTable:
    table = parse_ct_slices(path)
    _check_rows(path, len(table.y), CT_ROWS)
    n_patients = len(np.unique(table.groups))
    if n_patients != CT_PATIENTS:
        raise _corrupted(path, f"it has {n_patients} patients instead of {CT_PATIENTS}")
    return table


def load_ct_slices() -> GroupedTable:
    """Load the CT slices of the UCI archive (Graf et al., 2011).

    The file is taken from the folder `ct_slices` of the folder named by COTERIE_DATA, else from
    the cache, else downloaded into the cache. No checksum is published: the shape is verified,
    and the checksum of the first good download is recorded beside it and compared later.

    Returns
    -------
    GroupedTable
        The 53,500 rows: `X` of shape (53500, 384), `y`, the slice's relative location, and
        `groups`, the patient (97 of them).

    Raises
    ------
    DatasetUnavailable
        When there is no copy and none can be downloaded.
    DatasetCorrupted
        When the file is truncated or altered.
    """
    path = local_copy("ct_slices", CT_FILE)
    if path is not None:
        return _whole_ct(path)
    path = fetch_member(CT_URL, "ct_slices", CT_FILE)
    known = verify_record(path)
    table = _whole_ct(path)
    if not known:
        record_checksum(path)
    return table
