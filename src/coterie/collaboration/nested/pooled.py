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
    """Fits the dictionary's members without each fold, dropping trees that get no weight on the first fold.

    Call `first_fold`, `keep` and `other_folds` in this order; then `out_of_fold` and `last_models`.
    """

    def __init__(self, table: PooledTable, trees: str, engine: Engine, seed: int) -> None:
        """Prepare the rows without each fold, and list the members that ``trees`` allows.

        Members are the models of the dictionary: the few models of the whole table that are mixed per
        learner.
        """
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
        """Fit trees and return them in order; ``wanted`` has a fold, a member and the size of its trees."""
        jobs = [self._tree_jobs.job(member, self.folds[fold].view, size) for fold, member, size in wanted]
        self.n_fits += len(jobs)
        with quiet_fits():
            return list(self._engine.map(grow, jobs))

    def first_fold(self) -> None:
        """Fit the trees of all members without the first fold, and choose between small and large trees.

        Where small trees take many rounds of boosting, large ones are fitted, too, and kept if their
        validation loss is lower.
        """
        trees = [member for member in self.members if member.trees]
        sizes = [self._rule.fold_trees if member.cut_at_random else self._rule.leaves[0] for member in trees]
        small_trees = self._grow([(0, member, size) for member, size in zip(trees, sizes, strict=True)])
        models = self.folds[0].models
        models.update(zip((member.name for member in trees), small_trees, strict=True))
        self.sizes.update(zip((member.name for member in trees), sizes, strict=True))
        slow_members = [
            member
            for member in trees
            if member.may_be_large
            and best_rounds([losses_by_round(models[member.name])]) >= self._rule.rounds_of_small
        ]
        for member, large_trees in zip(
            slow_members,
            self._grow([(0, slow_member, self._rule.leaves[1]) for slow_member in slow_members]),
            strict=True,
        ):
            if losses_by_round(large_trees).min() < losses_by_round(models[member.name]).min():
                models[member.name], self.sizes[member.name] = large_trees, self._rule.leaves[1]

    def keep(self, own_predictions: Array, scales: Array) -> None:
        """Drop the trees that get hardly any weight on the first fold, so that other folds need not fit them.

        ``own_predictions`` (N,) are out-of-fold predictions of the learners' own models, NaN where
        there is none, and ``scales`` (N,) weigh squared residuals. Lines, and the trees that
        everybody shares, stay.
        """
        validation = np.flatnonzero(self.folds[0].view.validation & np.isfinite(own_predictions))
        if not any(member.trees for member in self.members) or len(validation) < 2:
            return
        member_predictions = [self._predicted(member, 0)[validation] for member in self.members]
        residuals = self._table.rows.y[validation, None] - np.column_stack(
            [*member_predictions, own_predictions[validation]]
        )
        weights = simplex_weights((residuals * scales[validation, None]).T @ residuals)
        self.members = tuple(
            member
            for member, weight in zip(self.members, weights, strict=False)
            if weight >= LEAST_WEIGHT or not member.trees or member.name in ALWAYS
        )

    def other_folds(self) -> None:
        """Fit the trees that are left without each fold but the first, and choose their rounds of boosting.

        The first fold has shown which trees get weight. Changes ``rounds``, which are one number for all
        folds, and the folds' models.
        """
        trees = [member for member in self.members if member.trees]
        wanted = [
            (fold, tree_member, self.sizes[tree_member.name])
            for fold in range(1, len(self.folds))
            for tree_member in trees
        ]
        for (fold, member, _), model in zip(wanted, self._grow(wanted), strict=True):
            self.folds[fold].models[member.name] = model
        for member in trees:
            if not member.cut_at_random:
                loss_curves = [losses_by_round(fold.models[member.name]) for fold in self.folds]
                self.rounds[member.name] = best_rounds(loss_curves)

    def _predicted(self, member: DictionaryMember, fold: int) -> Array:
        """Return a member's predictions (N,) for the rows that a fold holds out, NaN for others.

        They are in common units: the member's line or level, plus what its trees add after the chosen
        rounds.
        """
        view = self.folds[fold].view
        validation = np.flatnonzero(view.validation)
        predictions = np.full(len(view.line), np.nan)
        predictions[validation] = member.start(view)[validation]
        if member.trees:
            model, X = (
                self.folds[fold].models[member.name],
                self._tree_jobs.features(member, view, validation),
            )
            if member.cut_at_random:
                predictions[validation] += model.predict(X)
            else:
                rounds = self.rounds[member.name] or best_rounds([losses_by_round(model)])
                predictions[validation] += after_rounds(model, X, rounds)
        return predictions

    def out_of_fold(self, member: DictionaryMember) -> Array:
        """Return a member's out-of-fold predictions (N,), in common units.

        They are NaN for rows that no fold holds out.
        """
        predictions_by_fold = [self._predicted(member, fold) for fold in range(len(self.folds))]
        predictions = np.full(len(self._table.rows.y), np.nan)
        for fold_predictions, fold in zip(predictions_by_fold, self.folds, strict=True):
            predictions[fold.view.validation] = fold_predictions[fold.view.validation]
        return predictions

    def last_models(self, view: FoldView) -> list[Any]:
        """Fit each member's trees on all rows, for prediction; None for members that are lines.

        All rows are more than a fold trains on, and the rounds of boosting grow in proportion.
        """
        trees = [member for member in self.members if member.trees]
        row_ratio = len(view.line) / np.mean([fold.view.training.sum() for fold in self.folds])
        rounds = [int(np.ceil(row_ratio * self.rounds[member.name])) for member in trees]
        jobs = [
            self._tree_jobs.last_job(member, view, self.sizes[member.name], n_rounds)
            for member, n_rounds in zip(trees, rounds, strict=True)
        ]
        self.n_fits += len(jobs)
        with quiet_fits():
            fitted_trees = iter(self._engine.map(grow_to_stay, jobs))
        return [next(fitted_trees) if member.trees else None for member in self.members]


def _tree_share(y: Array, line: Array, trees: Array | None, scales: Array) -> float:
    """Return the weight of trees in the best mixture with a line, by their out-of-fold predictions (N,).

    ``y`` (N,) is the response and ``scales`` (N,) weigh squared residuals. Without trees the weight is
    zero.
    """
    if trees is None:
        return 0.0
    is_predicted = np.isfinite(trees) & np.isfinite(line)
    residuals = y[is_predicted, None] - np.column_stack([line[is_predicted], trees[is_predicted]])
    return float(simplex_weights((residuals * scales[is_predicted, None]).T @ residuals)[1])


def fit_dictionary(
    table: PooledTable,
    own_predictions: Array,
    scales: Array,
    trees: str,
    engine: Engine,
    seed: int,
    steps: Steps,
) -> PooledDictionary:
    """Fit the dictionary's members without each fold and on all rows.

    ``own_predictions`` (N,) are out-of-fold predictions of the learners' own models, in common units, NaN
    where there is none. Squared residuals of rows are weighed by ``scales`` (N,). ``trees`` says which
    trees take part, as in `possible_members`.
    """
    cross_fit = CrossFit(table, trees, engine, seed)
    cross_fit.first_fold()
    steps.done()
    cross_fit.keep(own_predictions, scales)
    cross_fit.other_folds()
    steps.done(len(table.folds) - 1)
    predictions_of = {member.name: cross_fit.out_of_fold(member) for member in cross_fit.members}
    y, held_out = table.rows.y, table.folds.held_out
    lines = np.full((len(y), 2), np.nan)
    for fold, fitted in enumerate(cross_fit.folds):
        validation = held_out == fold
        lines[validation, 0] = fitted.view.common_line[validation]
        lines[validation, 1] = fitted.view.plain_coterie_line[validation]
    shared_trees = [
        predictions_of.get(TREES_OF_ALL),
        predictions_of.get(TREES_OF_COTERIE, predictions_of.get(TREES_OF_ALL)),
    ]
    tree_shares = np.array(
        [_tree_share(y, lines[:, source], shared_trees[source], scales) for source in range(2)]
    )
    shared = lines.copy()
    # Column 0 of ``shared`` is what all learners share, column 1 what a coterie shares.
    for source, by_trees in enumerate(shared_trees):
        if by_trees is not None:
            shared[:, source] = (1 - tree_shares[source]) * lines[:, source] + tree_shares[source] * by_trees
    view = table.view(None)
    return PooledDictionary(
        members=cross_fit.members,
        models=tuple(cross_fit.last_models(view)),
        out_of_fold=np.column_stack([predictions_of[member.name] for member in cross_fit.members]),
        plain=shared,
        tree_shares=tree_shares,
        view=view,
        n_fits=cross_fit.n_fits,
    )
