"""Whether what was read makes a fitted model: the right records, of sizes that fit each other."""

from __future__ import annotations

from dataclasses import fields
from itertools import pairwise
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie._rows import Learners, Standardization
from coterie.nested import NestedCollaboration
from coterie.persistence.archive import unfit
from coterie.records import Collaboration, Exchange, Partition, Selection
from coterie.verdicts import Gains

Array = NDArray[Any]

# What a fitted estimator cannot do without; it may have more.
REQUIRED: dict[str, tuple[type[Any], ...]] = {
    "selection_": (Selection,),
    "exchange_": (Exchange,),
    "partition_": (Partition,),
    "collaboration_": (Collaboration,),
    "gains_": (Gains,),
    "learner_ids_": (np.ndarray,),
    "learner_labels_": (np.ndarray,),
    "n_clusters_": (int,),
    "min_rows_": (int,),
    "n_features_in_": (int,),
    "_everybody": (Collaboration,),
    "_shaping": (Learners,),
    "_units": (Standardization, NoneType),
    "_entropy": (int,),
    "_admitted": (dict,),
    "_group_column": (str, int, NoneType),
}


def _need(fits: Any, what: str) -> None:
    if not fits:
        raise unfit(f"holds {what} that does not fit the rest")


def _within(values: Array, bound: int) -> bool:
    return values.dtype.kind in "iu" and bool(((values >= 0) & (values < bound)).all())


def _check_learners(shaping: Learners, n_features: int, rows: bool) -> None:
    n = len(shaping.ids)
    offsets, appearance = shaping.offsets, shaping.appearance
    _need(n > 0 and len(set(shaping.ids.tolist())) == n, "a list of learners")
    _need(offsets.shape == (n + 1,) and offsets.dtype.kind == "i" and offsets[0] == 0, "an offset")
    _need(all(end > start for start, end in pairwise(offsets.tolist())), "an offset")
    _need(appearance.dtype.kind == "i" and np.array_equal(np.sort(appearance), np.arange(n)), "an order")
    n_rows = int(offsets[-1]) if rows else 0
    _need(shaping.X.shape == (n_rows, n_features) and shaping.X.dtype == np.float64, "a table of rows")
    _need(shaping.y.shape == (n_rows,) and shaping.y.dtype == np.float64, "a response")
    _need(shaping.rows.shape == (n_rows,), "a list of rows")
    _need(shaping.weights is None or shaping.weights.shape == (n_rows,), "a list of weights")


def _check_record(record: Any, shaping: Learners) -> None:
    what = f"a {type(record).__name__}"
    n = len(shaping)
    ids = record.learner_ids.tolist()
    _need(len(ids) == n and set(ids) == set(shaping.ids.tolist()), what)
    for field in fields(record):
        value = getattr(record, field.name)
        if field.metadata.get("by_learner") and value is not None:
            length = value.n_learners if field.name == "source" else len(value)
            _need(length == n, what)


def _check_rows(residuals: tuple[Array, ...], n_rows: Array, what: str) -> None:
    _need([len(part) for part in residuals] == n_rows.tolist(), what)


def _check_nested(record: NestedCollaboration, n_features: int, n_rows: Array, what: str) -> None:
    n_ways, n_models = record.weights.shape
    _need(record.bounds.shape == (n_models, 2) and record.all_weights.shape == (n_models,), what)
    _need(record.corrections.shape == (n_ways, n_features + 1), what)
    _need(record.correction_bounds.shape == (n_ways, 2), what)
    _need(record.units.shape == (n_features,) and record.newcomer_ratios.shape == (2,), what)
    _need(record.shares.shape == (len(n_rows), len(record.share_names)), what)
    _check_rows(record.alone_residuals, n_rows, what)
    _check_rows(record.all_residuals, n_rows, what)


def _check_collaboration(record: Collaboration, n_clusters: int, n_features: int, n_rows: Array) -> None:
    what = f"a Collaboration by {record.method!r}"
    n_models = len(record.models)
    _need(len(record.names) == n_models > 0 and all(hasattr(m, "predict") for m in record.models), what)
    _need(record.weights.ndim == 2 and record.weights.shape[1] == n_models, what)
    _need(_within(record.ways, len(record.weights)), what)
    _need(len(record.newcomer_ways) == n_clusters, what)
    _need(_within(record.newcomer_ways, len(record.weights)), what)
    _check_rows(record.residuals, n_rows, what)
    if isinstance(record, NestedCollaboration):
        _check_nested(record, n_features, n_rows, what)


def _check_admitted(state: dict[str, Any], n_shaping: int) -> None:
    units, admitted = state["_units"], state["_admitted"]
    n_ways = len(state["collaboration_"].weights)
    n_units = n_shaping + len(admitted) if units is None else len(units.centre_x)
    if units is not None:
        shape = n_units, state["n_features_in_"]
        _need(n_units >= n_shaping, "a standardization")
        _need(units.centre_x.shape == units.spread_x.shape == shape, "a standardization")
        _need(units.centre_y.shape == units.spread_y.shape == shape[:1], "a standardization")
    for pair in admitted.values():
        plain = isinstance(pair, tuple) and len(pair) == 2 and all(type(part) is int for part in pair)
        _need(plain and 0 <= pair[0] < n_ways and 0 <= pair[1] < n_units, "a newcomer")


def _check_table(state: dict[str, Any], n_shaping: int) -> None:
    ids, labels = state["learner_ids_"], state["learner_labels_"]
    _need(ids.shape == (n_shaping + len(state["_admitted"]),), "a list of learners")
    _need(labels.shape == ids.shape and _within(labels, state["n_clusters_"]), "a list of labels")
    for name, column in state["gains_"].items():
        sized = isinstance(column, np.ndarray) and column.shape == ids.shape
        _need(isinstance(name, str) and sized, "a table of gains")


def check_state(state: dict[str, Any], rows: bool) -> None:
    """Refuse attributes that do not make a fitted model.

    Parameters
    ----------
    state : dict of str to object
        The attributes of a CoterieRegressor.
    rows : bool
        Whether the rows are there.
    """
    for name, kinds in REQUIRED.items():
        value = state.get(name)
        _need(name in state and isinstance(value, kinds) and not isinstance(value, bool), f"a {name!r}")
    shaping, selection, partition = state["_shaping"], state["selection_"], state["partition_"]
    n_features, n_clusters = state["n_features_in_"], state["n_clusters_"]
    _check_learners(shaping, n_features, rows)
    for name in ("selection_", "exchange_", "partition_", "collaboration_", "_everybody"):
        _check_record(state[name], shaping)
    n = len(shaping)
    place = {learner: j for j, learner in enumerate(shaping.ids.tolist())}
    n_rows = shaping.sizes[[place[i] for i in selection.learner_ids.tolist()]]
    _need(np.array_equal(selection.n_rows, n_rows), "a number of rows")
    _need(all(hasattr(model, "predict") for model in selection.models), "a model")
    _check_rows(selection.residuals, n_rows, "a residual")
    _check_rows(selection.folds, n_rows, "a fold")
    source = state["exchange_"].source
    everybody = slice(0, n)
    _need(rows if source is None else source.tile(everybody, everybody).shape == (n, n), "a loss matrix")
    _need(partition.similarity.shape == (n, n) and partition.embedding.ndim == 2, "a similarity")
    _need(_within(partition.labels, n_clusters) and partition.n_clusters == n_clusters, "a partition")
    for name in ("collaboration_", "_everybody"):
        _check_collaboration(state[name], n_clusters, n_features, n_rows)
    _check_admitted(state, n)
    _check_table(state, n)
    names = state.get("feature_names_in_")
    _need(names is None or (isinstance(names, np.ndarray) and names.shape == (n_features,)), "a column name")
