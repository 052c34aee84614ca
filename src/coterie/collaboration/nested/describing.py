"""Descriptions of learners: a few numbers that models of all rows see beside the row.

A model of everybody's rows that does not know whose row it sees predicts the average learner. Here a learner
is described by the level and the spread of its response, by how its line departs from everybody's, and by the
coteries that it belongs to at several resolutions. A description is made from moments of some of the
learner's rows. A model is trained on rows that are described without themselves, so that what it learns of
descriptions holds for new rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage

from coterie._arrays import Array
from coterie.collaboration.nested.line import MixedEffectsLine, Ratios, fit_line, own_effects
from coterie.collaboration.nested.sums import Sums

# Numbers of coteries, from coarse to fine; a description has the learner's coterie at each.
COUNTS = (2, 4, 8, 16)
# Principal directions of the learners' slopes that a description has coordinates for.
DIRECTIONS = 3
# Pseudo-rows of the average learner that shrink the mean and variance of a learner's response.
PSEUDO_ROWS = 3.0
# Levels count this much beside slopes when learners are compared.
LEVEL_WEIGHT = 0.5
# A tree of more learners than this costs more than it tells; the others join the nearest coterie.
MOST_IN_TREE = 2_000


@dataclass(frozen=True)
class Description:
    """What models see of L learners: numbers (L, T), coteries by resolution (L, R), own lines (L, q).

    The numbers are the shrunken mean, offset and spread, and coordinates of the slopes.
    """

    numbers: Array
    coteries: Array
    own: Array

    @property
    def levels(self) -> Array:
        """The shrunken mean of each learner's response."""
        levels: Array = self.numbers[:, 0]
        return levels


@dataclass(frozen=True)
class Describer:
    """How learners are described by sums of squares and products of their rows, learnt from many learners.

    ``common`` (q,) is everybody's line and ``ratios`` say how far learners depart from it. ``level`` and
    ``variance`` are those of the average learner's response. ``directions`` (d, q - 1) are principal
    directions of slopes.

    ``shift`` and ``scale`` bring levels and slopes to one size, and ``centres`` has the centres of
    coteries, (k, q), for every resolution.
    """

    common: Array
    ratios: Ratios
    level: float
    variance: float
    directions: Array = field(repr=False)
    shift: float
    scale: Array
    centres: tuple[Array, ...] = field(repr=False)

    @classmethod
    def of(cls, sums: Sums, ratios: Ratios) -> tuple[Describer, MixedEffectsLine]:
        """Learn from L learners' sums of squares and products how to describe any learner.

        Return also the mixed-effects line: everybody's line, and how each learner departs from it.
        The describer needs it for the principal directions of slopes and the centres of coteries.
        """
        mixed_line = fit_line(sums, ratios)
        n_rows = max(float(sums.counts.sum()), 1.0)
        mean_response = float(sums.products[:, -1].sum()) / n_rows
        levels = _levels(sums, mean_response)
        squared_deviations = np.maximum(
            sums.squares - 2 * sums.products[:, -1] * levels + sums.counts * levels**2, 0.0
        )
        slopes = mixed_line.own[:, :-1]
        directions = np.zeros((0, slopes.shape[1]))
        if slopes.any():
            directions = np.linalg.svd(slopes - slopes.mean(axis=0), full_matrices=False)[2][:DIRECTIONS]
            # The sign of a direction is arbitrary: its largest part is positive.
            largest_entries = directions[np.arange(len(directions)), np.abs(directions).argmax(axis=1)]
            directions = directions * np.where(largest_entries < 0, -1.0, 1.0)[:, None]
        standard_deviations = float(levels.std()), float(slopes.std()) if slopes.any() else 0.0
        scale = np.array(
            [
                LEVEL_WEIGHT / standard_deviations[0] if standard_deviations[0] > 0 else 0.0,
                1 / standard_deviations[1] if standard_deviations[1] > 0 else 0.0,
            ]
        )
        describer = cls(
            common=mixed_line.common,
            ratios=ratios,
            level=mean_response,
            variance=float(squared_deviations.sum()) / n_rows,
            directions=directions,
            shift=float(levels.mean()),
            scale=scale,
            centres=(),
        )
        positions = describer.places(levels, mixed_line.own)
        return cls(**{**vars(describer), "centres": _centres(positions)}), mixed_line

    def places(self, levels: Array, own: Array) -> Array:
        """Return the points (L, q) by which learners are compared: their scaled levels and slopes.

        ``levels`` (L,) are shrunken mean responses and ``own`` (L, q) departures from everybody's
        line.
        """
        return np.column_stack([(levels - self.shift) * self.scale[0], own[:, :-1] * self.scale[1]])

    def describe(self, sums: Sums) -> Description:
        """Describe L learners by the sums of squares and products of some of their rows.

        Trees see this description beside a row: level, spread, slopes along few directions, and coteries at
        several resolutions. All is shrunken towards the average learner, so that a learner without rows is
        described as the average one.
        """
        own = own_effects(sums, self.common, self.ratios)
        levels = _levels(sums, self.level)
        squared_deviations = np.maximum(
            sums.squares - 2 * sums.products[:, -1] * levels + sums.counts * levels**2, 0.0
        )
        spreads = np.sqrt((squared_deviations + PSEUDO_ROWS * self.variance) / (sums.counts + PSEUDO_ROWS))
        numbers = np.column_stack([levels, own[:, -1], spreads, own[:, :-1] @ self.directions.T])
        positions = self.places(levels, own)
        coteries = np.zeros((len(positions), len(self.centres)))
        for resolution, centres in enumerate(self.centres):
            coteries[:, resolution] = _nearest(positions, centres)
        return Description(numbers, coteries, own)


def _levels(sums: Sums, level: float) -> Array:
    """Return mean responses (L,), shrunken to the mean ``level`` of all by `PSEUDO_ROWS` rows."""
    levels: Array = (sums.products[:, -1] + PSEUDO_ROWS * level) / (sums.counts + PSEUDO_ROWS)
    return levels


def _nearest(positions: Array, centres: Array) -> Array:
    """Return the index of the centre (k, q) nearest to each learner's position (L, q).

    Distances are sums of squared differences, not expanded into products, so that ties are exact.
    """
    distances = np.stack([np.square(positions - centre).sum(axis=1) for centre in centres], axis=1)
    nearest: Array = distances.argmin(axis=1)
    return nearest


def _centres(positions: Array) -> tuple[Array, ...]:
    """Return the centres of coteries, (k, q) for each number k of `COUNTS`.

    Ward's hierarchical clustering of the learners' positions (L, q) is cut at each number. There are at least
    two learners for each coterie; numbers that are too large for that are left out. Of very many learners a
    subset is clustered, as the tree takes memory by their square.
    """
    counts = [count for count in COUNTS if 2 * count <= len(positions)]
    if not counts:
        return ()
    if len(positions) > MOST_IN_TREE:
        positions = positions[np.linspace(0, len(positions) - 1, MOST_IN_TREE).astype(int)]
    tree = linkage(positions, "ward")
    labellings = [fcluster(tree, count, "maxclust") for count in counts]
    return tuple(
        np.array([positions[labels == k].mean(axis=0) for k in np.unique(labels)]) for labels in labellings
    )
