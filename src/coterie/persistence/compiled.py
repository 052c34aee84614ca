"""Objects of compiled code, which follows indices without a look at where they lead.

Each is made by a function here that checks first, or that makes it anew from data that cannot do harm: a
wrong number in one of these ends the process.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie.persistence.archive import unfit
from coterie.persistence.rules import array, count, real, stay_within

Build = Callable[[type[Any], Any, Any], Any]

_NODES = ("left_child", "right_child", "feature", "threshold")
# Columns of a response that a tree may predict.
MOST_OUTPUTS = 10_000
METRICS = {
    "ChebyshevDistance64": "chebyshev",
    "EuclideanDistance64": "euclidean",
    "ManhattanDistance64": "manhattan",
    "MinkowskiDistance64": "minkowski",
}


def need(fits: Any, what: str) -> None:
    """Refuse the file where its parts do not fit each other."""
    if not fits:
        raise unfit(f"holds a {what} whose parts do not fit each other")


def descends(left: Array, right: Array, inner: Array) -> bool:
    """Tell whether the children of all inner nodes come later in the list: every walk then ends in a leaf."""
    index = np.flatnonzero(inner)
    children = np.column_stack([left[index], right[index]]).astype(np.int64)
    return bool(((children > index[:, None]) & (children < len(inner))).all()) and len(inner) > 0


def build_tree(cls: type[Any], arguments: Any, state: Any) -> Any:
    """Make a decision tree of numbers, with one output or several."""
    need(isinstance(arguments, tuple) and len(arguments) == 3 and isinstance(state, dict), "Tree")
    n_features, n_classes, n_outputs = arguments
    need(
        type(n_outputs) is int and 1 <= n_outputs <= MOST_OUTPUTS and count(2**31, 1)(n_features, {}), "Tree"
    )
    ones = isinstance(n_classes, np.ndarray) and n_classes.dtype == np.intp
    need(ones and n_classes.tolist() == [1] * n_outputs, "Tree")
    nodes = state.get("nodes")
    need(array("n", "V")(nodes, {}) and set(_NODES) <= set(nodes.dtype.names or ()), "Tree")
    n = len(nodes)
    rules = {"max_depth": count(n), "node_count": count(n, n), "values": array(f"{n} {n_outputs} 1", "f")}
    need(all(rule(state.get(name), {}) for name, rule in rules.items()), "Tree")
    inner = nodes["left_child"] != -1
    need(descends(nodes["left_child"], nodes["right_child"], inner), "Tree")
    need(stay_within(nodes["feature"][inner], n_features), "Tree")
    tree = cls(int(n_features), n_classes, n_outputs)
    tree.__setstate__({name: state[name] for name in ("nodes", *rules)})
    return tree


def build_metric(cls: type[Any], arguments: Any, state: Any) -> Any:
    """Make a distance anew from its name."""
    from sklearn.metrics import DistanceMetric

    name = METRICS[cls.__name__]
    if name != "minkowski":
        return DistanceMetric.get_metric(name)
    need(isinstance(state, tuple) and len(state) > 0 and real(state[0], {}), cls.__name__)
    return DistanceMetric.get_metric(name, p=float(state[0]))


def build_neighbours(cls: type[Any], arguments: Any, state: Any) -> Any:
    """Make a search tree anew from its rows, which gives the same tree."""
    need(isinstance(state, tuple) and len(state) >= 12 and array("n p", "f")(state[0], {}), cls.__name__)
    need(count(2**31, 1)(state[4], {}) and type(state[11]).__name__ in METRICS, cls.__name__)
    return cls(state[0], leaf_size=int(state[4]), metric=state[11])


def build_loss(cls: type[Any], arguments: Any, state: Any) -> Any:
    """Make a compiled loss, of one number at most."""
    need(isinstance(arguments, tuple) and len(arguments) <= 1, cls.__name__)
    need(all(real(value, {}) for value in arguments), cls.__name__)
    return cls(*(float(value) for value in arguments))


def build_check(cls: type[Any], arguments: Any, state: Any) -> Any:
    """Make the check of numerical columns that histogram boosting keeps."""
    from sklearn.utils import check_array

    whole = isinstance(state, dict) and state.get("func") is check_array and state.get("args") == ()
    kinds = state["kwds"].get("dtype") if whole and isinstance(state["kwds"], dict) else None
    need(kinds == [np.float64] and state["kwds"].get("ensure_all_finite") is False, "partial")
    return partial(check_array, dtype=[np.float64], ensure_all_finite=False)


def random_state(state: Any) -> np.random.RandomState:
    """Make a generator of the older kind in a state that it can have been in."""
    match state:
        case {"bit_generator": "MT19937", "state": {"key": key, "pos": pos}, "has_gauss": 0 | 1}:
            fits = array("624", "u")(key, {}) and count(624)(pos, {}) and real(state.get("gauss"), {})
            need(fits, "RandomState")
            made = np.random.RandomState(0)
            made.set_state(state)
            return made
    raise unfit("holds a generator of random numbers that does not fit")


def generator(state: Any) -> np.random.Generator:
    """Make a generator in a given state."""
    match state:
        case {"bit_generator": "PCG64", "state": {"state": place, "inc": step}, "has_uint32": 0 | 1}:
            large, word = count(2**128 - 1), state.get("uinteger")
            need(large(place, {}) and large(step, {}) and count(2**32 - 1)(word, {}), "Generator")
            made = np.random.PCG64(0)
            made.state = state
            return np.random.Generator(made)
    raise unfit("holds a generator of random numbers that does not fit")
