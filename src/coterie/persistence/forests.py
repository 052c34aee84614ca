"""The trees of a forest as a few long arrays: fifty trees one by one take longer to write than to grow.

A model goes to skops with the first tree of each of our forests; the others follow as arrays. The first tree
says what all have in common, so reading needs no more types and no more code than one tree does.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.tree import DecisionTreeRegressor
from sklearn.tree._tree import Tree

from coterie.models.forest import QuickForest
from coterie.persistence.archive import unfit

Array = NDArray[Any]
Packed = dict[str, Array]

_OWN = ("tree_", "random_state")


def _forests(part: Any) -> Iterator[QuickForest]:
    """Give out the forests in a model, always in the same order."""
    if type(part) is QuickForest and hasattr(part, "estimators_"):
        yield part
    elif isinstance(part, BaseEstimator):
        for name in sorted(vars(part)):
            yield from _forests(vars(part)[name])
    elif isinstance(part, (list, tuple)):
        for inner in part:
            yield from _forests(inner)


def _common(tree: DecisionTreeRegressor) -> dict[str, Any]:
    return {name: value for name, value in vars(tree).items() if name not in _OWN}


def _is_uniform(forest: QuickForest) -> bool:
    """Tell whether all trees differ in their nodes and seeds alone."""
    trees, first = forest.estimators_, _common(forest.estimators_[0])
    return forest.n_outputs_ == 1 and all(
        type(tree) is DecisionTreeRegressor and type(tree.random_state) is int and _common(tree) == first
        for tree in trees
    )


def _pack(trees: list[DecisionTreeRegressor]) -> Packed:
    states = [tree.tree_.__getstate__() for tree in trees]
    nodes = np.concatenate([state["nodes"] for state in states])
    packed = {f"node {name}": np.ascontiguousarray(nodes[name]) for name in nodes.dtype.names or ()}
    packed["values"] = np.concatenate([state["values"].ravel() for state in states])
    packed["sizes"] = np.array([len(state["nodes"]) for state in states])
    packed["depths"] = np.array([state["max_depth"] for state in states])
    packed["seeds"] = np.array([tree.random_state for tree in trees])
    return packed


def take_trees(model: Any) -> tuple[Any, list[Packed]]:
    """Split a fitted model into one with the first tree of each forest, and the trees of each forest.

    The first is a copy, or the model itself where there is nothing to take.
    """
    forests = list(_forests(model))
    if not forests or not all(_is_uniform(forest) for forest in forests):
        return model, []
    # A copy that is told of a list by its address takes the short one instead of copying the long one.
    short = {id(forest.estimators_): forest.estimators_[:1] for forest in forests}
    return copy.deepcopy(model, dict(short)), [_pack(forest.estimators_) for forest in forests]


def _check(packed: Packed, n_features: int) -> None:
    """Refuse trees in which a walk would leave the nodes or the columns, or never end."""
    sizes = packed["sizes"]
    n_nodes = len(packed["values"])
    nodes = [values for name, values in packed.items() if name.startswith("node ")]
    whole = sizes.ndim == 1 and (sizes > 0).all() and sizes.sum() == n_nodes
    if not whole or any(values.shape != (n_nodes,) for values in (*nodes, packed["values"])):
        raise unfit("holds trees whose parts do not fit each other")
    place = np.arange(n_nodes) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    left, right = packed["node left_child"], packed["node right_child"]
    inner, size = left != -1, np.repeat(sizes, sizes)
    falls = [(child > place) & (child < size) for child in (left, right)]
    columns = (packed["node feature"] >= 0) & (packed["node feature"] < n_features)
    if not (falls[0] & falls[1] & columns)[inner].all():
        raise unfit("holds trees whose parts do not fit each other")


def _unpack(first: DecisionTreeRegressor, packed: Packed) -> list[DecisionTreeRegressor]:
    pattern = first.tree_.__getstate__()["nodes"].dtype
    _check(packed, first.n_features_in_)
    nodes = np.empty(len(packed["values"]), dtype=pattern)
    for name in pattern.names:
        nodes[name] = packed[f"node {name}"]
    ends = np.cumsum(packed["sizes"])
    trees = []
    for start, end, depth, seed in zip(
        ends - packed["sizes"], ends, packed["depths"].tolist(), packed["seeds"].tolist(), strict=True
    ):
        grown = Tree(first.n_features_in_, np.ones(1, dtype=np.intp), 1)
        values = packed["values"][start:end].reshape(-1, 1, 1)
        size = int(end - start)
        grown.__setstate__(
            {"max_depth": depth, "node_count": size, "nodes": nodes[start:end], "values": values}
        )
        tree = copy.copy(first)
        tree.tree_, tree.random_state = grown, seed
        trees.append(tree)
    return trees


def give_trees(model: Any, packed: list[Packed]) -> Any:
    """Put the trees back into a model that `take_trees` has split; the model is changed."""
    forests = list(_forests(model))
    if packed and len(forests) != len(packed):
        raise unfit("holds trees of another model")
    for forest, trees in zip(forests, packed, strict=False):
        forest.estimators_ = _unpack(forest.estimators_[0], trees)
    return model
