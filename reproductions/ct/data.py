"""The CT slices of the UCI archive: 53,500 rows of 97 patients, 384 predictors."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from coterie.datasets import local_copy
from reproductions.download.cache import fetch_member, record_checksum, verify_record
from reproductions.download.tables import Table, check_rows, corrupted, read_csv

CT_URL = "https://archive.ics.uci.edu/static/public/206/relative+location+of+ct+slices+on+axial+axis.zip"
CT_FILE = "slice_localization_data.csv"
CT_ROWS = 53_500
CT_PATIENTS = 97
CT_FEATURES = tuple(f"value{number}" for number in range(384))


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
    values = read_csv(path, columns, len(columns), CT_ROWS)
    groups = values[:, 0].astype(np.int64)
    if (groups != values[:, 0]).any():
        raise corrupted(path, "a patientId is not a whole number")
    return GroupedTable(
        X=np.ascontiguousarray(values[:, 1:-1]),
        y=values[:, -1].copy(),
        feature_names=CT_FEATURES,
        path=path,
        groups=groups,
    )


def _whole_ct(path: Path) -> GroupedTable:
    table = parse_ct_slices(path)
    check_rows(path, len(table.y), CT_ROWS)
    n_patients = len(np.unique(table.groups))
    if n_patients != CT_PATIENTS:
        raise corrupted(path, f"it has {n_patients} patients instead of {CT_PATIENTS}")
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
