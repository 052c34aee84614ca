"""Losses given out piece by piece, whatever they come from."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie._arrays import Array


class DenseTiles:
    """Losses that are there as an array of shape (L, L); row i is model i on everybody."""

    def __init__(self, losses: Array) -> None:
        self._losses = losses

    @property
    def n_learners(self) -> int:
        """Number of learners."""
        return len(self._losses)

    def tile(self, models: Any, learners: Any) -> Array:
        """Return the losses of some models on some learners, given by slices or positions."""
        tile: Array = self._losses[models][:, learners]
        return tile

    def take(self, positions: Array) -> DenseTiles:
        """Return the losses among some of the learners, in the order given."""
        return DenseTiles(self._losses[np.ix_(positions, positions)])
