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
# What a row of a search tree costs at each level, in bytes.
_TREE_BYTES = 4
# Columns of a response that a tree may predict.
MAX_OUTPUTS = 10_000
METRICS = {
    "ChebyshevDistance64": "chebyshev",
    "EuclideanDistance64": "euclidean",
    "ManhattanDistance64": "manhattan",
    "MinkowskiDistance64": "minkowski",
}


def need(is_sound: Any, what: str) -> None:
    """Refuse the file where its parts do not fit each other."""
    if not is_sound:
        raise unfit(f"holds a {what} whose parts do not fit each other")


def descends(left: Array, right: Array, is_inner: Array) -> bool:
    """Tell whether the children of all inner nodes come later in the list of N nodes, and inside of it.

    Then every walk down the tree ends in a leaf, and no forged file can make it endless. ``left`` and
    ``right`` (N,) are indices of children, ``is_inner`` (N,) marks the nodes that have any.
    """
    inner_nodes = np.flatnonzero(is_inner)
    children = np.column_stack([left[inner_nodes], right[inner_nodes]]).astype(np.int64)
    return bool(((children > inner_nodes[:, None]) & (children < len(is_inner))).all()) and len(is_inner) > 0


def build_tree(cls: type[Any], arguments: Any, state: Any) -> Any:
    """Make a decision tree of scikit-learn, of regression with one output or several, after all checks.

    ``arguments`` are those of its constructor and ``state`` that of its pickle. Compiled code follows its
    indices unchecked, so children and features must lie inside.
    """
    need(isinstance(arguments, tuple) and len(arguments) == 3 and isinstance(state, dict), "Tree")
    n_features, n_classes, n_outputs = arguments
    need(type(n_outputs) is int and 1 <= n_outputs <= MAX_OUTPUTS and count(2**31, 1)(n_features, {}), "Tree")
    are_numbers = isinstance(n_classes, np.ndarray) and n_classes.dtype == np.intp
    need(are_numbers and n_classes.tolist() == [1] * n_outputs, "Tree")
    nodes = state.get("nodes")
    need(array("n", "V")(nodes, {}) and set(_NODES) <= set(nodes.dtype.names or ()), "Tree")
    n_nodes = len(nodes)
    rules = {
        "max_depth": count(n_nodes),
        "node_count": count(n_nodes, n_nodes),
        "values": array(f"{n_nodes} {n_outputs} 1", "f"),
    }
    need(all(rule(state.get(name), {}) for name, rule in rules.items()), "Tree")
    is_inner = nodes["left_child"] != -1
    need(descends(nodes["left_child"], nodes["right_child"], is_inner), "Tree")
    need(stay_within(nodes["feature"][is_inner], n_features), "Tree")
    tree = cls(int(n_features), n_classes, n_outputs)
    tree.__setstate__({name: state[name] for name in ("nodes", *rules)})
    return tree


def build_metric(cls: type[Any], arguments: Any, state: Any) -> Any:
    """Make a distance anew from its name; only Minkowski takes a number, its power, from the state.

    The rest of the state holds pointers and sizes that compiled code would trust.
    """
    from sklearn.metrics import DistanceMetric

    name = METRICS[cls.__name__]
    if name != "minkowski":
        return DistanceMetric.get_metric(name)
    need(isinstance(state, tuple) and len(state) > 0 and real(state[0], {}), cls.__name__)
    return DistanceMetric.get_metric(name, p=float(state[0]))


def tree_bytes(state: Any) -> int:
    """Return what a search tree of the rows of a stored state takes: its nodes, its order, and the time.

    A tree of two million rows of one column, with leaves of one row, took 142 MB and two seconds. That is
    four bytes for each row and each halving of the rows.
    """
    rows = state[0] if isinstance(state, tuple) and state else None
    n_rows = len(rows) if isinstance(rows, np.ndarray) and rows.ndim else 0
    return _TREE_BYTES * n_rows * n_rows.bit_length()


def build_neighbours(cls: type[Any], arguments: Any, state: Any) -> Any:
    """Make a search tree (KDTree or BallTree) anew from its rows, leaf size and distance.

    The indices in the file are not used, for compiled code would follow them: the same rows give the same
    tree. Of the state (a tuple) entry 0 has the rows, 4 the leaf size and 11 the distance.
    """
    need(isinstance(state, tuple) and len(state) >= 12 and array("n p", "f")(state[0], {}), cls.__name__)
    need(count(2**31, 1)(state[4], {}) and type(state[11]).__name__ in METRICS, cls.__name__)
    return cls(state[0], leaf_size=int(state[4]), metric=state[11])


def build_loss(cls: type[Any], arguments: Any, state: Any) -> Any:
    """Make a compiled loss, of one number at most."""
    need(isinstance(arguments, tuple) and len(arguments) <= 1, cls.__name__)
    need(all(real(value, {}) for value in arguments), cls.__name__)
    return cls(*(float(value) for value in arguments))


def build_check(cls: type[Any], arguments: Any, state: Any) -> Any:
    """Make the check of numerical columns that histogram boosting keeps; refuse other functions.

    It is a partial call of a function, which could otherwise be any function with any arguments.
    """
    from sklearn.utils import check_array

    is_check_array = isinstance(state, dict) and state.get("func") is check_array and state.get("args") == ()
    dtypes = state["kwds"].get("dtype") if is_check_array and isinstance(state["kwds"], dict) else None
    need(dtypes == [np.float64] and state["kwds"].get("ensure_all_finite") is False, "partial")
    return partial(check_array, dtype=[np.float64], ensure_all_finite=False)


def random_state(state: Any) -> np.random.RandomState:
    """Return a RandomState of NumPy in a stored state; refuse one that it cannot have been in.

    Its position ``pos`` is an index into 624 words, which compiled code follows.
    """
    match state:
        case {"bit_generator": "MT19937", "state": {"key": key, "pos": pos}, "has_gauss": 0 | 1}:
            is_sound = array("624", "u")(key, {}) and count(624)(pos, {}) and real(state.get("gauss"), {})
            need(is_sound, "RandomState")
            restored = np.random.RandomState(0)
            restored.set_state(state)
            return restored
    raise unfit("holds a generator of random numbers that does not fit")


def generator(state: Any) -> np.random.Generator:
    """Return a Generator of NumPy, of the kind PCG64, in a stored state; refuse any other state.

    State and increment are numbers of 128 bits; 32 spare bits may be left from the last draw.
    """
    match state:
        case {"bit_generator": "PCG64", "state": {"state": position, "inc": step}, "has_uint32": 0 | 1}:
            is_128_bits, spare_bits = count(2**128 - 1), state.get("uinteger")
            need(
                is_128_bits(position, {}) and is_128_bits(step, {}) and count(2**32 - 1)(spare_bits, {}),
                "Generator",
            )
            restored = np.random.PCG64(0)
            restored.state = state
            return np.random.Generator(restored)
    raise unfit("holds a generator of random numbers that does not fit")
