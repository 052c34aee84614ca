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
    """Along which learners differ: offsets by class, of shape (d, C), and slopes, of shape (e, C * p)."""

    offsets: Array = field(repr=False)
    slopes: Array = field(repr=False)

    @classmethod
    def of(cls, own: Array) -> Directions:
        """Return the directions of learners' own lines (C, L, q)."""
        n_columns, n = own.shape[:2]
        offsets, slopes = own[:, :, -1].T, own[:, :, :-1].transpose(1, 0, 2).reshape(n, -1)
        first = np.eye(n_columns) if n_columns <= DIRECTIONS else _principal(offsets)
        return cls(first, _principal(slopes))

    def numbers(self, own: Array) -> Array:
        """Return where learners stand along them, of shape (L, d + e)."""
        slopes = own[:, :, :-1].transpose(1, 0, 2).reshape(own.shape[1], -1)
        return np.column_stack([own[:, :, -1].T @ self.offsets.T, slopes @ self.slopes.T])


def _principal(values: Array) -> Array:
    """Return the leading principal directions of rows of values, their largest entry positive."""
    if not values.any():
        return np.zeros((0, values.shape[1]))
    result: Array = np.linalg.svd(values - values.mean(axis=0), full_matrices=False)[2][:DIRECTIONS]
    largest = result[np.arange(len(result)), np.abs(result).argmax(axis=1)]
    return result * np.where(largest < 0, -1.0, 1.0)[:, None]


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
        """Return the context of learners: what models see beside the predictors, of shape (L, T)."""
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
        self._ratios: dict[bool, tuple[Ratios, ...]] = {False: whole.ratios}
        if table.n_coteries > 1:
            self._ratios[True] = fit_lines(table.rows, table.labels).ratios

    def _training_rows(self, without: FoldSet) -> Array:
        return np.asarray(self._table.folds.training[list(without)].all(axis=0))

    def _labels(self, fold: int | None, training: Array) -> Array:
        """Return the coteries of everybody; who shaped none joins the one whose line loses least on it."""
        table = self._table
        if fold is None or table.n_coteries == 1:
            return table.labels
        labels = table.labels_without(fold)
        if (labels < 0).any():
            rows = table.rows.only(training & (labels >= 0)[table.rows.owner])
            placed_labels = np.maximum(labels, 0)
            lines = fit_lines(rows, placed_labels, self._ratios[True]).common
            selected = np.flatnonzero(training & (labels < 0)[table.rows.owner])
            values = np.clip(np.einsum("nq,ckq->knc", table.rows.Z[selected], lines), -SUREST, SUREST)
            losses = np.sum(np.logaddexp(0, values) - table.rows.Y[selected] * values, axis=2)
            owner = table.rows.owner[selected]
            by_learner = np.array([np.bincount(owner, part, len(labels)) for part in losses])
            labels = np.where(labels < 0, by_learner.argmin(axis=0), labels)
        return labels

    def view(self, fold: int | None) -> ClassView:
        """Return the rows without a fold; None: all rows are trained on."""
        table, without = self._table, () if fold is None else (fold,)
        rows, owner = table.rows, table.rows.owner
        training, one_cluster = self._training_rows(without), np.zeros(rows.n_learners, dtype=int)
        validation: Array = table.folds.held_out == (-2 if fold is None else fold)
        lines = fit_lines(rows.only(training), one_cluster, self._ratios[False])
        labels = self._labels(fold, training)
        directions = Directions.of(lines.own)
        context = table.context(directions, lines.own, labels)[owner]
        line = log_odds(rows.Z, lines.of_learners(one_cluster)[owner])
        common = np.clip(rows.Z @ lines.common[:, 0].T, -SUREST, SUREST)
        inside, coterie_line, plain = lines, line, common
        if table.n_coteries > 1:
            inside = fit_lines(rows.only(training), labels, self._ratios[True])
            coterie_line = log_odds(rows.Z, inside.of_learners(labels)[owner])
            plain = log_odds(rows.Z, inside.common[:, labels].transpose(1, 0, 2)[owner])
        for other in range(len(table.folds)):
            selected = np.flatnonzero(training & (table.folds.held_out == other))
            if other == fold or not len(selected):
                continue
            inner_rows = rows.only(self._training_rows((*without, other)))
            own = effects_of(inner_rows, lines.common, one_cluster, lines.ratios)
            context[selected] = table.context(directions, own, labels)[owner[selected]]
            here = replace(lines, own=own).of_learners(one_cluster)
            line[selected] = log_odds(rows.Z[selected], here[owner[selected]])
            coterie_line[selected] = line[selected]
            if table.n_coteries > 1:
                own = effects_of(inner_rows, inside.common, labels, inside.ratios)
                here = replace(inside, own=own).of_learners(labels)
                coterie_line[selected] = log_odds(rows.Z[selected], here[owner[selected]])
        return ClassView(
            training,
            validation,
            context,
            line,
            common,
            coterie_line,
            plain,
            labels,
            directions,
            lines,
            inside,
        )
