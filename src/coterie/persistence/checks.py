"""Whether what was read makes a fitted model: the right records, of sizes that fit each other."""

from __future__ import annotations

from dataclasses import fields
from itertools import pairwise
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie._rows import Learners, Standardization
from coterie.encoding import TableRecipe
from coterie.encoding.columns import DATE_PARTS, ENCODERS
from coterie.kernels.landmarks import LandmarkTiles
from coterie.kernels.tiles import DenseTiles
from coterie.nested import NestedCollaboration
from coterie.persistence.archive import unfit
from coterie.persistence.parameters import MOST, MOST_COLUMNS, MOST_FITS, cleaned, may_be, n_columns, n_fits
from coterie.records import Collaboration, Exchange, Partition, Selection
from coterie.verdicts import Admission, Gains, Stability, Standing

Array = NDArray[Any]

# What a fitted estimator cannot do without; it may have more.
REQUIRED: dict[str, tuple[type[Any], ...]] = {
    "selection_": (Selection,),
    "exchange_": (Exchange,),
    "partition_": (Partition,),
    "collaboration_": (Collaboration,),
    "gains_": (Gains,),
    "standing_": (Standing,),
    "stability_": (Stability, NoneType),
    "admission_": (Admission, NoneType),
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
    "_loners": (tuple,),
    "_group_column": (str, int, NoneType),
}


def _need(fits: Any, what: str) -> None:
    if not fits:
        raise unfit(f"holds {what} that does not fit the rest")


def _within(values: Array, bound: int, least: int = 0) -> bool:
    return values.dtype.kind in "iu" and bool(((values >= least) & (values < bound)).all())


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
    _need(record.traits.ndim == 2 and len(record.traits) == n_ways, what)
    _need(record.told.shape == (n_models,) and record.told.dtype == bool, what)
    seen = n_features + record.traits.shape[1]
    told = [record.models[p] for p in np.flatnonzero(record.told)]
    _need(all(getattr(model, "n_features_in_", seen) == seen for model in told), what)
    _need(record.units.shape == (n_features,) and record.newcomer_ratios.shape == (2,), what)
    _need(record.shares.shape == (len(n_rows), len(record.share_names)), what)
    _need(record.form in ("pooled", "average"), what)
    _check_rows(record.plain_residuals, n_rows, what)
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
    n_ways, n_loners = len(state["collaboration_"].weights), len(state["_loners"])
    _need(all(hasattr(model, "predict") for model in state["_loners"]), "a newcomer's model")
    n_units = n_shaping + len(admitted) if units is None else len(units.centre_x)
    if units is not None:
        shape = n_units, state["n_features_in_"]
        _need(n_units >= n_shaping, "a standardization")
        _need(units.centre_x.shape == units.spread_x.shape == shape, "a standardization")
        _need(units.centre_y.shape == units.spread_y.shape == shape[:1], "a standardization")
    for pair in admitted.values():
        plain = isinstance(pair, tuple) and len(pair) == 2 and all(type(part) is int for part in pair)
        _need(plain and -n_loners <= pair[0] < n_ways and 0 <= pair[1] < n_units, "a newcomer")


def _check_table(state: dict[str, Any], n_shaping: int) -> None:
    ids, labels = state["learner_ids_"], state["learner_labels_"]
    _need(ids.shape == (n_shaping + len(state["_admitted"]),), "a list of learners")
    # A newcomer whom no cluster fits has the label -1.
    _need(labels.shape == ids.shape and _within(labels, state["n_clusters_"], -1), "a list of labels")
    for name, column in state["gains_"].items():
        sized = isinstance(column, np.ndarray) and column.shape == ids.shape
        _need(isinstance(name, str) and sized, "a table of gains")


def _check_standing(record: Standing, shaping: Learners, n_clusters: int) -> None:
    what, n = "a Standing", len(shaping)
    _need(record.learner_ids.shape == (n,), what)
    _need(set(record.learner_ids.tolist()) == set(shaping.ids.tolist()), what)
    _need(record.losses.shape == record.fits.shape == (n, n_clusters), what)
    _need(record.losses.dtype == np.float64 and record.fits.dtype == record.related.dtype == bool, what)
    _need(record.nearest_other.shape == (n,) and _within(record.nearest_other, n_clusters, -1), what)
    _need(record.related.shape == (n_clusters,), what)


def _check_stability(record: Stability | None, shaping: Learners, n_clusters: int) -> None:
    if record is None:
        return
    what, n = "a Stability", len(shaping)
    _need(
        record.learner_ids.shape == (n,) and set(record.learner_ids.tolist()) == set(shaping.ids.tolist()),
        what,
    )
    _need(record.membership.shape == (n, n_clusters) and record.membership.dtype == np.float64, what)
    _need(record.n_clusters.ndim == 1 and record.n_clusters.dtype.kind == "i", what)
    _need(record.shares.shape == record.n_clusters.shape and record.n_replicates > 0, what)


def _check_admission(record: Admission | None, admitted: dict[Any, Any], n_clusters: int) -> None:
    what = "an Admission"
    _need((record is None) == (not admitted), what)
    if record is None:
        return
    n = len(admitted)
    _need(record.learner_ids.shape == (n,) and set(record.learner_ids.tolist()) == set(admitted), what)
    _need(record.labels.shape == record.nearest.shape == record.sure.shape == (n,), what)
    _need(_within(record.labels, n_clusters, -1) and _within(record.nearest, n_clusters), what)
    _need(record.similarities.shape == record.probabilities.shape == (n, n_clusters), what)


def _check_recipe(recipe: Any, names: Any) -> None:
    what = "a recipe for tables"
    _need(isinstance(recipe, TableRecipe) and isinstance(names, np.ndarray), what)
    _need(names.tolist() == list(recipe.features), what)
    for plan in recipe.columns:
        _need(plan.kind in (*ENCODERS, "left out"), what)
        n_fills = {"number": 1, "date": len(plan.parts)}.get(plan.kind, 0)
        _need(len(plan.fills) == n_fills and set(plan.parts) <= set(DATE_PARTS), what)
        _need(bool(plan.levels) == (plan.kind == "category"), what)


def checked_parameters(given: dict[str, Any], n_features: Any) -> dict[str, Any]:
    """Refuse parameters of a CoterieRegressor that ask for what a file must not ask for.

    Parameters
    ----------
    given : dict of str to object
        The parameters.
    n_features : object
        Number of predictors, if it is one.

    Returns
    -------
    dict of str to object
        The same, with no more threads than there are cores.
    """
    known = cleaned(given)
    engine = known.get("engine")
    _need(engine is None or isinstance(engine, str), "an engine")
    for name, value in known.items():
        _need(may_be(name, value, {}), f"a parameter {name!r}")
    _need(isinstance(n_features, int) and 0 < n_features <= MOST, "a number of predictors")
    _need(n_columns(known.get("candidates"), n_features) <= max(MOST_COLUMNS, n_features), "a polynomial")
    _need(n_fits([known.get("candidates"), known.get("splitter")]) <= MOST_FITS, "a number of fits")
    return known


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
    # A learner that was read in a stream has chosen on more rows than were kept.
    more = selection.n_rows.shape == n_rows.shape and bool((selection.n_rows >= n_rows).all())
    _need(more, "a number of rows")
    _need(all(hasattr(model, "predict") for model in selection.models), "a model")
    _check_rows(selection.residuals, n_rows, "a residual")
    _check_rows(selection.folds, n_rows, "a fold")
    source = state["exchange_"].source
    everybody = slice(0, n)
    if isinstance(source, DenseTiles):
        _need(source.tile(everybody, everybody).shape == (n, n), "a loss matrix")
    _need(rows or source is not None, "a loss matrix")
    if isinstance(source, LandmarkTiles):
        marks = source.marks
        shapes = source.from_marks.shape, source.to_marks.shape
        _need(shapes == ((len(marks), n), (n, len(marks))) and _within(marks, n), "a loss matrix")
    remade = source is None or isinstance(source, LandmarkTiles)
    stored = remade if partition.similarity is None else partition.similarity.shape == (n, n)
    _need(stored and partition.embedding.ndim == 2, "a similarity")
    _need(np.isfinite(partition.scale) and partition.scale > 0, "a scale")
    _need(_within(partition.labels, n_clusters) and partition.n_clusters == n_clusters, "a partition")
    for name in ("collaboration_", "_everybody"):
        _check_collaboration(state[name], n_clusters, n_features, n_rows)
    _check_admitted(state, n)
    _check_standing(state["standing_"], shaping, n_clusters)
    _check_stability(state["stability_"], shaping, n_clusters)
    _check_admission(state["admission_"], state["_admitted"], n_clusters)
    _check_table(state, n)
    divisors = state.get("_exponents", np.zeros(n_features, dtype=int))
    _need(isinstance(divisors, np.ndarray) and divisors.shape == (n_features,), "a unit of a column")
    _need(_within(divisors, 1100, -1100), "a unit of a column")
    names = state.get("feature_names_in_")
    _need(names is None or (isinstance(names, np.ndarray) and names.shape == (n_features,)), "a column name")
    if "table_" in state:
        _check_recipe(state["table_"], names)
