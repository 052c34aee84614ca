"""The dictionary for classes: a few predictors, most of them one model of everybody's rows.

There are logistic lines from which learners depart, for all and inside coteries. Boosted trees see the
predictors alone, the coterie, the id, or the whole description of the learner. Other trees add to the
log-odds of the line, and random cuts see the line. All are classifiers, or add to log-odds. They are fitted
without each fold. On the first fold it shows which trees get weight; the others are not fitted again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie._seeds import generator_for, integer_seed
from coterie.collaboration.classes.lines import probabilities, working
from coterie.collaboration.classes.views import ClassTable, ClassView
from coterie.collaboration.nested.members import (
    BESIDE_LINE,
    COTERIE_LINE,
    FULL_CONTEXT,
    LINE,
    RANDOM_CUTS,
    TREES_OF_ALL,
    TREES_OF_COTERIE,
    WITH_ID,
)
from coterie.collaboration.nested.trees import TreeRule, thinned
from coterie.loss import Loss
from coterie.method.fitting import fit_model
from coterie.models.boosting import BoostedClasses, BoostedTrees, LogOddsTrees
from coterie.models.classes import VotingForest
from coterie.models.forest import RandomCuts

# Trees of a round are as many as there are classes: of many classes there are fewer rounds.
MOST_TREES = 1_800
BESIDE_COTERIE = "trees beside the line of the coterie"
# Rows in a leaf with random cuts: with two, as for numbers, shares of classes are too sure of themselves.
ROWS_IN_LEAF = 8
# Bins of weighted rows take time in proportion to their number.
WEIGHTED_BINS = 32
# Of more classes, trees that add to each class's log-odds cost more than they have been seen to bring.
MOST_COLUMNS = 10


@dataclass(frozen=True)
class ClassMember:
    """A predictor of the dictionary.

    ``kind`` is ``"line"``, ``"trees"``, ``"beside"`` and ``"beside coterie"`` (what is added to the log-odds
    of a line) or ``"cuts"``. ``source`` says whom a learner that uses it takes from, ``mask`` (T,) what it
    sees beside the row, ``takes_line`` whether it sees the log-odds of the line, too.
    """

    name: str
    kind: str
    source: str
    mask: Array = field(repr=False)
    takes_line: bool = False

    @property
    def has_model(self) -> bool:
        """Whether trees belong to it."""
        return self.kind != "line"

    @property
    def adds(self) -> bool:
        """Whether its trees add to the log-odds of a line."""
        return self.kind.startswith("beside")


def possible_members(table: ClassTable, view: ClassView, trees: str) -> tuple[ClassMember, ...]:
    """Return the members; of ``trees`` all (``"full"``), one kind (``"fast"``), or ``"none"``."""
    n_context, several = view.context.shape[1], table.n_coteries > 1
    nothing, indices = np.zeros(n_context, dtype=bool), np.arange(n_context)
    coterie = indices == n_context - 1 - table.has_ids if several else nothing
    only_id = indices == n_context - 1 if table.has_ids else nothing
    numbers = indices < n_context - several - table.has_ids
    members = [ClassMember(LINE, "line", "adapted", nothing)]
    if several:
        members.append(ClassMember(COTERIE_LINE, "line", "coterie", nothing))
    if trees == "none":
        return tuple(members)
    full_context = ClassMember(FULL_CONTEXT, "trees", "adapted", ~nothing)
    with_id = ClassMember(WITH_ID, "trees", "adapted", only_id)
    if trees == "fast":
        return (*members, with_id if table.has_ids else full_context)
    members.append(ClassMember(TREES_OF_ALL, "trees", "all", nothing))
    if several:
        members.append(ClassMember(TREES_OF_COTERIE, "trees", "coterie", coterie))
    if table.has_ids:
        members.append(with_id)
    members.append(full_context)
    if view.line.shape[1] <= MOST_COLUMNS:
        members.append(ClassMember(BESIDE_LINE, "beside", "adapted", nothing))
        if several:
            members.append(ClassMember(BESIDE_COTERIE, "beside coterie", "coterie", nothing))
    return (*members, ClassMember(RANDOM_CUTS, "cuts", "adapted", numbers, takes_line=True))


@dataclass(frozen=True)
class ClassFit:
    """Rows (n, T) and targets to grow trees on: numbers of classes (n,), or working responses (n, C).

    ``weights`` has the shape of the target. Boosting stops by the rows ``validation``, if there are any.
    """

    X: Array = field(repr=False)
    y: Array = field(repr=False)
    weights: Array = field(repr=False)
    kind: str
    categories: Array = field(repr=False)
    size: int
    seed: int
    rounds: int
    rule: TreeRule
    validation: tuple[Array, Array, Array] | None = field(default=None, repr=False)


def _boosted(job: ClassFit) -> dict[str, Any]:
    """Return the options of scikit-learn's histogram boosting for a job."""
    return {
        "learning_rate": job.rule.rate,
        "max_iter": job.rounds,
        "max_leaf_nodes": job.size,
        "min_samples_leaf": job.rule.rows_in_leaf,
        "l2_regularization": job.rule.ridge,
        "max_features": job.rule.share_of_columns,
        "categorical_features": job.categories if job.categories.any() else None,
        "early_stopping": job.validation is not None,
        "n_iter_no_change": job.rule.patience,
        "tol": 0.0,
        "random_state": job.seed,
    }


def grow(job: ClassFit) -> Any:
    """Grow the trees of a job."""
    if job.kind == "cuts":
        leaf = max(ROWS_IN_LEAF, int(np.ceil(len(job.y) / job.rule.most_random_leaves)))
        forest = RandomCuts(n_estimators=job.size, min_samples_leaf=leaf, random_state=job.seed)
        return fit_model(VotingForest(forest), job.X, job.y, job.weights)
    validation = {}
    if job.validation is not None:
        X, y, weights = job.validation
        if job.kind == "trees":
            # A class that only the validation rows have cannot say when to stop.
            known = np.isin(y, job.y)
            X, y, weights = X[known], y[known], weights[known]
        validation = {"X_val": X, "y_val": y, "sample_weight_val": weights}
    if job.kind.startswith("beside"):
        trees = LogOddsTrees(BoostedTrees(**_boosted(job), max_bins=WEIGHTED_BINS))
        return trees.fit(job.X, job.y, job.weights, **validation)
    if (job.y == job.y[0]).all():
        return fit_model(BoostedClasses(), job.X, job.y)
    # Bins of weighted rows cost many times more.
    counted = job.weights if np.ptp(job.weights) else None
    return BoostedClasses(**_boosted(job)).fit(job.X, job.y, counted, **validation)


def rounds_of(model: Any) -> int:
    """Return how many rounds lost least on the validation rows, at least one."""
    parts = model.estimators_ if isinstance(model, LogOddsTrees) else [model]
    curves = [-np.asarray(part.validation_score_) for part in parts if hasattr(part, "validation_score_")]
    best = [int(curve.argmin()) for curve in curves if len(curve)]
    return max(1, int(np.mean(best))) if best else 1


class ClassTreeJobs:
    """Makes the jobs of trees, and reads their answers."""

    def __init__(self, table: ClassTable, loss: Loss, n_numbers: int, seed: int, rule: TreeRule) -> None:
        self._table, self._loss, self.rule = table, loss, rule
        self._n_numbers, self._seed = n_numbers, seed
        self._codes = loss.target(table.rows.Y)

    def features(self, member: ClassMember, view: ClassView, rows: Array) -> Array:
        """Return the predictors of some rows with what the trees see."""
        parts = [self._table.X[rows]]
        if member.mask.any():
            parts.append(view.context[rows][:, member.mask])
        if member.takes_line:
            parts.append(view.line[rows])
        return parts[0] if len(parts) == 1 else np.column_stack(parts)

    def job(self, member: ClassMember, view: ClassView, size: int, rounds: int | None = None) -> ClassFit:
        """Return the fit of a member on the rows that a view trains on.

        ``rounds`` is the number of rounds; None: boosting stops by the rows that the view holds out.
        """
        cuts = member.kind == "cuts"
        most = self.rule.most_rows_cut_at_random if cuts else self.rule.most_rows
        rows, validation = thinned(np.flatnonzero(view.training), most), np.flatnonzero(view.validation)
        y, weights = self._target(member, view)
        stop = None
        if rounds is None and not cuts:
            stop = self.features(member, view, validation), y[validation], weights[validation]
        columns = view.line.shape[1]
        most_rounds = max(20, MOST_TREES // columns) if columns > 1 else self.rule.rounds
        plain = np.zeros(self._table.X.shape[1], dtype=bool)
        names = np.arange(len(member.mask)) >= self._n_numbers
        more = np.zeros(columns if member.takes_line else 0, dtype=bool)
        return ClassFit(
            self.features(member, view, rows),
            y[rows],
            weights[rows],
            member.kind,
            np.concatenate([plain, names[member.mask], more]),
            size,
            integer_seed(generator_for(self._seed, member.name)),
            min(rounds or self.rule.rounds, most_rounds),
            self.rule,
            stop,
        )

    def _target(self, member: ClassMember, view: ClassView) -> tuple[Array, Array]:
        """Return what a member's trees are fitted to, and the weights of rows."""
        weights = self._table.rows.weights
        if not member.adds:
            return self._codes, weights
        Y, base = self._table.rows.Y, self._base(member, view)
        pairs = [working(Y[:, c], base[:, c], weights) for c in range(Y.shape[1])]
        response, curvature = (np.column_stack(part) for part in zip(*pairs, strict=True))
        return response - base, curvature

    def _base(self, member: ClassMember, view: ClassView) -> Array:
        """Return the log-odds that a member's trees are added to."""
        inside = member.name in (COTERIE_LINE, BESIDE_COTERIE)
        return view.coterie_line if inside else view.line

    def answer(self, member: ClassMember, model: Any, view: ClassView, rows: Array) -> Array:
        """Return the probabilities (n, C) of a member at some rows."""
        if member.kind == "line":
            return probabilities(self._base(member, view)[rows])
        X = self.features(member, view, rows)
        if member.adds:
            return probabilities(self._base(member, view)[rows] + model.predict(X))
        return self._loss.predict(model, X)
