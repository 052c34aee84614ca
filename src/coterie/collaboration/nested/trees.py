"""Trees on everybody's rows: how they are grown without a fold, and how many rounds they take.

Boosted trees are fitted without each fold and stop when the fold's rows are predicted no better. All folds
then take the number of rounds that is best on average, and so does the model that stays.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.preprocessing import StandardScaler

from coterie._arrays import Array
from coterie.method.fitting import fit_model
from coterie.models.boosting import BoostedTrees
from coterie.models.forest import RandomCuts


@dataclass(frozen=True)
class TreeRule:
    """How trees of all rows are grown; chosen on the tables of benchmarks/quality/real_tables."""

    rate: float = 0.08
    rounds: int = 600
    patience: int = 15
    # Leaves of small and of large trees. Large ones are tried if small ones take ``rounds_of_small`` rounds.
    leaves: tuple[int, int] = (7, 31)
    rounds_of_small: int = 100
    rows_in_leaf: int = 10
    ridge: float = 1.0
    share_of_columns: float = 0.5
    # Trees with random cuts: of a fold, and of the model that stays; their leaves.
    fold_trees: int = 30
    trees: int = 40
    rows_in_random_leaf: int = 2
    most_random_leaves: int = 3_000
    # More rows than this make a fold's model slower, not its weight better known.
    most_rows: int = 50_000
    most_rows_cut_at_random: int = 10_000


TREES = TreeRule()
# With little effort: as scikit-learn grows them by default, in fewer rounds.
FAST_TREES = TreeRule(
    rate=0.1, rounds=100, patience=10, leaves=(31, 31), rounds_of_small=1_000, share_of_columns=1.0
)


@dataclass(frozen=True)
class TreeFit:
    """Rows (n, T) and targets (n,) to grow trees on; boosting stops by ``validation`` rows, if any.

    ``cut_at_random`` grows trees with random cuts instead of boosted ones. ``categories`` (T,) marks columns
    that name a learner or a coterie. ``size`` is the number of leaves, or of trees with random cuts, and
    ``rounds`` how many rounds are boosted at most.
    """

    X: Array = field(repr=False)
    y: Array = field(repr=False)
    weights: Array | None = field(repr=False)
    cut_at_random: bool
    categories: Array = field(repr=False)
    size: int
    seed: int
    rounds: int
    rule: TreeRule
    validation: tuple[Array, Array, Array | None] | None = field(default=None, repr=False)


def thinned(rows: Array, most: int) -> Array:
    """Return at most ``most`` of the row positions, evenly spaced, so that fitting stays quick."""
    if len(rows) <= most:
        return rows
    subset: Array = rows[np.linspace(0, len(rows) - 1, most).astype(int)]
    return subset


def _boosted(job: TreeFit) -> BoostedTrees:
    """Return unfitted boosted trees for a job, with the options of scikit-learn's histogram boosting.

    They stop early only where the job has validation rows to stop by.
    """
    return BoostedTrees(
        learning_rate=job.rule.rate,
        max_iter=job.rounds,
        max_leaf_nodes=job.size,
        min_samples_leaf=job.rule.rows_in_leaf,
        l2_regularization=job.rule.ridge,
        max_features=job.rule.share_of_columns,
        categorical_features=job.categories if job.categories.any() else None,
        early_stopping=job.validation is not None,
        n_iter_no_change=job.rule.patience,
        tol=0.0,
        random_state=job.seed,
    )


def _with_random_cuts(job: TreeFit) -> RandomCuts:
    """Return an unfitted forest with random cuts for a job.

    With many rows leaves are larger, so that a tree has at most `TreeRule.most_random_leaves` leaves.
    """
    rows_in_leaf = max(job.rule.rows_in_random_leaf, int(np.ceil(len(job.y) / job.rule.most_random_leaves)))
    return RandomCuts(n_estimators=job.size, min_samples_leaf=rows_in_leaf, random_state=job.seed)


def grow(job: TreeFit) -> Any:
    """Fit trees to the rows that one fold trains on, in common units of the response.

    Boosting stops when the rows that the fold holds out are predicted no better. It is a function of the job
    alone, so that workers elsewhere can run it.
    """
    if job.cut_at_random:
        return fit_model(_with_random_cuts(job), job.X, job.y, job.weights)
    assert job.validation is not None
    validation_X, validation_y, validation_weights = job.validation
    return _boosted(job).fit(
        job.X,
        job.y,
        job.weights,
        X_val=validation_X,
        y_val=validation_y,
        sample_weight_val=validation_weights,
    )


def grow_to_stay(job: TreeFit) -> Any:
    """Fit the trees that predict in the end, to all rows, in the response's own units.

    The number of rounds is given by the job, as no rows are left to stop by.
    """
    trees = _with_random_cuts(job) if job.cut_at_random else _boosted(job)
    # Histograms are in single precision: the target has to be of ordinary size.
    return fit_model(
        TransformedTargetRegressor(trees, transformer=StandardScaler()), job.X, job.y, job.weights
    )


def losses_by_round(model: BoostedTrees) -> Array:
    """Return the loss of the validation rows after 0, 1, 2, ... rounds of boosting."""
    return -np.asarray(model.validation_score_)


def best_rounds(curves: Sequence[Array]) -> int:
    """Return the number of rounds, at least one, with the smallest loss on average over folds.

    ``curves`` has the losses by round of each fold. Folds stop at different rounds: only rounds that all
    folds have reached are compared.
    """
    n_common_rounds = min(len(curve) for curve in curves)
    mean_losses = np.mean([curve[:n_common_rounds] for curve in curves], axis=0)
    return max(1, int(mean_losses.argmin()))


def after_rounds(model: BoostedTrees, X: Array, rounds: int) -> Array:
    """Return predictions (n,) of boosted trees after some rounds, or after all where there are fewer."""
    last_stage = deque(islice(model.staged_predict(X), rounds), maxlen=1)
    return last_stage[0] if last_stage else np.zeros(len(X))
