"""Folds in time order: what comes later is predicted from what came before."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from coterie._arrays import Array


@dataclass(frozen=True)
class Forecasts:
    """A splitter for rows in time order: blocks of the later half, each after all rows before it.

    The first half of the rows is never held out, so that every model has seen half of them at least.
    """

    n_blocks: int

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Array, Array]]:
        """Give out the rows that each fold trains on, and the block that it holds out."""
        n = len(X)
        ends = np.unique(np.linspace((n + 1) // 2, n, self.n_blocks + 1).astype(int))
        for first, last in pairwise(ends.tolist()):
            yield np.arange(first), np.arange(first, last)
