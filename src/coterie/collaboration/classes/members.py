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
    """Return the predictors that may take part: lines, and the kinds of trees that ``trees`` names.

    ``"full"`` has all trees, ``"fast"`` one kind and ``"none"`` none. Whether a predictor gets any weight is
    learnt later. ``view`` says how many columns describe the learner of a row (its context).
    """
    n_context, has_coteries = view.context.shape[1], table.n_coteries > 1
    # Columns of the context: numbers that describe the learner, then its coterie, then its id, if these are
    # there.
    sees_nothing, columns = np.zeros(n_context, dtype=bool), np.arange(n_context)
    sees_coterie = columns == n_context - 1 - table.has_ids if has_coteries else sees_nothing
    sees_id = columns == n_context - 1 if table.has_ids else sees_nothing
    sees_numbers = columns < n_context - has_coteries - table.has_ids
    members = [ClassMember(LINE, "line", "adapted", sees_nothing)]
    if has_coteries:
        members.append(ClassMember(COTERIE_LINE, "line", "coterie", sees_nothing))
    if trees == "none":
        return tuple(members)
    full_context = ClassMember(FULL_CONTEXT, "trees", "adapted", ~sees_nothing)
    with_id = ClassMember(WITH_ID, "trees", "adapted", sees_id)
    if trees == "fast":
        return (*members, with_id if table.has_ids else full_context)
    members.append(ClassMember(TREES_OF_ALL, "trees", "all", sees_nothing))
    if has_coteries:
        members.append(ClassMember(TREES_OF_COTERIE, "trees", "coterie", sees_coterie))
    if table.has_ids:
        members.append(with_id)
    members.append(full_context)
    if view.line.shape[1] <= MOST_COLUMNS:
        members.append(ClassMember(BESIDE_LINE, "beside", "adapted", sees_nothing))
        if has_coteries:
            members.append(ClassMember(BESIDE_COTERIE, "beside coterie", "coterie", sees_nothing))
    return (*members, ClassMember(RANDOM_CUTS, "cuts", "adapted", sees_numbers, takes_line=True))


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
    """Return the options of scikit-learn's histogram boosting for a job.

    Early stopping needs validation rows; a tolerance of zero stops only where the loss no longer falls.
    """
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
    """Fit the trees of a job: classifiers, or trees that add to the log-odds of a line.

    Boosting stops by the job's validation rows, if it has any. A single class in the rows needs no trees.
    It is a function of the job alone, so that workers elsewhere can run it.
    """
    if job.kind == "cuts":
        rows_in_leaf = max(ROWS_IN_LEAF, int(np.ceil(len(job.y) / job.rule.most_random_leaves)))
        forest = RandomCuts(n_estimators=job.size, min_samples_leaf=rows_in_leaf, random_state=job.seed)
        return fit_model(VotingForest(forest), job.X, job.y, job.weights)
    validation_options = {}
    if job.validation is not None:
        validation_X, validation_y, validation_weights = job.validation
        if job.kind == "trees":
            # A class that only the validation rows have cannot say when to stop.
            has_known_class = np.isin(validation_y, job.y)
            validation_X, validation_y, validation_weights = (
                validation_X[has_known_class],
                validation_y[has_known_class],
                validation_weights[has_known_class],
            )
        validation_options = {
            "X_val": validation_X,
            "y_val": validation_y,
            "sample_weight_val": validation_weights,
        }
    if job.kind.startswith("beside"):
        trees = LogOddsTrees(BoostedTrees(**_boosted(job), max_bins=WEIGHTED_BINS))
        return trees.fit(job.X, job.y, job.weights, **validation_options)
    if (job.y == job.y[0]).all():
        return fit_model(BoostedClasses(), job.X, job.y)
    # Bins of weighted rows cost many times more.
    row_weights = job.weights if np.ptp(job.weights) else None
    return BoostedClasses(**_boosted(job)).fit(job.X, job.y, row_weights, **validation_options)


def rounds_of(model: Any) -> int:
    """Return the rounds of boosting with the smallest validation loss, at least one.

    Trees that add to log-odds are a model for each column: then it is the mean over columns.
    """
    boosted_models = model.estimators_ if isinstance(model, LogOddsTrees) else [model]
    loss_curves = [
        -np.asarray(boosted.validation_score_)
        for boosted in boosted_models
        if hasattr(boosted, "validation_score_")
    ]
    best_rounds = [int(losses.argmin()) for losses in loss_curves if len(losses)]
    return max(1, int(np.mean(best_rounds))) if best_rounds else 1


class ClassTreeJobs:
    """Makes the jobs of trees, and reads their answers."""

    def __init__(self, table: ClassTable, loss: Loss, n_numbers: int, seed: int, rule: TreeRule) -> None:
        # ``_n_numbers`` columns of a context are numbers, the others (coterie, id) categories; ``_codes``
        # (N,) are the rows' classes as numbers.
        self._table, self._loss, self.rule = table, loss, rule
        self._n_numbers, self._seed = n_numbers, seed
        self._codes = loss.target(table.rows.Y)

    def features(self, member: ClassMember, view: ClassView, rows: Array) -> Array:
        """Return the predictors of rows, (n, p), and behind them what the member sees of context and line.

        The context describes the learner of each row; the line gives the log-odds of its own logistic line.
        ``rows`` are positions.
        """
        feature_blocks = [self._table.X[rows]]
        if member.mask.any():
            feature_blocks.append(view.context[rows][:, member.mask])
        if member.takes_line:
            feature_blocks.append(view.line[rows])
        return feature_blocks[0] if len(feature_blocks) == 1 else np.column_stack(feature_blocks)

    def job(self, member: ClassMember, view: ClassView, size: int, rounds: int | None = None) -> ClassFit:
        """Return the fit of a member's trees on the rows that ``view`` trains on.

        ``size`` is the number of leaves, or of trees with random cuts. ``rounds`` are those of
        boosting; None: boosting stops by the rows that the view holds out.
        """
        cut_at_random = member.kind == "cuts"
        max_rows = self.rule.most_rows_cut_at_random if cut_at_random else self.rule.most_rows
        rows, validation = thinned(np.flatnonzero(view.training), max_rows), np.flatnonzero(view.validation)
        y, weights = self._target(member, view)
        validation_rows = None
        if rounds is None and not cut_at_random:
            validation_rows = self.features(member, view, validation), y[validation], weights[validation]
        columns = view.line.shape[1]
        # Of several classes each round grows a tree for every one, so there are fewer rounds.
        max_rounds = max(20, MOST_TREES // columns) if columns > 1 else self.rule.rounds
        of_predictors = np.zeros(self._table.X.shape[1], dtype=bool)
        is_category = np.arange(len(member.mask)) >= self._n_numbers
        of_line = np.zeros(columns if member.takes_line else 0, dtype=bool)
        return ClassFit(
            X=self.features(member, view, rows),
            y=y[rows],
            weights=weights[rows],
            kind=member.kind,
            categories=np.concatenate([of_predictors, is_category[member.mask], of_line]),
            size=size,
            seed=integer_seed(generator_for(self._seed, member.name)),
            rounds=min(rounds or self.rule.rounds, max_rounds),
            rule=self.rule,
            validation=validation_rows,
        )

    def _target(self, member: ClassMember, view: ClassView) -> tuple[Array, Array]:
        """Return what a member's trees are fitted to, and the rows' weights.

        Classifiers have numbers of classes (N,). Trees beside a line have working responses (N, C) (see
        `lines.working`: targets of one Newton step) less its log-odds, so that they fit what the line leaves
        unexplained. Their weights are (N, C), too.
        """
        weights = self._table.rows.weights
        if not member.adds:
            return self._codes, weights
        Y, base_log_odds = self._table.rows.Y, self._base(member, view)
        responses_and_weights = [
            working(Y[:, column], base_log_odds[:, column], weights) for column in range(Y.shape[1])
        ]
        response, curvature = (np.column_stack(part) for part in zip(*responses_and_weights, strict=True))
        return response - base_log_odds, curvature

    def _base(self, member: ClassMember, view: ClassView) -> Array:
        """Return the log-odds (N, C) of the line that a member is, or that its trees are added to."""
        is_of_coterie = member.name in (COTERIE_LINE, BESIDE_COTERIE)
        return view.coterie_line if is_of_coterie else view.line

    def answer(self, member: ClassMember, model: Any, view: ClassView, rows: Array) -> Array:
        """Return a member's probabilities (n, C) for some rows; ``model`` is its trees, None for a line."""
        if member.kind == "line":
            return probabilities(self._base(member, view)[rows])
        X = self.features(member, view, rows)
        if member.adds:
            return probabilities(self._base(member, view)[rows] + model.predict(X))
        return self._loss.predict(model, X)
