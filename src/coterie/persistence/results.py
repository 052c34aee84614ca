"""Finished fits to bytes and back, as models are saved: JSON, arrays and skops, never pickle.

A stopped run leaves such files. Reading one runs none of its code, whoever wrote it.

Fifty trees one by one take longer to write than to grow. So a model goes to skops with the first tree of each
of our forests; the others follow as a few long arrays. The first tree says what all have in common, so
reading needs no more types and no more code than one tree does.
"""

from __future__ import annotations

import copy
import io
import json
import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.tree import DecisionTreeRegressor
from sklearn.tree._tree import Tree

from coterie._arrays import Array
from coterie._codec import parse_json
from coterie.fit.out_of_core import LearnerRead
from coterie.method.fitting import Fitted
from coterie.models.forest import QuickForest
from coterie.persistence.archive import Budget, read_stored, unfit
from coterie.persistence.arrays import pack_arrays, unpack_arrays
from coterie.persistence.codec import Decoder, Encoder
from coterie.persistence.compiled import build_tree
from coterie.persistence.models import dump_model, load_model

Packed = dict[str, Array]

# What each tree of a forest has for itself.
_OWN_OF_TREE = ("tree_", "random_state")
_ARRAYS, _TREE = "arrays.npz", "result.json"


def _forests(part: Any) -> Iterator[QuickForest]:
    """Give out the forests in a model and in its parts, always in the same order.

    The order matters: `take_trees` and `give_trees` go through them side by side.
    """
    if type(part) is QuickForest and hasattr(part, "estimators_"):
        yield part
    elif isinstance(part, BaseEstimator):
        for name in sorted(vars(part)):
            yield from _forests(vars(part)[name])
    elif isinstance(part, (list, tuple)):
        for inner in part:
            yield from _forests(inner)


def _common(tree: DecisionTreeRegressor) -> dict[str, Any]:
    """Return the attributes that all trees of a forest share: all but its nodes and its seed."""
    return {name: value for name, value in vars(tree).items() if name not in _OWN_OF_TREE}


def _is_uniform(forest: QuickForest) -> bool:
    """Tell whether the trees of a forest differ in nothing but their nodes and seeds.

    Then the first tree and arrays of nodes say everything, and the file is much smaller.
    """
    trees, common_attributes = forest.estimators_, _common(forest.estimators_[0])
    return forest.n_outputs_ == 1 and all(
        type(tree) is DecisionTreeRegressor
        and type(tree.random_state) is int
        and _common(tree) == common_attributes
        for tree in trees
    )


def _pack(trees: list[DecisionTreeRegressor]) -> Packed:
    """Return many trees as a few long arrays.

    They are the columns and values of the nodes of all trees, and the size, depth and seed of each tree.
    Thousands of small objects would take long to write one by one.
    """
    states = [tree.tree_.__getstate__() for tree in trees]
    nodes = np.concatenate([state["nodes"] for state in states])
    arrays = {f"node {name}": np.ascontiguousarray(nodes[name]) for name in nodes.dtype.names or ()}
    arrays["values"] = np.concatenate([state["values"].ravel() for state in states])
    arrays["sizes"] = np.array([len(state["nodes"]) for state in states])
    arrays["depths"] = np.array([state["max_depth"] for state in states])
    arrays["seeds"] = np.array([tree.random_state for tree in trees])
    return arrays


def take_trees(model: Any) -> tuple[Any, list[Packed]]:
    """Split a fitted model into one with the first tree of each forest, and the trees of each forest.

    The first is a copy, or the model itself where there is nothing to take.
    """
    forests = list(_forests(model))
    if not forests or not all(_is_uniform(forest) for forest in forests):
        return model, []
    # deepcopy looks objects up by their address: the copy gets the list of one tree in place of the long one.
    first_trees = {id(forest.estimators_): forest.estimators_[:1] for forest in forests}
    return copy.deepcopy(model, dict(first_trees)), [_pack(forest.estimators_) for forest in forests]


def _unpack(first: DecisionTreeRegressor, arrays: Packed) -> list[DecisionTreeRegressor]:
    """Return the trees that `_pack` packed, each of them checked as any tree of a file is.

    ``first`` is the forest's first tree, of which each is a copy with its own nodes and seed.
    """
    node_dtype = first.tree_.__getstate__()["nodes"].dtype
    columns = {name: arrays[f"node {name}"] for name in node_dtype.names}
    sizes, values = arrays["sizes"], arrays["values"]
    have_one_length = all(column.shape == (sizes.sum(),) for column in (*columns.values(), values))
    if not have_one_length or sizes.ndim != 1 or not (sizes > 0).all():
        raise unfit("holds trees whose parts do not fit each other")
    nodes = np.empty(len(values), dtype=node_dtype)
    for name, column in columns.items():
        nodes[name] = column
    arguments = first.n_features_in_, np.ones(1, dtype=np.intp), 1
    ends = np.cumsum(sizes)
    trees = []
    for start, end, depth, seed in zip(
        ends - sizes, ends, arrays["depths"].tolist(), arrays["seeds"].tolist(), strict=True
    ):
        state = {
            "max_depth": depth,
            "node_count": int(end - start),
            "nodes": nodes[start:end],
            "values": values[start:end].reshape(-1, 1, 1),
        }
        tree = copy.copy(first)
        tree.tree_, tree.random_state = build_tree(Tree, arguments, state), seed
        trees.append(tree)
    return trees


def give_trees(model: Any, packed: list[Packed]) -> Any:
    """Put the trees back into a model that `take_trees` has split; the model is changed, and returned.

    ``packed`` has the trees of each forest in the order of `_forests`; empty: the model was not split.
    """
    forests = list(_forests(model))
    if packed and len(forests) != len(packed):
        raise unfit("holds trees of another model")
    for forest, packed_trees in zip(forests, packed, strict=False):
        forest.estimators_ = _unpack(forest.estimators_[0], packed_trees)
    return model


def _dump(result: Fitted | LearnerRead) -> bytes:
    """Return a learner's fitted model, with what was found on the way, as bytes of a zip.

    Of each forest in it skops, which writes objects one by one, writes the first tree; the others are arrays.
    """
    archive_bytes = io.BytesIO()
    trees: dict[str, list[Packed]] = {}
    with zipfile.ZipFile(archive_bytes, "w") as zipped:

        def add_model(member: str, model: Any) -> None:
            """Store a model, and its trees beside it."""
            slim, trees[member] = take_trees(model)
            zipped.writestr(member, dump_model(slim))

        encoder = Encoder(add_model)
        content = {"result": encoder.encode(result), "trees": encoder.encode(trees)}
        zipped.writestr(_ARRAYS, pack_arrays(encoder.arrays))
        zipped.writestr(_TREE, json.dumps(content, allow_nan=False))
    return archive_bytes.getvalue()


class ResultCodec:
    """Writes and reads what Select finds for a learner, its model chosen by cross-validation."""

    def __init__(self) -> None:
        # Whether results with a model of this name could be read back, by name.
        self._read_back: dict[str, bool] = {}

    def dump(self, result: Fitted | LearnerRead) -> bytes | None:
        """Turn a learner's result into bytes.

        They are None where its model is of a type that a file cannot hold, or that is not trusted when it is
        read.
        """
        fitted = result.fitted if isinstance(result, LearnerRead) else result
        family = "" if fitted is None else fitted.name
        if not self._read_back.get(family, True):
            return None
        try:
            content = _dump(result)
            if family not in self._read_back:
                # The first of a family is read at once: one that could not be read is not worth writing.
                self.load(content)
        # What an object raises when it is taken apart is up to the object.
        except Exception:
            self._read_back[family] = False
            return None
        self._read_back[family] = True
        return content

    def load(self, content: bytes) -> Any:
        """Turn bytes back into a result, whoever wrote them; refuse what is no result.

        Others may have written the folder of a stopped run, so that the same checks hold as for a model file.
        """
        members, budget = read_stored(content), Budget(len(content))
        budget.spend(members[_TREE])
        match parse_json(members[_TREE]):
            case {"result": encoded, "trees": encoded_trees}:
                pass
            case _:
                raise unfit("holds no result")

        def read_model(member: str) -> Any:
            return give_trees(load_model(members[member], (), budget), trees[member])

        decoder = Decoder(unpack_arrays(members[_ARRAYS]), read_model, budget)
        # The trees first: models, which come with the result, take theirs from them.
        trees = decoder.decode(encoded_trees)
        result = decoder.decode(encoded)
        if type(result) not in (Fitted, LearnerRead):
            raise unfit("holds no result")
        return result
