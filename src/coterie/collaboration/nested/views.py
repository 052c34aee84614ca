"""The rows as the members of the dictionary see them without a fold: described, with lines, with labels.

Rows that a fold trains on are described without themselves and the other rows of their own fold, so that a
model learns what descriptions of new rows are worth. Rows that the fold holds out are described by all rows
that it trains on.

A label that has seen a row must not be weighed on it, so the chosen coteries are made again, too. Where lines
find them, lines find them again without the fold, in a few rounds of fitting a line to each coterie and
moving learners to the line that describes them best. Elsewhere the learners' models are exchanged again; see
`resolutions`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.metrics import adjusted_rand_score

from coterie._arrays import Array
from coterie.collaboration.nested.describing import MOST_IN_TREE, Describer, Description
from coterie.collaboration.nested.folds import Folds
from coterie.collaboration.nested.line import MixedEffectsLine, Ratios, fit_line, likely_ratios
from coterie.collaboration.nested.sums import FoldSums, Units
from coterie.rows.learners import Learners

# Rounds of fitting and moving; after that hardly anybody moves.
ROUNDS = 10
# Where labels agree by this much with those of lines (adjusted Rand index), lines find them.
FOUND = 0.7
# Rows of unit variance that the ridge of a coterie's line counts for.
RIDGE = 1.0
# Boosted trees take no category with more levels.
MOST_IDS = 255


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


@dataclass(frozen=True)
class FoldView:
    """Everybody's rows without a fold.

    ``context`` (N, T) is what models see beside the predictors of a row: numbers, coteries at several
    resolutions, the chosen coterie, the id. ``line`` (N,) has the line of each row's learner, ``common_line``
    everybody's, ``coterie_line`` the line of the learner inside its coterie and ``plain_coterie_line`` that
    of its coterie; ``levels`` (N,) are the learners' levels. All are in common units. ``description``,
    ``mixed``, ``plain_lines`` and ``coterie_lines`` (K, q) with ``coterie_own`` (L, q) are what they are made
    of.
    """

    training: Array
    validation: Array
    context: Array
    line: Array
    common_line: Array
    coterie_line: Array
    plain_coterie_line: Array
    levels: Array
    describer: Describer
    description: Description
    mixed: MixedEffectsLine
    labels: Array
    plain_lines: Array
    coterie_lines: Array
    coterie_own: Array


@dataclass(frozen=True)
class PooledTable:
    """Everybody's rows in common units, their folds, and the coteries that were chosen.

    ``labels`` (L,) are the chosen coteries, ``shaping`` (L,) marks the learners who shaped them.
    ``labels_without`` returns labels of the latter, (S,), without a fold where lines do not find them.
    """

    learners: Learners
    shaping: Array
    labels: Array
    folds: Folds
    units: Units
    rows: RowsInUnits
    sums: FoldSums
    ratios: Ratios
    coterie_ratios: Ratios
    by_lines: bool
    labels_without: Callable[[int], Array] = field(repr=False)

    @classmethod
    def of(
        cls,
        learners: Learners,
        shaping: Array,
        labels: Array,
        folds: Folds,
        labels_without: Callable[[int], Array],
        *,
        levels: bool = True,
    ) -> PooledTable:
        """Prepare the rows; without ``levels``, learners do not depart from lines by an offset."""
        units = Units.of(learners.X, learners.scalar_y)
        Z, y = units.rows(learners.X), units.response(learners.scalar_y)
        weights = np.ones(len(y)) if learners.weights is None else learners.weights
        rows = RowsInUnits(Z, y, weights, learners.owner, len(learners))
        sums = FoldSums(Z, y, learners, folds.training)
        whole = sums.within()
        table = cls(
            learners,
            shaping,
            labels,
            folds,
            units,
            rows,
            sums,
            likely_ratios([whole], offsets=levels),
            Ratios(),
            True,
            labels_without,
        )
        if table.n_coteries == 1:
            return table
        everything = np.ones(len(y), dtype=bool)
        describer, line = Describer.of(whole, table.ratios)
        result = line_labels(rows, everything, shaping, table.first_labels((), describer, line))[0]
        alike = adjusted_rand_score(labels[shaping], result[shaping]) >= FOUND
        parts = [whole.take(labels == k, sums.total((), labels == k)) for k in np.unique(labels)]
        return replace(table, coterie_ratios=likely_ratios(parts, offsets=levels), by_lines=bool(alike))

    @property
    def n_coteries(self) -> int:
        """Number of coteries that were chosen."""
        return int(self.labels.max()) + 1

    @property
    def has_ids(self) -> bool:
        """Whether models see the id: they take no more than 255."""
        return len(self.learners) <= MOST_IDS

    def first_labels(self, without: tuple[int, ...], describer: Describer, line: MixedEffectsLine) -> Array:
        """Return first labels (L,) of the learners who shape coteries, by the rows without some folds."""
        indices = describer.places(describer.describe(self.sums.within(without)).levels, line.own)
        start = np.zeros(len(self.learners), dtype=int)
        start[self.shaping] = started(indices[self.shaping], self.n_coteries)
        return start

    def _labels(
        self, fold: int | None, training: Array, describer: Describer, line: MixedEffectsLine
    ) -> tuple[Array, Array]:
        """Return labels (L,) and lines (K, q) of the coteries, by the rows of ``training`` only."""
        if self.n_coteries == 1:
            return np.zeros(len(self.learners), dtype=int), line.common[None]
        labels = self.labels
        if fold is not None and self.by_lines:
            return line_labels(self.rows, training, self.shaping, self.first_labels((fold,), describer, line))
        if fold is not None:
            labels = self.labels.copy()
            labels[self.shaping] = self.labels_without(fold)
        used = np.flatnonzero(training)
        count = max(int(labels.max()) + 1, self.n_coteries)
        lines = np.tile(line.common, (count, 1))
        for k in range(count):
            selected = used[labels[self.rows.owner[used]] == k]
            if len(selected):
                lines[k] = self.rows.line(selected)
        if fold is not None:
            # Who shaped no coterie is placed by its own rows.
            placed = self.rows.losses(lines, used).argmin(axis=1)
            known = np.bincount(self.rows.owner[used], minlength=len(labels)) > 0
            labels = np.where(self.shaping, labels, np.where(known, placed, -1))
        return labels, lines

    def context(self, description: Description, labels: Array) -> Array:
        """Return the context of learners: what models see beside the predictors, of shape (L, T)."""
        parts = [description.numbers, description.coteries]
        if self.n_coteries > 1:
            parts.append(np.where(labels < 0, np.nan, labels)[:, None])
        if self.has_ids:
            parts.append(np.arange(len(self.learners), dtype=float)[:, None])
        return np.column_stack(parts)

    def view(self, fold: int | None) -> FoldView:
        """Return the rows without a fold; None: all rows are trained on."""
        without = () if fold is None else (fold,)
        training = self.sums.rows(without)
        validation = self.folds.held_out == (-2 if fold is None else fold)
        sums, owner = self.sums.within(without), self.rows.owner
        describer, mixed = Describer.of(sums, self.ratios)
        description = describer.describe(sums)
        labels, lines = self._labels(fold, training, describer, mixed)
        context = self.context(description, labels)[owner]
        line, levels = mixed.values(self.rows.Z, owner), description.levels[owner].copy()
        for other in range(len(self.folds)):
            rows = np.flatnonzero(training & (self.folds.held_out == other))
            if other == fold or not len(rows):
                continue
            inner = (*without, other)
            described, selected = describer.describe(self.sums.within(inner)), owner[rows]
            inner_labels = labels
            if self.by_lines and self.n_coteries > 1:
                here = np.flatnonzero(self.sums.rows(inner))
                placed = self.rows.losses(lines, here).argmin(axis=1)
                known = np.bincount(owner[here], minlength=len(labels)) > 0
                inner_labels = np.where(known, placed, -1)
            context[rows] = self.context(described, inner_labels)[selected]
            line[rows] = MixedEffectsLine(mixed.common, described.own).values(self.rows.Z[rows], selected)
            levels[rows] = described.levels[selected]
        common = self.rows.Z @ mixed.common
        plain, own = common, np.zeros_like(mixed.own)
        coterie_line, plain_lines = line, lines.copy()
        if self.n_coteries > 1:
            placed_labels = np.where(labels < 0, 0, labels)
            line_of_learner = np.where((labels < 0)[:, None], mixed.common, lines[placed_labels])
            plain = np.einsum("nq,nq->n", self.rows.Z, line_of_learner[owner])
            for k in np.unique(placed_labels):
                members = placed_labels == k
                part = fit_line(sums.take(members, self.sums.total(without, members)), self.coterie_ratios)
                lines[k], own[members] = part.common, part.own
            coterie_line = np.einsum("nq,nq->n", self.rows.Z, (lines[placed_labels] + own)[owner])
        return FoldView(
            training,
            validation,
            context,
            line,
            common,
            coterie_line,
            plain,
            levels,
            describer,
            description,
            mixed,
            labels,
            plain_lines,
            lines,
            own,
        )
