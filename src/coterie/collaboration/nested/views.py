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
        """Return the coefficients (q,) of a weighted ridge regression on some rows, the intercept last."""
        Z, weighted_Z = self.Z[rows], self.Z[rows] * self.weights[rows, None]
        # The intercept is hardly penalised: only so much that the system can be solved.
        penalty = np.full(Z.shape[1], RIDGE)
        penalty[-1] = 1e-6
        coefficients: Array = np.linalg.solve(
            weighted_Z.T @ Z + np.diag(penalty), weighted_Z.T @ self.y[rows]
        )
        return coefficients

    def losses(self, lines: Array, rows: Array) -> Array:
        """Return the summed squared error (L, K) of each learner's rows under each of K lines (K, q).

        Only the positions ``rows`` count; a learner without any has zeros.
        """
        residuals = self.y[rows, None] - self.Z[rows] @ lines.T
        squares = self.weights[rows, None] * np.square(residuals)
        losses_by_line = [np.bincount(self.owner[rows], column, self.n_learners) for column in squares.T]
        return np.array(losses_by_line).T


def started(places: Array, count: int) -> Array:
    """Return first labels (L,) for ``count`` clusters, by Ward's clustering of the learners' points (L, d).

    With more learners than the tree can take, a subset is clustered and the others join the nearest
    centre.
    """
    if len(places) <= count:
        return np.arange(len(places))
    in_tree = np.arange(len(places))
    if len(places) > MOST_IN_TREE:
        in_tree = np.linspace(0, len(places) - 1, MOST_IN_TREE).astype(int)
    labels = fcluster(linkage(places[in_tree], "ward"), count, "maxclust") - 1
    if len(in_tree) == len(places):
        return np.asarray(labels)
    centres = np.array([places[in_tree][labels == k].mean(axis=0) for k in range(int(labels.max()) + 1)])
    distances = np.stack([np.square(places - centre).sum(axis=1) for centre in centres], axis=1)
    return np.asarray(distances.argmin(axis=1))


def line_labels(table: RowsInUnits, rows: Array, shaping: Array, start: Array) -> tuple[Array, Array]:
    """Cluster learners by lines: return labels (L,), -1 for who has no rows, and the coteries' lines (K, q).

    ``rows`` (N,) marks the rows that may be used, ``shaping`` (L,) the learners to whose rows lines are
    fitted, and ``start`` (L,) has the first labels. As in k-means, a line is fitted to each coterie, then
    each learner moves to the line with the smallest error.
    """
    labels, used_rows = start.copy(), np.flatnonzero(rows)
    has_rows = np.bincount(table.owner[used_rows], minlength=table.n_learners) > 0
    lines = np.zeros((int(start.max()) + 1, table.Z.shape[1]))
    row_shapes_line = shaping[table.owner[used_rows]]
    for _ in range(ROUNDS):
        for coterie in range(len(lines)):
            coterie_rows = used_rows[row_shapes_line & (labels[table.owner[used_rows]] == coterie)]
            if len(coterie_rows):
                lines[coterie] = table.line(coterie_rows)
        moved = table.losses(lines, used_rows).argmin(axis=1)
        if np.array_equal(moved, labels):
            break
        labels = moved
    return np.where(has_rows, labels, -1), lines


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
        """Put all learners' rows in common units and sum them; find out whether lines explain the coteries.

        ``labels`` (L,) are the chosen coteries, ``shaping`` (L,) marks the learners who shaped them.
        If clustering by lines finds nearly the same coteries, it also makes them again without a
        fold; else ``labels_without`` does, at a higher cost. If ``levels`` is false, learners depart
        from lines by slopes only.
        """
        units = Units.of(learners.X, learners.scalar_y)
        Z, y = units.rows(learners.X), units.response(learners.scalar_y)
        weights = np.ones(len(y)) if learners.weights is None else learners.weights
        rows = RowsInUnits(Z=Z, y=y, weights=weights, owner=learners.owner, n_learners=len(learners))
        sums = FoldSums(Z, y, learners, folds.training)
        sums_of_all_rows = sums.within()
        table = cls(
            learners=learners,
            shaping=shaping,
            labels=labels,
            folds=folds,
            units=units,
            rows=rows,
            sums=sums,
            ratios=likely_ratios([sums_of_all_rows], offsets=levels),
            coterie_ratios=Ratios(),
            by_lines=True,
            labels_without=labels_without,
        )
        if table.n_coteries == 1:
            return table
        all_rows = np.ones(len(y), dtype=bool)
        describer, mixed_line = Describer.of(sums_of_all_rows, table.ratios)
        by_lines = line_labels(rows, all_rows, shaping, table.first_labels((), describer, mixed_line))[0]
        agrees_with_lines = adjusted_rand_score(labels[shaping], by_lines[shaping]) >= FOUND
        sums_of_coteries = [
            sums_of_all_rows.take(labels == coterie, sums.total((), labels == coterie))
            for coterie in np.unique(labels)
        ]
        return replace(
            table,
            coterie_ratios=likely_ratios(sums_of_coteries, offsets=levels),
            by_lines=bool(agrees_with_lines),
        )

    @property
    def n_coteries(self) -> int:
        """Number of coteries that were chosen."""
        return int(self.labels.max()) + 1

    @property
    def has_ids(self) -> bool:
        """Whether models see the id: they take no more than 255."""
        return len(self.learners) <= MOST_IDS

    def first_labels(self, without: tuple[int, ...], describer: Describer, line: MixedEffectsLine) -> Array:
        """Return first labels (L,) for clustering by lines; learners that shape no coterie have 0.

        Only the rows that the folds ``without`` train on count.
        """
        points = describer.places(describer.describe(self.sums.within(without)).levels, line.own)
        labels = np.zeros(len(self.learners), dtype=int)
        labels[self.shaping] = started(points[self.shaping], self.n_coteries)
        return labels

    def _labels(
        self, fold: int | None, training: Array, describer: Describer, line: MixedEffectsLine
    ) -> tuple[Array, Array]:
        """Return labels (L,) and lines (K, q) of the coteries, by the rows (N,) marked in ``training`` only.

        A label that has seen a held-out row must not be judged on it, so coteries are made again
        without ``fold``. None keeps the chosen ones. Learners that shaped no coterie join the line
        nearest to their rows, -1 without rows.
        """
        if self.n_coteries == 1:
            return np.zeros(len(self.learners), dtype=int), line.common[None]
        labels = self.labels
        if fold is not None and self.by_lines:
            return line_labels(self.rows, training, self.shaping, self.first_labels((fold,), describer, line))
        if fold is not None:
            labels = self.labels.copy()
            labels[self.shaping] = self.labels_without(fold)
        used_rows = np.flatnonzero(training)
        n_lines = max(int(labels.max()) + 1, self.n_coteries)
        lines = np.tile(line.common, (n_lines, 1))
        for coterie in range(n_lines):
            coterie_rows = used_rows[labels[self.rows.owner[used_rows]] == coterie]
            if len(coterie_rows):
                lines[coterie] = self.rows.line(coterie_rows)
        if fold is not None:
            # Who shaped no coterie is placed by its own rows.
            nearest_line = self.rows.losses(lines, used_rows).argmin(axis=1)
            has_rows = np.bincount(self.rows.owner[used_rows], minlength=len(labels)) > 0
            labels = np.where(self.shaping, labels, np.where(has_rows, nearest_line, -1))
        return labels, lines

    def context(self, description: Description, labels: Array) -> Array:
        """Return what models see of each learner beside the predictors, of shape (L, T).

        The columns are the description's numbers and coteries, the chosen coterie if there are
        several (NaN where unknown), and the id if there are few enough.
        """
        parts = [description.numbers, description.coteries]
        if self.n_coteries > 1:
            parts.append(np.where(labels < 0, np.nan, labels)[:, None])
        if self.has_ids:
            parts.append(np.arange(len(self.learners), dtype=float)[:, None])
        return np.column_stack(parts)

    def view(self, fold: int | None) -> FoldView:
        """Return all rows as models see them without ``fold``, None for no fold: lines, levels, descriptions.

        A row that is trained on is described without its own fold (``inner_fold`` below), so that
        models learn how far descriptions hold for new rows. Held-out rows are described by all rows
        that are trained on.
        """
        without = () if fold is None else (fold,)
        training = self.sums.rows(without)
        # No row has the fold -2: nothing is held out.
        validation = self.folds.held_out == (-2 if fold is None else fold)
        sums, owner = self.sums.within(without), self.rows.owner
        describer, mixed_line = Describer.of(sums, self.ratios)
        description = describer.describe(sums)
        labels, lines = self._labels(fold, training, describer, mixed_line)
        context = self.context(description, labels)[owner]
        line, levels = mixed_line.values(self.rows.Z, owner), description.levels[owner].copy()
        for inner_fold in range(len(self.folds)):
            fold_rows = np.flatnonzero(training & (self.folds.held_out == inner_fold))
            if inner_fold == fold or not len(fold_rows):
                continue
            left_out_folds = (*without, inner_fold)
            inner_description, owners = describer.describe(self.sums.within(left_out_folds)), owner[fold_rows]
            inner_labels = labels
            if self.by_lines and self.n_coteries > 1:
                inner_rows = np.flatnonzero(self.sums.rows(left_out_folds))
                nearest_line = self.rows.losses(lines, inner_rows).argmin(axis=1)
                has_rows = np.bincount(owner[inner_rows], minlength=len(labels)) > 0
                inner_labels = np.where(has_rows, nearest_line, -1)
            context[fold_rows] = self.context(inner_description, inner_labels)[owners]
            line[fold_rows] = MixedEffectsLine(mixed_line.common, inner_description.own).values(
                self.rows.Z[fold_rows], owners
            )
            levels[fold_rows] = inner_description.levels[owners]
        common_line = self.rows.Z @ mixed_line.common
        plain_coterie_line, coterie_own = common_line, np.zeros_like(mixed_line.own)
        coterie_line, plain_lines = line, lines.copy()
        if self.n_coteries > 1:
            placed_labels = np.where(labels < 0, 0, labels)
            line_of_learner = np.where((labels < 0)[:, None], mixed_line.common, lines[placed_labels])
            plain_coterie_line = np.einsum("nq,nq->n", self.rows.Z, line_of_learner[owner])
            for coterie in np.unique(placed_labels):
                members = placed_labels == coterie
                coterie_fit = fit_line(
                    sums.take(members, self.sums.total(without, members)), self.coterie_ratios
                )
                lines[coterie], coterie_own[members] = coterie_fit.common, coterie_fit.own
            coterie_line = np.einsum("nq,nq->n", self.rows.Z, (lines[placed_labels] + coterie_own)[owner])
        return FoldView(
            training=training,
            validation=validation,
            context=context,
            line=line,
            common_line=common_line,
            coterie_line=coterie_line,
            plain_coterie_line=plain_coterie_line,
            levels=levels,
            describer=describer,
            description=description,
            mixed=mixed_line,
            labels=labels,
            plain_lines=plain_lines,
            coterie_lines=lines,
            coterie_own=coterie_own,
        )
