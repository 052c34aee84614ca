"""How many rows a learner needs to take part in the clustering: one rule for fits and for sites."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Two rows to fit and two to score.
FEWEST_ROWS = 4


def enough_rows(n_features: int) -> int:
    """Return the number of rows with which a learner's own model tells something: 2p + 5."""
    return 2 * n_features + 5


def rows_needed(sizes: NDArray[Any], n_features: int, min_rows: Any = "auto") -> int:
    """Return the rows that a learner needs. ``"auto"``: 2p + 5 if half of the learners have that, else 4.

    ``sizes`` (L,) are the learners' rows. Where most have few, a higher bar would leave nobody to cluster.
    """
    if min_rows != "auto":
        return int(min_rows)
    enough = enough_rows(n_features)
    return enough if np.mean(sizes >= enough) >= 0.5 else FEWEST_ROWS
