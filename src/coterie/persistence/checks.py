"""Whether what was read makes a fitted model: the right records, of sizes that fit each other."""

from __future__ import annotations

from dataclasses import fields
from itertools import pairwise
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.collaboration.nested import NestedCollaboration
from coterie.encoding import TableRecipe
from coterie.encoding.columns import DATE_PARTS, ENCODERS
from coterie.fit.record import Newcomer
from coterie.kernels.tiles import DenseTiles
from coterie.method.landmarks import LandmarkTiles
from coterie.persistence.archive import unfit
from coterie.persistence.parameters import MOST, MOST_COLUMNS, MOST_FITS, cleaned, may_be, n_columns, n_fits
from coterie.records import Collaboration, Exchange, Partition, Selection
from coterie.rows.learners import Learners, Standardization
from coterie.verdicts import Admission, Gains, Stability, Standing

Array = NDArray[Any]

# The parts of a fit; its options are the estimator's parameters.
PARTS: dict[str, tuple[type[Any], ...]] = {
    "selection": (Selection,),
    "exchange": (Exchange,),
    "partition": (Partition,),
    "collaboration": (Collaboration,),
    "with_all": (Collaboration,),
    "cluster_fit": (Standing,),
    "stability": (Stability, NoneType),
    "gains": (Gains,),
    "admission": (Admission, NoneType),
    "newcomers": (tuple,),
    "learners": (Learners,),
    "units": (Standardization, NoneType),
    "exponents": (np.ndarray,),
    "seed": (int,),
    "min_rows": (int,),
}
# What the estimator knows beside it; the first is always there.
ATTRIBUTES: dict[str, tuple[type[Any], ...]] = {
    "n_features_in_": (int,),
    "feature_names_in_": (np.ndarray,),
    "table_": (TableRecipe,),
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


def _check_newcomers(state: dict[str, Any], n_features: int, n_shaping: int) -> None:
    units, newcomers = state["units"], state["newcomers"]
    n_ways, what = len(state["collaboration"].weights), "a newcomer"
    _need(all(isinstance(new, Newcomer) for new in newcomers), what)
    _need(all((new.way is None) == hasattr(new.model, "predict") for new in newcomers), what)
    _need(all(new.way is None or 0 <= new.way < n_ways for new in newcomers), what)
    if units is not None:
        shape = n_shaping + len(newcomers), n_features
        _need(units.centre_x.shape == units.spread_x.shape == shape, "a standardization")
        _need(units.centre_y.shape == units.spread_y.shape == shape[:1], "a standardization")


def _check_table(gains: dict[Any, Any], ids: Any, labels: Any, n_learners: int, n_clusters: int) -> None:
    _need(isinstance(ids, np.ndarray) and isinstance(labels, np.ndarray), "a list of learners")
    _need(ids.shape == (n_learners,), "a list of learners")
    # A newcomer whom no cluster fits has the label -1.
    _need(labels.shape == ids.shape and _within(labels, n_clusters, -1), "a list of labels")
    for name, column in gains.items():
        sized = isinstance(column, np.ndarray) and column.shape == ids.shape
        _need(isinstance(name, str) and sized, "a table of gains")
    _need({"learner", "cluster"} <= set(gains), "a table of gains")
    same = gains["learner"].tolist() == ids.tolist() and gains["cluster"].tolist() == labels.tolist()
    _need(same, "a table of gains")


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


def _check_admission(record: Admission | None, newcomers: tuple[Newcomer, ...], n_clusters: int) -> None:
    what, n = "an Admission", len(newcomers)
    _need((record is None) == (not newcomers), what)
    if record is None:
        return
    ids = {new.learner_id for new in newcomers}
    _need(record.learner_ids.shape == (n,) and set(record.learner_ids.tolist()) == ids, what)
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

    ``n_features`` is the number of predictors, if it is one. What is returned has no more threads than there
    are cores.
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


def check_fit(state: dict[str, Any], held: dict[str, Any], ids: Any, labels: Any, rows: bool) -> None:
    """Refuse parts that do not make a fit, and attributes of the estimator that do not belong to it.

    ``ids`` and ``labels`` are what the manifest shows of the learners; ``rows`` says whether their rows are
    there.
    """
    for known, given in ((PARTS, state), (ATTRIBUTES, held)):
        for name, value in given.items():
            _need(isinstance(value, known[name]) and not isinstance(value, bool), f"a {name!r}")
    _need("n_features_in_" in held, "a number of predictors")
    learners, selection, partition = state["learners"], state["selection"], state["partition"]
    n_features, n_clusters = held["n_features_in_"], partition.n_clusters
    _check_learners(learners, n_features, rows)
    for name in ("selection", "exchange", "partition", "collaboration", "with_all"):
        _check_record(state[name], learners)
    n = len(learners)
    place = {learner: j for j, learner in enumerate(learners.ids.tolist())}
    n_rows = learners.sizes[[place[i] for i in selection.learner_ids.tolist()]]
    # A learner that was read in a stream has chosen on more rows than were kept.
    more = selection.n_rows.shape == n_rows.shape and bool((selection.n_rows >= n_rows).all())
    _need(more, "a number of rows")
    _need(all(hasattr(model, "predict") for model in selection.models), "a model")
    _check_rows(selection.residuals, n_rows, "a residual")
    _check_rows(selection.folds, n_rows, "a fold")
    source = state["exchange"].source
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
    _need(_within(partition.labels, n_clusters), "a partition")
    for name in ("collaboration", "with_all"):
        _check_collaboration(state[name], n_clusters, n_features, n_rows)
    _check_newcomers(state, n_features, n)
    _check_standing(state["cluster_fit"], learners, n_clusters)
    _check_stability(state["stability"], learners, n_clusters)
    _check_admission(state["admission"], state["newcomers"], n_clusters)
    _check_table(state["gains"], ids, labels, n + len(state["newcomers"]), n_clusters)
    exponents = state["exponents"]
    _need(exponents.shape == (n_features,) and _within(exponents, 1100, -1100), "a unit of a column")
    names = held.get("feature_names_in_")
    _need(names is None or names.shape == (n_features,), "a column name")
    if "table_" in held:
        _check_recipe(held["table_"], names)
