"""Losses given out piece by piece, whatever they come from."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie.kernels.affine import AffineLosses


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


class AffineTiles:
    """Losses of affine models, computed when asked for and not kept.

    ``positions`` of shape (L,) are the learners in the order in which they are given out; None: as they are.
    """

    def __init__(self, losses: AffineLosses, positions: Array | None = None) -> None:
        self._losses = losses
        self._positions = np.arange(losses.n_learners) if positions is None else positions

    @property
    def n_learners(self) -> int:
        """Number of learners."""
        return len(self._positions)

    def tile(self, models: Any, learners: Any) -> Array:
        """Return the losses of some models on some learners, given by slices or positions."""
        return self._losses.among(self._positions[models], self._positions[learners])

    def features(self) -> tuple[Array, Array] | None:
        """Return arrays of shape (L, F) whose inner products are the losses; see `AffineLosses.features`."""
        return self._losses.features(self._positions)

    def take(self, positions: Array) -> AffineTiles:
        """Return the losses among some of the learners, in the order given."""
        return AffineTiles(self._losses, self._positions[positions])
