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
        """Yield, for each fold, the positions of its training rows and of the block that it holds out.

        X has n rows in time order; only their number matters. Each fold trains on all rows before its block.
        There are fewer folds than ``n_blocks`` where rows are too few.
        """
        n = len(X)
        block_borders = np.unique(np.linspace((n + 1) // 2, n, self.n_blocks + 1).astype(int))
        for block_start, block_end in pairwise(block_borders.tolist()):
            yield np.arange(block_start), np.arange(block_start, block_end)
