"""Random forests on few rows, grown without the overhead that costs most of their time.

Around every tree scikit-learn copies an estimator, makes two generators and checks the same rows again. Here
the first tree is fitted by ``DecisionTreeRegressor.fit``, and scikit-learn's own splitter and builder grow
the others: they are the same trees, bit for bit. The splitter and the builder are private: they serve only
where they grow the first tree again exactly, else every tree is fitted.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor, ExtraTreeRegressor
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from coterie._arrays import Array

try:
    from sklearn.tree._criterion import MSE
    from sklearn.tree._splitter import BestSplitter, RandomSplitter
    from sklearn.tree._tree import DepthFirstTreeBuilder, Tree
except ImportError:  # another scikit-learn: trees are fitted one by one
    BestSplitter = None


# With more rows than this, growing the trees is most of the work and threads may share it.
MAX_QUICK_ROWS = 5_000
_LARGEST_SEED = np.iinfo(np.int32).max
_NODE_ARRAYS = ("children_left", "children_right", "feature", "threshold", "impurity", "value")


def _are_few(X: Any) -> bool:
    """Tell whether X is a finite array of floats with few enough rows for the quick path.

    The quick path makes no checks of its own, and many rows are better shared among threads.
    """
    return (
        isinstance(X, np.ndarray)
        and X.ndim == 2
        and X.dtype.kind == "f"
        and len(X) <= MAX_QUICK_ROWS
        and bool(np.isfinite(X).all())
    )


def _grow(tree: DecisionTreeRegressor, max_features: int, X: Array, y: Array, counts: Array | None) -> None:
    """Grow an unfitted tree in place, by scikit-learn's own splitter and builder, without its checks.

    ``X`` (n, p) and ``y`` (n, K) are of the types that the builder takes, and ``counts`` (n,) are the
    weights of rows in the bootstrap sample. Arguments of splitter and builder stand in scikit-learn's
    order.
    """
    (n, p), n_outputs = X.shape, y.shape[1]
    min_leaf_rows = tree.min_samples_leaf
    splitter_class = RandomSplitter if tree.splitter == "random" else BestSplitter
    splitter = splitter_class(MSE(n_outputs, n), max_features, min_leaf_rows, 0.0, tree.random_state, None)
    max_depth = np.iinfo(np.int32).max if tree.max_depth is None else tree.max_depth
    min_split_rows = max(tree.min_samples_split, 2 * min_leaf_rows)
    builder = DepthFirstTreeBuilder(
        splitter, min_split_rows, min_leaf_rows, 0.0, max_depth, tree.min_impurity_decrease
    )
    tree.n_features_in_, tree.n_outputs_, tree.max_features_ = p, n_outputs, max_features
    tree.tree_ = Tree(p, np.ones(n_outputs, dtype=np.intp), n_outputs)
    builder.build(tree.tree_, X, y, counts, None)


def _grows_alike(first: DecisionTreeRegressor, X: Array, y: Array, counts: Array | None) -> bool:
    """Tell whether `_grow` grows the fitted tree ``first`` again, bit for bit.

    Splitter and builder are private to scikit-learn and may change. Where they do, every tree is fitted
    by ``fit`` instead.
    """
    has_plain_options = (
        first.criterion == "squared_error"
        and first.max_leaf_nodes is None
        and first.min_weight_fraction_leaf == 0
        and first.ccp_alpha == 0
        and isinstance(first.min_samples_leaf, Integral)
        and isinstance(first.min_samples_split, Integral)
    )
    if not has_plain_options or BestSplitter is None:
        return False
    second_tree = type(first)(**first.get_params())
    try:
        _grow(second_tree, first.max_features_, X, y, counts)
    except (AttributeError, TypeError, ValueError):
        return False
    array_pairs = (
        (getattr(second_tree.tree_, array_name), getattr(first.tree_, array_name))
        for array_name in _NODE_ARRAYS
    )
    return all(np.array_equal(*pair) for pair in array_pairs)


class _QuickTrees(BaseEstimator):  # type: ignore[misc]
    """A forest whose trees are grown in turn, in one thread, without scikit-learn's overhead for each tree.

    Many rows and rarer options are left to scikit-learn. ``_tree`` is the class of the trees; ``_draws_rows``
    says whether each grows on a bootstrap sample.
    """

    _tree: type[DecisionTreeRegressor]
    _draws_rows: bool

    def _is_plain(self, X: Any, y: Any) -> bool:
        """Tell whether data and options are those that the quick path serves; else scikit-learn fits."""
        return (
            _are_few(X)
            and isinstance(y, np.ndarray)
            and (y.ndim == 1 or (y.ndim == 2 and y.shape[1] > 1))
            and isinstance(self.n_estimators, Integral)
            and int(self.n_estimators) > 0
            and self.bootstrap is self._draws_rows
            and self.max_samples is self.monotonic_cst is None
            and self.oob_score is self.warm_start is False
            and not self.verbose
        )

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Grow the trees on X (n, p) and y (n,) or (n, K), rows weighted by ``sample_weight``."""
        if not self._is_plain(X, y):
            return super().fit(X, y, sample_weight)
        X, y = validate_data(self, X, y, dtype=np.float32, multi_output=True, y_numeric=True)
        response = np.ascontiguousarray(y, dtype=np.float64).reshape(len(X), -1)
        self.n_outputs_ = response.shape[1]
        self.estimator_ = self._tree()
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        self.estimators_ = self._grown(X, response, sample_weight)
        return self

    def _grown(self, X: Array, y: Array, weights: Array | None) -> list[DecisionTreeRegressor]:
        """Return all trees, fitted to X (n, p) and y (n, K), each from its own seed as in scikit-learn.

        The first tree is fitted by ``fit``; if `_grow` grows the same tree again, it grows the
        others.
        """
        tree_options = {name: getattr(self, name) for name in self.estimator_params if name != "random_state"}
        seeds = check_random_state(self.random_state).randint(_LARGEST_SEED, size=int(self.n_estimators))
        n_rows, generator, counts = len(X), np.random.RandomState(0), weights
        row_probabilities = weights / weights.sum() if weights is not None and self._draws_rows else None
        trees: list[DecisionTreeRegressor] = []
        may_grow_quickly = False
        for seed in seeds.tolist():
            # Rows and splits are drawn from the same seed, each from its beginning, as scikit-learn does.
            if self._draws_rows:
                generator.seed(seed)
                drawn_rows = (
                    generator.randint(0, n_rows, n_rows)
                    if row_probabilities is None
                    else generator.choice(n_rows, n_rows, p=row_probabilities)
                )
                counts = np.bincount(drawn_rows, minlength=n_rows).astype(np.float64)
            generator.seed(seed)
            tree = self._tree(random_state=generator, **tree_options)
            if may_grow_quickly:
                _grow(tree, trees[0].max_features_, X, y, counts)
            else:
                # Options that hold for the first tree hold for all.
                with config_context(skip_parameter_validation=bool(trees), assume_finite=True):
                    tree.fit(X, y, sample_weight=counts, check_input=False)
                if not trees and len(seeds) > 1:
                    generator.seed(seed)
                    may_grow_quickly = _grows_alike(tree, X, y, counts)
            tree.random_state = seed
            trees.append(tree)
        return trees

    def predict(self, X: Any) -> Array:
        """Return the mean prediction of the trees for rows X (n, p), of shape (n,) or (n, K).

        The trees are summed in order, so that the last digit does not depend on threads.
        """
        check_is_fitted(self)
        if not _are_few(X) or self.n_jobs not in (None, 1):
            prediction: Array = super().predict(X)
            return prediction
        X = validate_data(self, X, dtype=np.float32, reset=False)
        sum_of_trees = np.zeros((len(X), self.n_outputs_))
        for tree in self.estimators_:
            sum_of_trees += tree.tree_.predict(X).reshape(sum_of_trees.shape)
        mean_of_trees: Array = sum_of_trees / len(self.estimators_)
        return mean_of_trees[:, 0] if self.n_outputs_ == 1 else mean_of_trees


class QuickForest(_QuickTrees, RandomForestRegressor):  # type: ignore[misc]
    """A random forest that is quick on few rows.

    The parameters and the trees are those of `sklearn.ensemble.RandomForestRegressor`; weights are the odds
    with which a tree draws its rows, as in scikit-learn 1.9.
    """

    _tree, _draws_rows = DecisionTreeRegressor, True


class RandomCuts(_QuickTrees, ExtraTreesRegressor):  # type: ignore[misc]
    """Trees whose cuts are drawn at random, with which default forests compete on pooled rows.

    They are those of `sklearn.ensemble.ExtraTreesRegressor`. A class of its own tells ours from a user's.
    """

    _tree, _draws_rows = ExtraTreeRegressor, False
