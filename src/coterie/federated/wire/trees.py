"""Trees of scikit-learn as the lists of nodes that travel: thresholds and leaves, and nothing else.

How many rows reached a node, their impurity and which rows they were stay at home.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.federated.wire.program import Trees

Array = NDArray[Any]


def _joined(trees: Iterable[tuple[Array, ...]]) -> Trees:
    """Return trees as one list.

    Of every tree, for all its nodes as scikit-learn lists them: whether it is an inner one, its two children,
    feature, threshold and value.
    """
    parts: dict[str, list[Array]] = {name: [] for name in Trees.__dataclass_fields__}
    n_nodes = n_leaves = 0
    for inner, left, right, features, splits, values in trees:
        if not inner.any():
            # A tree of one leaf becomes a question whose two answers agree: nodes must ask something.
            inner, left, right = np.arange(3) == 0, np.full(3, 1), np.full(3, 2)
            features, splits, values = np.zeros(3), np.zeros(3), np.repeat(values, 3)
        place = np.where(inner, np.cumsum(inner) - 1 + n_nodes, np.cumsum(~inner) - 1 + n_leaves)
        parts["features"].append(features[inner])
        parts["splits"].append(splits[inner])
        parts["true_ids"].append(place[left[inner]])
        parts["true_leafs"].append(~inner[left[inner]])
        parts["false_ids"].append(place[right[inner]])
        parts["false_leafs"].append(~inner[right[inner]])
        parts["roots"].append(np.array([n_nodes]))
        parts["weights"].append(values[~inner])
        n_nodes += int(inner.sum())
        n_leaves += int((~inner).sum())
    joined = {name: np.concatenate(arrays) for name, arrays in parts.items()}
    numbers = {"splits", "weights"}
    return Trees(**{k: a.astype(np.float64 if k in numbers else np.int64) for k, a in joined.items()})


def plain_trees(trees: Sequence[Any], factor: float = 1.0) -> Trees:
    """Return fitted decision trees with one target as one list; the leaves are multiplied with the factor."""
    nodes = ("children_left", "children_right", "feature", "threshold")
    return _joined(
        (tree.children_left != -1, *(getattr(tree, name) for name in nodes), factor * tree.value[:, 0, 0])
        for tree in (model.tree_ for model in trees)
    )


def histogram_trees(predictors: Sequence[Any]) -> Trees:
    """Return the trees of histogram gradient boosting, without categorical questions, as one list."""
    # An infinite threshold parts missing from present values; rows here have no missing ones.
    most, nodes = np.finfo(float).max, ("left", "right", "feature_idx")
    return _joined(
        (t["is_leaf"] == 0, *(t[n] for n in nodes), np.minimum(t["num_threshold"], most), t["value"])
        for t in (predictor.nodes for predictor in predictors)
    )
