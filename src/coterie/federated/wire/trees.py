"""Trees of scikit-learn as the lists of nodes that travel: thresholds and leaves, and nothing else.

How many rows reached a node, their impurity and which rows they were stay at home.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.federated.wire.program import Trees

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class _Tree:
    """One tree as scikit-learn lists it: every node has its children's places, or is a leaf."""

    inner: Array
    left: Array
    right: Array
    features: Array
    splits: Array
    values: Array


def _plain_tree(tree: Any, factor: float) -> _Tree:
    values = factor * tree.value[:, 0, 0]
    inner = tree.children_left != -1
    return _Tree(inner, tree.children_left, tree.children_right, tree.feature, tree.threshold, values)


def _histogram_tree(predictor: Any) -> _Tree:
    nodes = predictor.nodes
    # An infinite threshold parts missing from present values; rows here have no missing ones.
    splits = np.minimum(nodes["num_threshold"], np.finfo(float).max)
    inner = nodes["is_leaf"] == 0
    left, right, features = (nodes[name].astype(np.int64) for name in ("left", "right", "feature_idx"))
    return _Tree(inner, left, right, features, splits, nodes["value"])


def _stump(tree: _Tree) -> _Tree:
    """Return a tree of one leaf as a question whose two answers agree: nodes must ask something."""
    zeros = np.zeros(3, dtype=np.int64)
    return _Tree(
        np.array([True, False, False]), zeros + 1, zeros + 2, zeros, np.zeros(3), np.repeat(tree.values, 3)
    )


def _joined(trees: Sequence[_Tree]) -> Trees:
    parts: dict[str, list[Array]] = {name: [] for name in Trees.__dataclass_fields__}
    n_nodes = n_leaves = 0
    for tree in trees:
        whole = tree if tree.inner.any() else _stump(tree)
        inner = whole.inner
        place = np.where(inner, np.cumsum(inner) - 1 + n_nodes, np.cumsum(~inner) - 1 + n_leaves)
        left, right = whole.left[inner], whole.right[inner]
        parts["features"].append(whole.features[inner])
        parts["splits"].append(whole.splits[inner])
        parts["true_ids"].append(place[left])
        parts["true_leafs"].append(~inner[left])
        parts["false_ids"].append(place[right])
        parts["false_leafs"].append(~inner[right])
        parts["roots"].append(np.array([n_nodes]))
        parts["weights"].append(whole.values[~inner])
        n_nodes += int(inner.sum())
        n_leaves += int((~inner).sum())
    joined = {name: np.concatenate(arrays) for name, arrays in parts.items()}
    numbers = {"splits", "weights"}
    return Trees(**{k: a.astype(np.float64 if k in numbers else np.int64) for k, a in joined.items()})


def plain_trees(trees: Sequence[Any], factor: float = 1.0) -> Trees:
    """Return fitted decision trees with one target as one list; the leaves are multiplied with the factor."""
    return _joined([_plain_tree(tree.tree_, factor) for tree in trees])


def histogram_trees(predictors: Sequence[Any]) -> Trees:
    """Return the trees of histogram gradient boosting, without categorical questions, as one list."""
    return _joined([_histogram_tree(predictor) for predictor in predictors])
