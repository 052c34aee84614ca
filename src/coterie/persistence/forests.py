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
from coterie.persistence.compiled import build_tree

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


def _unpack(first: DecisionTreeRegressor, packed: Packed) -> list[DecisionTreeRegressor]:
    """Return the trees, each of them checked as any tree of a file is."""
    pattern = first.tree_.__getstate__()["nodes"].dtype
    columns = {name: packed[f"node {name}"] for name in pattern.names}
    sizes, values = packed["sizes"], packed["values"]
    same = all(column.shape == (sizes.sum(),) for column in (*columns.values(), values))
    if not same or sizes.ndim != 1 or not (sizes > 0).all():
        raise unfit("holds trees whose parts do not fit each other")
    nodes = np.empty(len(values), dtype=pattern)
    for name, column in columns.items():
        nodes[name] = column
    shape = first.n_features_in_, np.ones(1, dtype=np.intp), 1
    ends = np.cumsum(sizes)
    trees = []
    for start, end, depth, seed in zip(
        ends - sizes, ends, packed["depths"].tolist(), packed["seeds"].tolist(), strict=True
    ):
        state = {
            "max_depth": depth,
            "node_count": int(end - start),
            "nodes": nodes[start:end],
            "values": values[start:end].reshape(-1, 1, 1),
        }
        tree = copy.copy(first)
        tree.tree_, tree.random_state = build_tree(Tree, shape, state), seed
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
