"""Trees as lists: what is in them, and what stays at home."""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.tree import DecisionTreeRegressor

from coterie.federated.wire.convert import histogram_trees, plain_trees


def test_a_stump_is_one_question_and_two_leaves() -> None:
    stump = DecisionTreeRegressor(max_depth=1).fit([[0.0], [2.0]], [5.0, 7.0])
    trees = plain_trees([stump], factor=10)
    assert trees.splits.tolist() == [1.0]
    assert trees.weights.tolist() == [50.0, 70.0]
    assert (trees.true_leafs.tolist(), trees.false_leafs.tolist()) == ([1], [1])
    trees.check(1)


def test_a_tree_that_asks_nothing_gives_one_answer_twice() -> None:
    leaf = DecisionTreeRegressor().fit([[0.0], [1.0]], [3.0, 3.0])
    trees = plain_trees([leaf, leaf])
    assert trees.weights.tolist() == [3.0] * 4
    assert trees.roots.tolist() == [0, 1]
    trees.check(1)


def test_histogram_trees_with_missing_values_keep_finite_thresholds() -> None:
    X = np.array([[np.nan], [1.0]] * 20)
    y = np.array([0.0, 5.0] * 20)
    model = HistGradientBoostingRegressor(max_iter=1, min_samples_leaf=1).fit(X, y)
    trees = histogram_trees([stage[0] for stage in model._predictors])
    assert np.isfinite(trees.splits).all()
    trees.check(1)
