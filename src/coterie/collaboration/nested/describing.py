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

# Numbers of coteries that a description names.
COUNTS = (2, 4, 8, 16)
# Directions in which slopes depart from everybody's.
DIRECTIONS = 3
# Rows of the average learner that are added where level and spread are measured.
PSEUDO_ROWS = 3.0
# Levels count this much beside slopes when learners are compared.
LEVEL_WEIGHT = 0.5
# A tree of more learners than this costs more than it tells; the others join the nearest coterie.
MOST_IN_TREE = 2_000


@dataclass(frozen=True)
class Description:
    """What is known of L learners: numbers (L, T), coteries by resolution (L, R), own lines (L, q)."""

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
    """How learners are described, learnt from the moments of many.

    ``common`` (q,) is everybody's line and ``ratios`` say how far learners depart from it; ``level`` and
    ``variance`` are those of the average learner; ``directions`` (d, q - 1) are those of slopes; ``shift``
    and ``scale`` bring levels and slopes to one size, and ``centres`` has the centres of coteries, of shape
    (k, q), for every resolution.
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
        """Learn from learners' moments; return also everybody's line and how each departs from it."""
        line = fit_line(sums, ratios)
        rows = max(float(sums.counts.sum()), 1.0)
        level = float(sums.products[:, -1].sum()) / rows
        levels = _levels(sums, level)
        within = np.maximum(sums.squares - 2 * sums.products[:, -1] * levels + sums.counts * levels**2, 0.0)
        slopes = line.own[:, :-1]
        directions = np.zeros((0, slopes.shape[1]))
        if slopes.any():
            directions = np.linalg.svd(slopes - slopes.mean(axis=0), full_matrices=False)[2][:DIRECTIONS]
            # The sign of a direction is arbitrary: its largest part is positive.
            largest = directions[np.arange(len(directions)), np.abs(directions).argmax(axis=1)]
            directions = directions * np.where(largest < 0, -1.0, 1.0)[:, None]
        spread = float(levels.std()), float(slopes.std()) if slopes.any() else 0.0
        scale = np.array(
            [LEVEL_WEIGHT / spread[0] if spread[0] > 0 else 0.0, 1 / spread[1] if spread[1] > 0 else 0.0]
        )
        describer = cls(
            line.common,
            ratios,
            level,
            float(within.sum()) / rows,
            directions,
            float(levels.mean()),
            scale,
            (),
        )
        indices = describer.places(levels, line.own)
        return cls(**{**vars(describer), "centres": _centres(indices)}), line

    def places(self, levels: Array, own: Array) -> Array:
        """Return where learners stand when they are compared, of shape (L, q)."""
        return np.column_stack([(levels - self.shift) * self.scale[0], own[:, :-1] * self.scale[1]])

    def describe(self, sums: Sums) -> Description:
        """Describe learners by the moments of some of their rows; those without rows are the average one."""
        own = own_effects(sums, self.common, self.ratios)
        levels = _levels(sums, self.level)
        within = np.maximum(sums.squares - 2 * sums.products[:, -1] * levels + sums.counts * levels**2, 0.0)
        spreads = np.sqrt((within + PSEUDO_ROWS * self.variance) / (sums.counts + PSEUDO_ROWS))
        numbers = np.column_stack([levels, own[:, -1], spreads, own[:, :-1] @ self.directions.T])
        indices = self.places(levels, own)
        coteries = np.zeros((len(indices), len(self.centres)))
        for resolution, centres in enumerate(self.centres):
            coteries[:, resolution] = _nearest(indices, centres)
        return Description(numbers, coteries, own)


def _levels(sums: Sums, level: float) -> Array:
    """Return learners' mean responses (L,), shrunken to the level of all."""
    levels: Array = (sums.products[:, -1] + PSEUDO_ROWS * level) / (sums.counts + PSEUDO_ROWS)
    return levels


def _nearest(places: Array, centres: Array) -> Array:
    """Return the nearest centre of each learner; differences, not products, so that ties are exact."""
    distances = np.stack([np.square(places - centre).sum(axis=1) for centre in centres], axis=1)
    nearest: Array = distances.argmin(axis=1)
    return nearest


def _centres(places: Array) -> tuple[Array, ...]:
    """Return the centres of coteries at every resolution, by Ward's tree of the learners."""
    counts = [count for count in COUNTS if 2 * count <= len(places)]
    if not counts:
        return ()
    if len(places) > MOST_IN_TREE:
        places = places[np.linspace(0, len(places) - 1, MOST_IN_TREE).astype(int)]
    tree = linkage(places, "ward")
    labels = [fcluster(tree, count, "maxclust") for count in counts]
    return tuple(np.array([places[own == k].mean(axis=0) for k in np.unique(own)]) for own in labels)
