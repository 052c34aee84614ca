"""The dictionary of pooled rows: a few predictors, most of them one model of everybody's rows.

There is a line that departs from everybody's, and the same inside the chosen coteries. There are trees that
see the predictors alone; the chosen coterie; the id; the id, fitted to how far the response is from the
learner's level; or the whole description of the learner. Others are fitted to the residuals of the line, or
have random cuts and start from the learner's level. All are fitted without each fold. On the first fold it
shows which trees get weight; the others are not fitted again.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from coterie._arrays import Array
from coterie._seeds import generator_for, integer_seed
from coterie.collaboration.nested.trees import TreeFit, TreeRule, thinned
from coterie.collaboration.nested.views import FoldView, PooledTable

LINE, COTERIE_LINE = "line", "line of the coterie"
TREES_OF_ALL, TREES_OF_COTERIE = "trees", "trees that see the coterie"
WITH_ID, FULL_CONTEXT, BESIDE_LINE = "trees that see the id", "trees that see all", "trees beside the line"
ID_BESIDE_LEVEL, RANDOM_CUTS = "trees that see the id, beside the level", "random cuts"
# Members that know learners by their id: they serve nobody whose rows they have not seen.
KNOW_THE_ID = frozenset({WITH_ID, ID_BESIDE_LEVEL, FULL_CONTEXT})


@dataclass(frozen=True)
class DictionaryMember:
    """A predictor of the dictionary: what it is added to, and trees, if it has any.

    ``base`` names what the trees' prediction is added to: a line, the level, or nothing. ``mask`` (T,) marks
    what the trees see beside the row. ``source`` says whom a learner that uses it takes from.
    """

    name: str
    base: str
    source: str
    mask: Array = field(repr=False)
    trees: bool = True
    cut_at_random: bool = False
    may_be_large: bool = False

    def start(self, view: FoldView) -> Array:
        """Return what the trees' predictions are added to, for every row, (N,), in common units."""
        predictions_of_base = {"line": view.line, "coterie line": view.coterie_line, "level": view.levels}
        return predictions_of_base.get(self.base, np.zeros(len(view.line)))


def possible_members(table: PooledTable, view: FoldView, trees: str) -> tuple[DictionaryMember, ...]:
    """Return the predictors that may take part: lines, and of ``trees`` those that are asked for.

    ``"full"`` has all trees, ``"fast"`` one kind and ``"none"`` none. ``"without levels"`` leaves out
    trees that learn the mean response of a learner, by its id or otherwise.
    """
    n_numbers, n_context = view.description.numbers.shape[1], view.context.shape[1]
    columns = np.arange(n_context)
    sees_nothing, sees_numbers = np.zeros(n_context, dtype=bool), columns < n_numbers
    has_coteries = table.n_coteries > 1
    sees_coterie = columns == n_context - 1 - table.has_ids if has_coteries else sees_nothing
    members = [DictionaryMember(LINE, "line", "adapted", sees_nothing, trees=False)]
    if has_coteries:
        members.append(DictionaryMember(COTERIE_LINE, "coterie line", "coterie", sees_nothing, trees=False))
    with_id = DictionaryMember(WITH_ID, "nothing", "adapted", columns == n_context - 1, may_be_large=True)
    full_context = DictionaryMember(FULL_CONTEXT, "nothing", "adapted", ~sees_nothing, may_be_large=True)
    if trees == "none":
        return tuple(members)
    if trees == "fast":
        return (*members, with_id if table.has_ids else full_context)
    members.append(DictionaryMember(TREES_OF_ALL, "nothing", "all", sees_nothing))
    if has_coteries:
        members.append(DictionaryMember(TREES_OF_COTERIE, "nothing", "coterie", sees_coterie))
    beside_line = DictionaryMember(BESIDE_LINE, "line", "adapted", sees_nothing)
    if trees == "without levels":
        return (*members, beside_line)
    if table.has_ids:
        members += [with_id, replace(with_id, name=ID_BESIDE_LEVEL, base="level")]
    members += [
        beside_line,
        full_context,
        DictionaryMember(RANDOM_CUTS, "level", "adapted", sees_numbers, cut_at_random=True),
    ]
    return tuple(members)


class TreeJobs:
    """Makes the jobs that fit the trees of members: features, targets, categories and seeds."""

    def __init__(self, table: PooledTable, n_numbers: int, seed: int, rule: TreeRule) -> None:
        self.table, self.rule, self._n_numbers, self._seed = table, rule, n_numbers, seed

    def _rows(self, member: DictionaryMember, rows: Array) -> Array:
        """Return the positions that a member's trees are fitted on, thinned to the maximum of the rule."""
        max_rows = self.rule.most_rows_cut_at_random if member.cut_at_random else self.rule.most_rows
        return thinned(rows, max_rows)

    def features(self, member: DictionaryMember, view: FoldView, rows: Array) -> Array:
        """Return the predictors of rows, (n, p), and behind them what the member sees of the context."""
        X: Array = self.table.learners.X[rows]
        if member.mask.any():
            X = np.column_stack([X, view.context[rows][:, member.mask]])
        return X

    def job(self, member: DictionaryMember, view: FoldView, size: int) -> TreeFit:
        """Return the fit of a member's trees without a fold, by the rows that ``view`` trains on.

        The target is what the member's line or level leaves unexplained. Boosting stops by the rows
        held out.
        """
        rows, validation = self._rows(member, np.flatnonzero(view.training)), np.flatnonzero(view.validation)
        residuals = self.table.rows.y - member.start(view)
        weights = self.table.learners.weights
        validation_rows = (
            self.features(member, view, validation),
            residuals[validation],
            None if weights is None else weights[validation],
        )
        return TreeFit(
            X=self.features(member, view, rows),
            y=residuals[rows],
            weights=None if weights is None else weights[rows],
            cut_at_random=member.cut_at_random,
            categories=self._categories(member),
            size=size,
            seed=self._seed_of(member),
            rounds=self.rule.rounds,
            rule=self.rule,
            validation=validation_rows,
        )

    def last_job(self, member: DictionaryMember, view: FoldView, size: int, rounds: int) -> TreeFit:
        """Return the fit of a member's trees on all rows, with a given number of rounds, for prediction.

        The target is in the response's own units, unlike that of `job`, so that a model predicts
        without units.
        """
        rows = np.arange(len(view.line))
        if member.cut_at_random:
            rows, size = thinned(rows, 2 * self.rule.most_rows_cut_at_random), self.rule.trees
        residuals = (self.table.rows.y - member.start(view)) * self.table.units.size
        if member.base == "nothing":
            residuals = self.table.learners.scalar_y
        weights = self.table.learners.weights
        return TreeFit(
            X=self.features(member, view, rows),
            y=residuals[rows],
            weights=None if weights is None else weights[rows],
            cut_at_random=member.cut_at_random,
            categories=self._categories(member),
            size=size,
            seed=self._seed_of(member),
            rounds=rounds,
            rule=self.rule,
        )

    def _categories(self, member: DictionaryMember) -> Array:
        """Mark the columns of a member's features that are categories: coteries and ids, not numbers."""
        is_category = np.arange(len(member.mask)) >= self._n_numbers
        of_predictors = np.zeros(self.table.learners.n_features, dtype=bool)
        return np.concatenate([of_predictors, is_category[member.mask]])

    def _seed_of(self, member: DictionaryMember) -> int:
        return integer_seed(generator_for(self._seed, member.name))
