"""The chosen coteries, made again without a fold.

A label that has seen a row must not be weighed on it. Where lines find the chosen coteries, lines find them
again without the fold, in a few rounds of fitting a line to each coterie and moving learners to the line that
describes them best. Elsewhere the learners' models are exchanged again; see `resolutions`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage

from coterie._arrays import Array
from coterie.collaboration.nested.describing import MOST_IN_TREE

# Rounds of fitting and moving; after that hardly anybody moves.
ROUNDS = 10
# Where labels agree by this much with those of lines (adjusted Rand index), lines find them.
FOUND = 0.7
# Rows of unit variance that the ridge of a coterie's line counts for.
RIDGE = 1.0


@dataclass(frozen=True)
class RowsInUnits:
    """All rows in common units: Z of shape (N, q), y, weights and positions of learners of shape (N,)."""

    Z: Array
    y: Array
    weights: Array
    owner: Array
    n_learners: int

    def line(self, rows: Array) -> Array:
        """Return the coefficients (q,) of a line through some rows."""
        Z, weighted = self.Z[rows], self.Z[rows] * self.weights[rows, None]
        penalty = np.full(Z.shape[1], RIDGE)
        penalty[-1] = 1e-6
        solution: Array = np.linalg.solve(weighted.T @ Z + np.diag(penalty), weighted.T @ self.y[rows])
        return solution

    def losses(self, lines: Array, rows: Array) -> Array:
        """Return what each learner's rows lose by each of K lines (K, q), summed, of shape (L, K)."""
        residuals = self.y[rows, None] - self.Z[rows] @ lines.T
        squares = self.weights[rows, None] * np.square(residuals)
        by_line = [np.bincount(self.owner[rows], column, self.n_learners) for column in squares.T]
        return np.array(by_line).T


def started(places: Array, count: int) -> Array:
    """Return first labels (L,) of learners by Ward's tree of where they stand (L, d)."""
    if len(places) <= count:
        return np.arange(len(places))
    subset = np.arange(len(places))
    if len(places) > MOST_IN_TREE:
        subset = np.linspace(0, len(places) - 1, MOST_IN_TREE).astype(int)
    labels = fcluster(linkage(places[subset], "ward"), count, "maxclust") - 1
    if len(subset) == len(places):
        return np.asarray(labels)
    centres = np.array([places[subset][labels == k].mean(axis=0) for k in range(int(labels.max()) + 1)])
    distances = np.stack([np.square(places - centre).sum(axis=1) for centre in centres], axis=1)
    return np.asarray(distances.argmin(axis=1))


def line_labels(table: RowsInUnits, rows: Array, shaping: Array, start: Array) -> tuple[Array, Array]:
    """Return the labels (L,) of everybody, -1 where there are no rows, and the lines (K, q) of the coteries.

    ``rows`` (N,) marks those that may be used and ``shaping`` (L,) the learners whose rows shape lines, with
    first labels ``start`` (L,).
    """
    labels, here = start.copy(), np.flatnonzero(rows)
    known = np.bincount(table.owner[here], minlength=table.n_learners) > 0
    lines = np.zeros((int(start.max()) + 1, table.Z.shape[1]))
    shapes = shaping[table.owner[here]]
    for _ in range(ROUNDS):
        for k in range(len(lines)):
            selected = here[shapes & (labels[table.owner[here]] == k)]
            if len(selected):
                lines[k] = table.line(selected)
        moved = table.losses(lines, here).argmin(axis=1)
        if np.array_equal(moved, labels):
            break
        labels = moved
    return np.where(known, labels, -1), lines
