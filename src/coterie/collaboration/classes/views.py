"""The rows as the members of the dictionary see them without a fold: lines, descriptions and coteries.

Rows that a fold trains on are described without themselves and the other rows of their own fold, so that a
model learns what descriptions of new rows are worth. Rows that the fold holds out are described by all rows
that it trains on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from coterie._arrays import Array
from coterie.collaboration.classes.lines import (
    SUREST,
    ClassRows,
    LogisticLines,
    effects_of,
    fit_lines,
    log_odds,
)
from coterie.collaboration.nested.describing import DIRECTIONS
from coterie.collaboration.nested.folds import Folds
from coterie.collaboration.nested.line import Ratios
from coterie.collaboration.nested.views import MOST_IDS

FoldSet = tuple[int, ...]


@dataclass(frozen=True)
class Directions:
    """Along which learners differ most: offsets by class, of shape (d, C), and slopes, of shape (e, C * p).

    A learner's departure from the common line has many numbers; its coordinates along few directions say
    most.
    """

    offsets: Array = field(repr=False)
    slopes: Array = field(repr=False)

    @classmethod
    def of(cls, own: Array) -> Directions:
        """Return the principal directions of learners' departures ``own`` (C, L, q) from a common line.

        The last of the q coefficients is the offset. Offsets of few classes need no directions: each is one.
        """
        n_columns, n_learners = own.shape[:2]
        offsets, slopes = own[:, :, -1].T, own[:, :, :-1].transpose(1, 0, 2).reshape(n_learners, -1)
        offset_directions = np.eye(n_columns) if n_columns <= DIRECTIONS else _principal(offsets)
        return cls(offset_directions, _principal(slopes))

    def numbers(self, own: Array) -> Array:
        """Return the learners' coordinates along the directions, (L, d + e): offsets first, then slopes.

        Models see these few numbers instead of all departures ``own`` (C, L, q).
        """
        slopes = own[:, :, :-1].transpose(1, 0, 2).reshape(own.shape[1], -1)
        return np.column_stack([own[:, :, -1].T @ self.offsets.T, slopes @ self.slopes.T])


def _principal(values: Array) -> Array:
    """Return the leading principal directions of the rows of ``values`` (L, k), at most `DIRECTIONS`.

    The sign of a direction is arbitrary: its largest entry is made positive, so that folds agree on it. Where
    all values are zero, learners do not differ, and there is no direction.
    """
    if not values.any():
        return np.zeros((0, values.shape[1]))
    directions: Array = np.linalg.svd(values - values.mean(axis=0), full_matrices=False)[2][:DIRECTIONS]
    largest_entries = directions[np.arange(len(directions)), np.abs(directions).argmax(axis=1)]
    return directions * np.where(largest_entries < 0, -1.0, 1.0)[:, None]


@dataclass(frozen=True)
class ClassView:
    """Everybody's rows without a fold.

    ``context`` (N, T) is what models see beside the predictors of a row: numbers, the chosen coterie, the
    id. ``line`` (N, C) are log-odds by the line of each row's learner, ``common`` by everybody's,
    ``coterie_line`` by the learner's inside its coterie, ``plain_coterie_line`` by that of its coterie.
    ``labels`` (L,) are the coteries.
    """

    training: Array
    validation: Array
    context: Array
    line: Array
    common: Array
    coterie_line: Array
    plain_coterie_line: Array
    labels: Array
    directions: Directions
    lines: LogisticLines
    coterie_lines: LogisticLines


@dataclass(frozen=True)
class ClassTable:
    """Everybody's rows, their folds, and the coteries that were chosen.

    ``labels`` (L,) are the chosen coteries; ``labels_without`` returns them made again without a fold, for
    those who shape them, (L,) with -1 for others. ``X`` (N, p) are the predictors as they came.
    """

    X: Array
    rows: ClassRows
    labels: Array
    folds: Folds
    n_coteries: int
    labels_without: Callable[[int], Array] = field(repr=False)

    @property
    def has_ids(self) -> bool:
        """Whether models see ids."""
        return self.rows.n_learners <= MOST_IDS

    def context(self, directions: Directions, own: Array, labels: Array) -> Array:
        """Return the context of learners: what models see beside the predictors, of shape (L, T).

        These are coordinates of their departures ``own`` (C, L, q) along the directions. Behind them stand
        the coterie, from ``labels`` (L,), if there are several, and the learner's position as its id.
        """
        parts = [directions.numbers(own)]
        if self.n_coteries > 1:
            parts.append(labels[:, None].astype(float))
        if self.has_ids:
            parts.append(np.arange(self.rows.n_learners, dtype=float)[:, None])
        return np.column_stack(parts)


class ClassViews:
    """Makes views; all rows decide how far learners depart from lines."""

    def __init__(self, table: ClassTable) -> None:
        """Fit lines on all rows: they decide how far learners depart from common lines."""
        self._table = table
        one_cluster = np.zeros(table.rows.n_learners, dtype=int)
        whole = fit_lines(table.rows, one_cluster)
        # Prior variances of departures, by whether lines are those of coteries; folds do not choose them
        # again.
        self._ratios: dict[bool, tuple[Ratios, ...]] = {False: whole.ratios}
        if table.n_coteries > 1:
            self._ratios[True] = fit_lines(table.rows, table.labels).ratios

    def _training_rows(self, without: FoldSet) -> Array:
        # The rows (N,) on which models may be fitted that must not see any of some folds.
        return np.asarray(self._table.folds.training[list(without)].all(axis=0))

    def _labels(self, fold: int | None, training: Array) -> Array:
        """Return the coteries (L,) of all learners, made again without ``fold``; None keeps the chosen ones.

        Learners that shaped no coterie join the one whose line has the smallest log loss on their
        rows that are marked in ``training`` (N,).
        """
        table = self._table
        if fold is None or table.n_coteries == 1:
            return table.labels
        labels = table.labels_without(fold)
        if (labels < 0).any():
            rows = table.rows.only(training & (labels >= 0)[table.rows.owner])
            placed_labels = np.maximum(labels, 0)
            lines = fit_lines(rows, placed_labels, self._ratios[True]).common
            unplaced_rows = np.flatnonzero(training & (labels < 0)[table.rows.owner])
            log_odds_of_clusters = np.clip(
                np.einsum("nq,ckq->knc", table.rows.Z[unplaced_rows], lines), -SUREST, SUREST
            )
            # The log loss of a row in one column of classes: log(1 + e^v) - y v at the log-odds v.
            losses = np.sum(
                np.logaddexp(0, log_odds_of_clusters) - table.rows.Y[unplaced_rows] * log_odds_of_clusters,
                axis=2,
            )
            owner = table.rows.owner[unplaced_rows]
            losses_of_learners = np.array(
                [np.bincount(owner, losses_of_cluster, len(labels)) for losses_of_cluster in losses]
            )
            labels = np.where(labels < 0, losses_of_learners.argmin(axis=0), labels)
        return labels

    def view(self, fold: int | None) -> ClassView:
        """Return all rows as models see them without ``fold``, None for no fold: lines and descriptions.

        A row that is trained on is described without its own fold (``inner_fold`` below), so that
        models learn how far descriptions hold for new rows. Held-out rows are described by all rows
        that are trained on.
        """
        table, without = self._table, () if fold is None else (fold,)
        rows, owner = table.rows, table.rows.owner
        training, one_cluster = self._training_rows(without), np.zeros(rows.n_learners, dtype=int)
        # Without a fold no row is held out: -2 is no fold's number, and -1 stands for rows that none holds
        # out.
        validation: Array = table.folds.held_out == (-2 if fold is None else fold)
        lines = fit_lines(rows.only(training), one_cluster, self._ratios[False])
        labels = self._labels(fold, training)
        directions = Directions.of(lines.own)
        context = table.context(directions, lines.own, labels)[owner]
        line = log_odds(rows.Z, lines.of_learners(one_cluster)[owner])
        common_line = np.clip(rows.Z @ lines.common[:, 0].T, -SUREST, SUREST)
        lines_of_coteries, coterie_line, plain_coterie_line = lines, line, common_line
        if table.n_coteries > 1:
            lines_of_coteries = fit_lines(rows.only(training), labels, self._ratios[True])
            coterie_line = log_odds(rows.Z, lines_of_coteries.of_learners(labels)[owner])
            plain_coterie_line = log_odds(
                rows.Z, lines_of_coteries.common[:, labels].transpose(1, 0, 2)[owner]
            )
        for inner_fold in range(len(table.folds)):
            fold_rows = np.flatnonzero(training & (table.folds.held_out == inner_fold))
            if inner_fold == fold or not len(fold_rows):
                continue
            inner_rows = rows.only(self._training_rows((*without, inner_fold)))
            departures = effects_of(inner_rows, lines.common, one_cluster, lines.ratios)
            context[fold_rows] = table.context(directions, departures, labels)[owner[fold_rows]]
            inner_lines = replace(lines, own=departures).of_learners(one_cluster)
            line[fold_rows] = log_odds(rows.Z[fold_rows], inner_lines[owner[fold_rows]])
            coterie_line[fold_rows] = line[fold_rows]
            if table.n_coteries > 1:
                departures = effects_of(
                    inner_rows, lines_of_coteries.common, labels, lines_of_coteries.ratios
                )
                inner_lines = replace(lines_of_coteries, own=departures).of_learners(labels)
                coterie_line[fold_rows] = log_odds(rows.Z[fold_rows], inner_lines[owner[fold_rows]])
        return ClassView(
            training=training,
            validation=validation,
            context=context,
            line=line,
            common=common_line,
            coterie_line=coterie_line,
            plain_coterie_line=plain_coterie_line,
            labels=labels,
            directions=directions,
            lines=lines,
            coterie_lines=lines_of_coteries,
        )
