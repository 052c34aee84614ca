"""Whether clusters are the true ones: the paper's accuracy, up to the clusters' names."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def is_exact(labels: Array, truth: Array) -> bool:
    """Say whether the number of clusters and every learner's label are right, up to a permutation.

    Parameters
    ----------
    labels : ndarray of shape (L,)
        Found.
    truth : ndarray of shape (L,)
        True.

    Returns
    -------
    bool
        True where the two are one partition under two sets of names.

    Examples
    --------
    >>> import numpy as np
    >>> from reproductions.harness.recovery import is_exact
    >>> is_exact(np.array([0, 0, 1]), np.array([1, 1, 0]))
    True
    """
    pairs = {*zip(labels.tolist(), truth.tolist(), strict=True)}
    return len(pairs) == len(np.unique(labels)) == len(np.unique(truth))
