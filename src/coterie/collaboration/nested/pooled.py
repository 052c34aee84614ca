"""The dictionary is fitted without each fold, weighed, and fitted again on all rows.

All trees are fitted without the first fold. Those that get no weight there are not fitted without the others,
except where everybody's or a coterie's own prediction is made of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie.collaboration.nested.members import (
    TREES_OF_ALL,
    TREES_OF_COTERIE,
    DictionaryMember,
    TreeJobs,
    possible_members,
)
from coterie.collaboration.nested.trees import (
    FAST_TREES,
    TREES,
    after_rounds,
    best_rounds,
    grow,
    grow_to_stay,
    losses_by_round,
)
from coterie.collaboration.nested.views import FoldView, PooledTable
from coterie.collaboration.nested.weights import simplex_weights
from coterie.engines import Engine, Steps
from coterie.method.fitting import quiet_fits

# Trees with less weight on the first fold are not fitted without the others.
LEAST_WEIGHT = 0.01
# What everybody, and what a coterie, shares is made of these trees: they stay in any case.
ALWAYS = (TREES_OF_ALL, TREES_OF_COTERIE)


@dataclass(frozen=True)
class PooledDictionary:
    """The members that were fitted, and what each predicts where it had not seen the row.

    ``out_of_fold`` (N, E) is in common units, NaN where no fold holds the row out. ``models`` has the trees
    of each member, None where it has none. ``plain`` (N, 2) has the same of what all learners share and of
    what the members of a coterie share, and ``tree_shares`` (2,) how much of these are trees; the rest is a
    line. ``view`` has the rows without any fold.
    """

    members: tuple[DictionaryMember, ...]
    models: tuple[Any, ...] = field(repr=False)
    out_of_fold: Array = field(repr=False)
    plain: Array = field(repr=False)
    tree_shares: Array
    view: FoldView = field(repr=False)
    n_fits: int


@dataclass
class _Fold:
    """What was fitted without one fold: trees by member, with their sizes."""

    view: FoldView
    models: dict[str, Any] = field(default_factory=dict)


class CrossFit:
    """Fits members without each fold.

    ``own_predictions`` (N,) has what learners' own models predict out of fold, in common units, NaN where
    there is none; rows count by ``scales`` (N,).
    """

    def __init__(self, table: PooledTable, trees: str, engine: Engine, seed: int) -> None:
        """Make the rows without each fold, and choose the possible members."""
        self._table, self._engine = table, engine
        self.folds = [_Fold(table.view(fold)) for fold in range(len(table.folds))]
        first = self.folds[0].view
        self.members = possible_members(table, first, trees)
        self._rule = FAST_TREES if trees == "fast" else TREES
        self._tree_jobs = TreeJobs(table, first.description.numbers.shape[1], seed, self._rule)
        self.sizes = {member.name: self._rule.leaves[0] for member in self.members}
        # Zero while the other folds are not fitted: what is best on the first alone.
        self.rounds = {member.name: 0 for member in self.members}
        self.n_fits = 0

    def _grow(self, wanted: Sequence[tuple[int, DictionaryMember, int]]) -> list[Any]:
        """Fit the trees of members, each without a fold and of a given size."""
        jobs = [self._tree_jobs.job(member, self.folds[fold].view, size) for fold, member, size in wanted]
        self.n_fits += len(jobs)
        with quiet_fits():
            return list(self._engine.map(grow, jobs))

    def first_fold(self) -> None:
        """Fit all trees without the first fold, larger ones where small ones take many rounds."""
        trees = [member for member in self.members if member.trees]
        sizes = [self._rule.fold_trees if member.cut_at_random else self._rule.leaves[0] for member in trees]
        small = self._grow([(0, member, size) for member, size in zip(trees, sizes, strict=True)])
        models = self.folds[0].models
        models.update(zip((member.name for member in trees), small, strict=True))
        self.sizes.update(zip((member.name for member in trees), sizes, strict=True))
        slow = [
            member
            for member in trees
            if member.may_be_large
            and best_rounds([losses_by_round(models[member.name])]) >= self._rule.rounds_of_small
        ]
        for member, large in zip(slow, self._grow([(0, m, self._rule.leaves[1]) for m in slow]), strict=True):
            if losses_by_round(large).min() < losses_by_round(models[member.name]).min():
                models[member.name], self.sizes[member.name] = large, self._rule.leaves[1]

    def keep(self, own_predictions: Array, scales: Array) -> None:
        """Drop the trees that get no weight on the first fold."""
        validation = np.flatnonzero(self.folds[0].view.validation & np.isfinite(own_predictions))
        if not any(member.trees for member in self.members) or len(validation) < 2:
            return
        columns = [self._predicted(member, 0)[validation] for member in self.members]
        residuals = self._table.rows.y[validation, None] - np.column_stack(
            [*columns, own_predictions[validation]]
        )
        weights = simplex_weights((residuals * scales[validation, None]).T @ residuals)
        self.members = tuple(
            member
            for member, weight in zip(self.members, weights, strict=False)
            if weight >= LEAST_WEIGHT or not member.trees or member.name in ALWAYS
        )

    def other_folds(self) -> None:
        """Fit the trees that are left without the other folds, and choose their rounds."""
        trees = [member for member in self.members if member.trees]
        wanted = [(fold, m, self.sizes[m.name]) for fold in range(1, len(self.folds)) for m in trees]
        for (fold, member, _), model in zip(wanted, self._grow(wanted), strict=True):
            self.folds[fold].models[member.name] = model
        for member in trees:
            if not member.cut_at_random:
                curves = [losses_by_round(fold.models[member.name]) for fold in self.folds]
                self.rounds[member.name] = best_rounds(curves)

    def _predicted(self, member: DictionaryMember, fold: int) -> Array:
        """Return what a member predicts without a fold, NaN outside of the rows that the fold holds out."""
        view = self.folds[fold].view
        validation = np.flatnonzero(view.validation)
        predicted = np.full(len(view.line), np.nan)
        predicted[validation] = member.start(view)[validation]
        if member.trees:
            model, X = (
                self.folds[fold].models[member.name],
                self._tree_jobs.features(member, view, validation),
            )
            if member.cut_at_random:
                predicted[validation] += model.predict(X)
            else:
                rounds = self.rounds[member.name] or best_rounds([losses_by_round(model)])
                predicted[validation] += after_rounds(model, X, rounds)
        return predicted

    def out_of_fold(self, member: DictionaryMember) -> Array:
        """Return what a member predicts out of fold, of shape (N,)."""
        parts = [self._predicted(member, fold) for fold in range(len(self.folds))]
        whole = np.full(len(self._table.rows.y), np.nan)
        for part, fold in zip(parts, self.folds, strict=True):
            whole[fold.view.validation] = part[fold.view.validation]
        return whole

    def last_models(self, view: FoldView) -> list[Any]:
        """Fit the members' trees on all rows; None for those without."""
        trees = [member for member in self.members if member.trees]
        # More rows bear more rounds.
        more = len(view.line) / np.mean([fold.view.training.sum() for fold in self.folds])
        rounds = [int(np.ceil(more * self.rounds[member.name])) for member in trees]
        jobs = [
            self._tree_jobs.last_job(member, view, self.sizes[member.name], count)
            for member, count in zip(trees, rounds, strict=True)
        ]
        self.n_fits += len(jobs)
        with quiet_fits():
            grown = iter(self._engine.map(grow_to_stay, jobs))
        return [next(grown) if member.trees else None for member in self.members]


def _tree_share(y: Array, line: Array, trees: Array | None, scales: Array) -> float:
    """Return how much trees weigh beside a line, by what both predict out of fold."""
    if trees is None:
        return 0.0
    seen = np.isfinite(trees) & np.isfinite(line)
    residuals = y[seen, None] - np.column_stack([line[seen], trees[seen]])
    return float(simplex_weights((residuals * scales[seen, None]).T @ residuals)[1])


def fit_dictionary(
    table: PooledTable,
    own_predictions: Array,
    scales: Array,
    trees: str,
    engine: Engine,
    seed: int,
    steps: Steps,
) -> PooledDictionary:
    """Fit the dictionary without each fold and on all rows.

    ``own_predictions`` (N,) has what learners' own models predict out of fold, in common units, NaN where
    they have none. Squared residuals of rows count by ``scales`` (N,). ``trees`` says which take part, as in
    `possible_members`.
    """
    cross = CrossFit(table, trees, engine, seed)
    cross.first_fold()
    steps.done()
    cross.keep(own_predictions, scales)
    cross.other_folds()
    steps.done(len(table.folds) - 1)
    columns = {member.name: cross.out_of_fold(member) for member in cross.members}
    y, held_out = table.rows.y, table.folds.held_out
    lines = np.full((len(y), 2), np.nan)
    for fold, fitted in enumerate(cross.folds):
        validation = held_out == fold
        lines[validation, 0] = fitted.view.common_line[validation]
        lines[validation, 1] = fitted.view.plain_coterie_line[validation]
    grown = [columns.get(TREES_OF_ALL), columns.get(TREES_OF_COTERIE, columns.get(TREES_OF_ALL))]
    shares = np.array([_tree_share(y, lines[:, p], grown[p], scales) for p in range(2)])
    plain = lines.copy()
    for p, column in enumerate(grown):
        if column is not None:
            plain[:, p] = (1 - shares[p]) * lines[:, p] + shares[p] * column
    view = table.view(None)
    return PooledDictionary(
        cross.members,
        tuple(cross.last_models(view)),
        np.column_stack([columns[member.name] for member in cross.members]),
        plain,
        shares,
        view,
        cross.n_fits,
    )
