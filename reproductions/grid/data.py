"""The electrical grid of the UCI archive: 10,000 rows, 12 predictors."""

from __future__ import annotations

import numpy as np

from coterie.datasets import local_copy
from reproductions.download.cache import fetch_member, verify_checksum
from reproductions.download.tables import Table, check_rows, read_csv

GRID_URL = "https://archive.ics.uci.edu/static/public/471/electrical+grid+stability+simulated+data.zip"
GRID_FILE = "Data_for_UCI_named.csv"
GRID_SHA256 = "7afc3154fed9cd65258b3403b60381fe6b0d832bf817a1ea4866395d05a84a83"
GRID_ROWS = 10_000
GRID_FEATURES = tuple(f"{name}{number}" for name in ("tau", "p", "g") for number in (1, 2, 3, 4))


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
    values = read_csv(path, (*GRID_FEATURES, "stab", "stabf"), 13, GRID_ROWS)
    check_rows(path, len(values), GRID_ROWS)
    # Only after the structure: "line 7 has 3 columns" says more than two checksums.
    verify_checksum(path, GRID_SHA256)
    return Table(np.ascontiguousarray(values[:, :12]), values[:, 12].copy(), GRID_FEATURES, path)
