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
MOST_ROWS = 5_000
_LARGEST_SEED = np.iinfo(np.int32).max
_OF_NODES = ("children_left", "children_right", "feature", "threshold", "impurity", "value")


def _are_few(X: Any) -> bool:
    """Tell whether X is a small finite array of floats."""
    return (
        isinstance(X, np.ndarray)
        and X.ndim == 2
        and X.dtype.kind == "f"
        and len(X) <= MOST_ROWS
        and bool(np.isfinite(X).all())
    )


def _grow(tree: DecisionTreeRegressor, max_features: int, X: Array, y: Array, counts: Array | None) -> None:
    """Grow a plain tree by the parts that `DecisionTreeRegressor.fit` consists of."""
    (n, p), n_outputs = X.shape, y.shape[1]
    least = tree.min_samples_leaf
    kind = RandomSplitter if tree.splitter == "random" else BestSplitter
    splitter = kind(MSE(n_outputs, n), max_features, least, 0.0, tree.random_state, None)
    depth = np.iinfo(np.int32).max if tree.max_depth is None else tree.max_depth
    split = max(tree.min_samples_split, 2 * least)
    builder = DepthFirstTreeBuilder(splitter, split, least, 0.0, depth, tree.min_impurity_decrease)
    tree.n_features_in_, tree.n_outputs_, tree.max_features_ = p, n_outputs, max_features
    tree.tree_ = Tree(p, np.ones(n_outputs, dtype=np.intp), n_outputs)
    builder.build(tree.tree_, X, y, counts, None)


def _grows_alike(first: DecisionTreeRegressor, X: Array, y: Array, counts: Array | None) -> bool:
    """Tell whether `_grow` grows the first tree again exactly; where it does not, only ``fit`` serves."""
    plain = (
        first.criterion == "squared_error"
        and first.max_leaf_nodes is None
        and first.min_weight_fraction_leaf == 0
        and first.ccp_alpha == 0
        and isinstance(first.min_samples_leaf, Integral)
        and isinstance(first.min_samples_split, Integral)
    )
    if not plain or BestSplitter is None:
        return False
    again = type(first)(**first.get_params())
    try:
        _grow(again, first.max_features_, X, y, counts)
    except (AttributeError, TypeError, ValueError):
        return False
    nodes = ((getattr(again.tree_, name), getattr(first.tree_, name)) for name in _OF_NODES)
    return all(np.array_equal(*pair) for pair in nodes)


class _QuickTrees(BaseEstimator):  # type: ignore[misc]
    """Trees grown one after the other; many rows and rarer options are left to scikit-learn's ``fit``."""

    _tree: type[DecisionTreeRegressor]
    _draws_rows: bool

    def _is_plain(self, X: Any, y: Any) -> bool:
        """Tell whether data and options are those that the quick path serves."""
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
        """Grow all trees, each from its own seed, as scikit-learn would."""
        options = {name: getattr(self, name) for name in self.estimator_params if name != "random_state"}
        seeds = check_random_state(self.random_state).randint(_LARGEST_SEED, size=int(self.n_estimators))
        n, generator, counts = len(X), np.random.RandomState(0), weights
        odds = weights / weights.sum() if weights is not None and self._draws_rows else None
        trees: list[DecisionTreeRegressor] = []
        quick = False
        for seed in seeds.tolist():
            # Rows and splits are drawn from the same seed, each from its beginning, as scikit-learn does.
            if self._draws_rows:
                generator.seed(seed)
                drawn = generator.randint(0, n, n) if odds is None else generator.choice(n, n, p=odds)
                counts = np.bincount(drawn, minlength=n).astype(np.float64)
            generator.seed(seed)
            tree = self._tree(random_state=generator, **options)
            if quick:
                _grow(tree, trees[0].max_features_, X, y, counts)
            else:
                # Options that hold for the first tree hold for all.
                with config_context(skip_parameter_validation=bool(trees), assume_finite=True):
                    tree.fit(X, y, sample_weight=counts, check_input=False)
                if not trees and len(seeds) > 1:
                    generator.seed(seed)
                    quick = _grows_alike(tree, X, y, counts)
            tree.random_state = seed
            trees.append(tree)
        return trees

    def predict(self, X: Any) -> Array:
        """Return the mean of the trees for rows of shape (n, p)."""
        check_is_fitted(self)
        if not _are_few(X) or self.n_jobs not in (None, 1):
            prediction: Array = super().predict(X)
            return prediction
        X = validate_data(self, X, dtype=np.float32, reset=False)
        total = np.zeros((len(X), self.n_outputs_))
        for tree in self.estimators_:
            total += tree.tree_.predict(X).reshape(total.shape)
        mean: Array = total / len(self.estimators_)
        return mean[:, 0] if self.n_outputs_ == 1 else mean


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
