"""Similarities of an exchange, made tile by tile when they are needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie.kernels.matrix_free import Similarity, spans
from coterie.records import Exchange


@dataclass(frozen=True)
class ExchangeSimilarity(Similarity):
    """The matrix S = exp(-a v) of an exchange, which need not be stored.

    ``numpy.asarray`` makes the whole of it. A tile has ``block`` learners on a side.
    """

    exchange: Exchange
    scale: float
    block: int = 1024

    @property
    def shape(self) -> tuple[int, int]:
        """Number of learners, twice."""
        n = len(self.exchange.learner_ids)
        return n, n

    def tile(self, rows: Any, columns: Any) -> Array:
        """Return the similarities between some learners and others, given by slices or positions.

        A learner whose losses are not finite has the similarity zero with others and one with itself.
        """
        with np.errstate(invalid="ignore", over="ignore"):
            tile = self.exchange.dissimilarity_tile(rows, columns)
            tile *= -self.scale
            np.exp(tile, out=tile)
        is_isolated = self.exchange.isolated
        if is_isolated.any():
            all_learners = np.arange(len(is_isolated))
            tile[is_isolated[rows][:, None] | is_isolated[columns]] = 0.0
            tile[all_learners[rows][:, None] == all_learners[columns]] = 1.0
        return tile

    def take(self, positions: Array) -> ExchangeSimilarity:
        """Return the similarities among some of the learners, in the order given."""
        return ExchangeSimilarity(self.exchange.take(positions), self.scale, self.block)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return the whole matrix (L, L), for ``numpy.asarray``.

        The matrix is symmetric, so that only tiles on and above the diagonal are computed.
        """
        if copy is False:
            raise ValueError("The similarities are not stored: making them an array takes a copy.")
        similarity = np.empty(self.shape, dtype=dtype)
        runs = list(spans(self.shape[0], self.block))
        for index, rows in enumerate(runs):
            for columns in runs[index:]:
                tile = self.tile(rows, columns)
                similarity[rows, columns] = tile
                similarity[columns, rows] = tile.T
        return similarity
