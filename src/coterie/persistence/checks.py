"""Whether what was read makes a fitted model: the right records, of sizes that fit each other.

A file may be damaged or hostile. Code that predicts takes indices and sizes on trust, so they are checked
here. Each check raises a PersistenceError; its ``what`` names the part in the error's sentence.
"""

from __future__ import annotations

from dataclasses import fields
from itertools import pairwise
from typing import Any, TypedDict

import numpy as np

from coterie._arrays import Array
from coterie.collaboration.classes import (
    ClassAverages,
    ClassNewcomers,
    Directions,
    NestedClasses,
    PredictorScale,
)
from coterie.collaboration.nested import AverageNewcomers, NestedCollaboration, PooledNewcomers
from coterie.collaboration.nested.describing import Describer
from coterie.collaboration.nested.sums import Units
from coterie.encoding import TableRecipe
from coterie.encoding.columns import DATE_PARTS, ENCODERS
from coterie.fit.record import Fit
from coterie.kernels.losses import DenseTiles
from coterie.loss import SQUARED_ERROR, BrierScore, Loss
from coterie.method.landmarks import LandmarkTiles
from coterie.persistence.archive import unfit
from coterie.persistence.codec import checked_fields
from coterie.persistence.parameters import (
    MAX_COLUMNS,
    MAX_FITS,
    MAX_SETTING,
    cleaned,
    may_be,
    n_columns,
    n_fits,
)
from coterie.persistence.rules import Rule, Sizes, array, doubles, rules_of, stay_within, within
from coterie.records import Collaboration, OwnResiduals
from coterie.rows.learners import Learners, Standardization
from coterie.verdicts import Admission, ClusterFit, GainModel, Intervals, LabelSets, Stability
from coterie.verdicts.spread import Scales, Spread

# What trees of nested coteries are added to: a model may predict what is left over a line.
BASES = {"nothing", "line", "coterie line", "level"}
# What models of classes answer.
KINDS = {"own", "trees", "cuts", "beside", "beside coterie"}
# The parts of a fit; its options are the estimator's parameters.
PARTS = tuple(part.name for part in fields(Fit) if part.name != "options")


class Attributes(TypedDict, total=False):
    """What the estimator knows beside its fit; the first is always there."""

    n_features_in_: int
    feature_names_in_: Array
    classes_: Array
    table_: TableRecipe
    target_name_: str
    ranges_: Array
    _group_column: str | int | None


# The shapes and kinds of records' arrays, as in the table of allowed types. The letters: n learners and a
# newcomers with r rows, c columns of the response and p predictors (q = p + 1), in k clusters, predicted by m
# models with w rows of weights.
SHAPES: dict[type[Any], dict[str, Rule]] = {
    Learners: rules_of("X: double r p, y: double r c, rows: r, weights: maybe r"),
    Standardization: rules_of("centre_x: e p, spread_x: e p, centre_y: e c, spread_y: e"),
    LandmarkTiles: {"marks": within("c", "n"), **rules_of("from_marks: c n, to_marks: n c")},
    Collaboration: {
        **rules_of("weights: w m, plausible: maybe w 2"),
        "weight_rows": within("n", "w"),
        "newcomer_weight_rows": within("k", "w"),
    },
    NestedCollaboration: rules_of(
        "bounds: m 2, corrections: w q, correction_bounds: w 2, limits: 2 p, "
        "context: w t, mask: bool m t, shares: n s"
    ),
    NestedClasses: rules_of(
        "line_weights: w 2, log_weights: w m, log_line_weights: w 2, lines: w c q, coterie_lines: w c q, "
        "context: w t, mask: bool m t, takes_line: bool m, shares: n s, calibration: maybe float v"
    ),
    ClassAverages: rules_of(
        "parts: w e m, part_shares: w d, lines: w x c q, limits: w x c 2, bounds: m 2, shares: n s, "
        "ratios: 2, units: p"
    ),
    ClassNewcomers: rules_of("common: c 1 q, coterie_common: c k q, weights: m, line_weights: 2"),
    PredictorScale: rules_of("centre: p, spread: p, low: p, high: p"),
    Directions: rules_of("offsets: d c, slopes: x z"),
    AverageNewcomers: rules_of("ratios: 2, units: p"),
    Units: rules_of("centre: d, spread: d, low: d, high: d"),
    Describer: rules_of("common: b, directions: x d, scale: 2"),
    PooledNewcomers: {
        **rules_of("weights: e, coterie_lines: z b, bounds: k 2"),
        "positions": array("e", "i"),
    },
    ClusterFit: {
        **rules_of("losses: double n k, fits: bool n k, related: bool k"),
        "nearest_other": within("n", "k", -1),
    },
    OwnResiduals: rules_of("bounds: n 2"),
    GainModel: rules_of("weights: g, shares: g, variances: g"),
    Stability: {**rules_of("membership: double n k, shares: s"), "n_clusters": array("s", "i")},
    Intervals: {
        **rules_of("scales: double e, counted: bool e, shared: double u 2"),
        "clusters": within("e", "k", -1),
    },
    LabelSets: {**rules_of("counted: bool e, shared: double u 2"), "clusters": within("e", "k", -1)},
    Scales: rules_of("centres: double d"),
    Spread: rules_of("bounds: double 2"),
    Admission: {
        "labels": within("a", "k", -1),
        "nearest": within("a", "k"),
        **rules_of("sure: a, similarities: a k, probabilities: a k"),
    },
}


def _need(condition: Any, what: str) -> None:
    """Refuse a part of a fit, named ``what`` in the error, unless a condition holds."""
    if not condition:
        raise unfit(f"holds {what} that does not fit the rest")


def _check_shapes(kind: type[Any], record: Any, sizes: Sizes, what: str) -> Sizes:
    """Refuse a record whose arrays are not of the shapes in `SHAPES`; return the sizes known by then.

    ``sizes`` are those of letters that are known before, by letter, and stay as they are; ``what`` names the
    record for the error.
    """
    known_sizes = dict(sizes)
    for name, rule in SHAPES[kind].items():
        _need(rule(getattr(record, name), known_sizes), what)
    return known_sizes


def _is_about(record: Any, ids: list[Any]) -> bool:
    """Tell whether a record is about these learners, in any order."""
    return record.learner_ids.shape == (len(ids),) and set(record.learner_ids.tolist()) == set(ids)


def _check_learners(learners: Learners, sizes: Sizes, rows: bool) -> None:
    """Refuse learners whose ids repeat, or whose offsets or order do not fit their rows.

    ``offsets`` (n + 1,) says where each learner's rows begin, and ``appearance`` (n,) is the order in which
    the learners came, a permutation. Without ``rows`` the file was saved without them, and the tables are
    empty.
    """
    n_learners = len(learners.ids)
    offsets, appearance = learners.offsets, learners.appearance
    _need(n_learners > 0 and len(set(learners.ids.tolist())) == n_learners, "a list of learners")
    _need(offsets.shape == (n_learners + 1,) and offsets.dtype.kind == "i" and offsets[0] == 0, "an offset")
    _need(all(end > start for start, end in pairwise(offsets.tolist())), "an offset")
    _need(
        appearance.dtype.kind == "i" and np.array_equal(np.sort(appearance), np.arange(n_learners)),
        "an order",
    )
    n_rows = int(offsets[-1]) if rows else 0
    sizes_of_rows = {**sizes, "r": n_rows, "c": learners.loss.n_columns}
    _check_shapes(Learners, learners, sizes_of_rows, "a table of rows")


def _check_record(record: Any, ids: list[Any]) -> None:
    """Refuse a record that is about other learners, or whose fields by learner have another length.

    Fields by learner are marked so in the record's own definition (``by_learner``). Only ``source``, the
    losses of models on rows, has no length.
    """
    what = f"a {type(record).__name__}"
    _need(_is_about(record, ids), what)
    for field in fields(record):
        value = getattr(record, field.name)
        if field.metadata.get("by_learner") and value is not None:
            length = value.n_learners if field.name == "source" else len(value)
            _need(length == len(ids), what)


def _check_rows(parts: tuple[Array, ...], n_rows: Array, what: str, ndim: int = 2) -> None:
    """Refuse a tuple that has not an array for each learner, with an entry for each of its rows.

    ``n_rows`` (n,) are the learners' rows. Arrays have ``ndim`` dimensions: residuals have two, for they have
    a column for each of the response.
    """
    _need([len(part) for part in parts] == n_rows.tolist(), what)
    _need(all(part.ndim == ndim for part in parts), what)


def _check_newcomers_of(record: AverageNewcomers | PooledNewcomers, sizes: Sizes, what: str) -> None:
    """Refuse a record for newcomers, learners that came after the fit, whose arrays do not fit.

    Averages have ratios and units only. Of the pooled form, predictors are scaled by ``units``, a learner is
    described by ``describer`` in columns of numbers (the context) that models read, and positions are those
    of models.
    """
    if isinstance(record, AverageNewcomers):
        _check_shapes(AverageNewcomers, record, sizes, what)
        return
    units, describer = record.units, record.describer
    known_sizes = _check_shapes(Units, units, {}, what)
    _need(known_sizes["d"] <= sizes["p"] and np.isfinite(units.middle) and units.size > 0, what)
    describer_sizes = {
        "d": known_sizes["d"],
        "b": known_sizes["d"] + 1,
        "e": len(record.bases),
        "k": sizes["k"],
    }
    _check_shapes(Describer, describer, describer_sizes, what)
    _need(all(array("x b")(centres, dict(describer_sizes)) for centres in describer.centres), what)
    _check_shapes(PooledNewcomers, record, describer_sizes, what)
    _need(stay_within(record.positions, sizes["m"], -1), what)
    # Its columns: level, offset and spread, the directions of slopes, and the coterie at each resolution.
    n_context = 3 + len(describer.directions) + len(describer.centres) + record.several
    _need(n_context <= sizes["t"] and set(record.bases) <= BASES, what)


def _check_nested(record: NestedCollaboration, sizes: Sizes, n_rows: Array, what: str) -> None:
    """Refuse nested coteries whose arrays, models and newcomers do not fit each other.

    Nested coteries: each learner mixes models of itself, its coterie and all. A model reads the predictors
    and those columns of the context (numbers that describe a learner) that its row of the mask shows.
    """
    known_sizes = _check_shapes(NestedCollaboration, record, {**sizes, "s": len(record.share_names)}, what)
    n_columns_read = known_sizes["p"] + record.mask.sum(axis=1)
    widths = zip(record.models, n_columns_read.tolist(), strict=True)
    _need(all(getattr(model, "n_features_in_", n_columns) == n_columns for model, n_columns in widths), what)
    _need(record.form in ("pooled", "average") and 0 <= record.all_row < len(record.weights), what)
    _check_newcomers_of(record.newcomers, known_sizes, what)
    for residuals in (record.plain_residuals, record.all_residuals):
        _check_rows(residuals, n_rows, what)


def _check_classes(record: NestedClasses, sizes: Sizes, n_rows: Array, what: str) -> None:
    """Refuse nested coteries of classes whose arrays, models and newcomers do not fit each other.

    A model reads the predictors, the context columns of its mask, and the columns of the line if it takes
    that. A model beside a line (it predicts what is left over) has one part for each column of the response.
    """
    loss = record.loss
    if not isinstance(loss, BrierScore):
        raise unfit(f"holds {what} that does not fit the rest")
    n_columns, newcomers = loss.n_columns, record.newcomers
    sizes_of_classes = {**sizes, "c": n_columns, "s": len(record.share_names), "v": loss.n_classes}
    known_sizes = _check_shapes(NestedClasses, record, sizes_of_classes, what)
    _check_shapes(PredictorScale, record.scale, known_sizes, what)
    _need(len(record.kinds) == known_sizes["m"] and set(record.kinds) <= KINDS, what)
    n_columns_read = known_sizes["p"] + record.mask.sum(axis=1) + n_columns * record.takes_line
    for model, n_columns_of_model, kind in zip(
        record.models, n_columns_read.tolist(), record.kinds, strict=True
    ):
        parts = getattr(model, "estimators_", None) if kind.startswith("beside") else [model]
        is_sound = isinstance(parts, list) and (kind in ("own", "trees", "cuts") or len(parts) == n_columns)
        _need(
            is_sound
            and all(
                getattr(part, "n_features_in_", n_columns_of_model) == n_columns_of_model
                for part in parts or ()
            ),
            what,
        )
    _need(0 <= record.all_row < len(record.weights), what)
    if newcomers is not None:
        _check_shapes(ClassNewcomers, newcomers, known_sizes, what)
        slopes = {"c": n_columns, "z": n_columns * known_sizes["p"]}
        sizes_of_directions = _check_shapes(Directions, newcomers.directions, slopes, what)
        _need(
            sizes_of_directions["d"] + sizes_of_directions["x"] + (known_sizes["k"] > 1) <= known_sizes["t"],
            what,
        )
        _need(len(newcomers.ratios) == len(newcomers.coterie_ratios) == n_columns, what)
    for residuals in (record.plain_residuals, record.all_residuals):
        _check_rows(residuals, n_rows, what)


def _check_class_averages(record: ClassAverages, sizes: Sizes, n_rows: Array, what: str) -> None:
    """Refuse averages of classifiers, mixed per learner by weights, whose parts do not fit each other.

    ``sizes`` are those of the letters in `SHAPES`, ``n_rows`` (n,) the learners' rows.
    """
    # Sources of a prediction, such as the coterie's model, beside the first of them.
    n_shared = len(record.share_names) - 1
    sizes_of_averages = {"c": record.loss.n_columns, "s": n_shared + 1, "e": n_shared + 1, "x": 2 * n_shared}
    known_sizes = _check_shapes(
        ClassAverages, record, {**sizes, **sizes_of_averages, "d": 2 * n_shared + 1}, what
    )
    _need(isinstance(record.loss, BrierScore) and n_shared > 0, what)
    _need(
        all(
            getattr(model, "n_features_in_", known_sizes["p"]) == known_sizes["p"] for model in record.models
        ),
        what,
    )
    _need(0 <= record.all_row < len(record.weights), what)
    for residuals in (record.plain_residuals, record.all_residuals):
        _check_rows(residuals, n_rows, what)


def _check_collaboration(record: Collaboration, sizes: Sizes, n_rows: Array) -> None:
    """Refuse a collaboration whose weights, models and residuals do not fit each other.

    A collaboration mixes m models by w rows of weights; ``n_rows`` (n,) are the learners' rows. What its kind
    has beyond that is checked by the function for the kind.
    """
    what = f"a Collaboration by {record.method!r}"
    n_models = len(record.models)
    _need(len(record.names) == n_models > 0 and all(hasattr(m, "predict") for m in record.models), what)
    known_sizes = _check_shapes(Collaboration, record, {**sizes, "m": n_models}, what)
    _check_rows(record.residuals, n_rows, what)
    if isinstance(record, ClassAverages):
        _check_class_averages(record, known_sizes, n_rows, what)
    if isinstance(record, NestedClasses):
        _check_classes(record, known_sizes, n_rows, what)
    if isinstance(record, NestedCollaboration):
        _check_nested(record, known_sizes, n_rows, what)


def _check_newcomers(state: dict[str, Any], sizes: Sizes) -> None:
    """Refuse newcomers, learners that were placed after the fit, if they do not fit the rest of ``state``.

    Each points to a row of the collaboration's weights; the admission says which clusters they joined.
    """
    newcomers, admission = state["newcomers"], state["admission"]
    n_weight_rows, what = len(state["collaboration"].weights), "a newcomer"
    _need(all(newcomer.model is None or hasattr(newcomer.model, "predict") for newcomer in newcomers), what)
    _need(
        all(
            0 <= newcomer.weight_row < n_weight_rows and newcomer.bounds.shape == (2,)
            for newcomer in newcomers
        ),
        what,
    )
    _need((admission is None) == (not newcomers), "an Admission")
    if admission is not None:
        _need(_is_about(admission, [newcomer.learner_id for newcomer in newcomers]), "an Admission")
        _check_shapes(Admission, admission, sizes, "an Admission")


def _check_scores(
    record: Intervals | LabelSets,
    scores_by_learner: tuple[Array, ...],
    ids: list[Any],
    sizes: Sizes,
    what: str,
) -> None:
    """Refuse conformal scores, of rows that a model was not fitted on, unless they fit the learners.

    There is an array (rows, 2) for each learner, and at least one learner that counts has rows: quantiles of
    these scores make the intervals. ``what`` names them in the error.
    """
    _need(record.learner_ids.tolist() == ids and len(scores_by_learner) == len(ids), what)
    _check_shapes(type(record), record, {**sizes, "e": len(ids)}, what)
    _need(len(record.shared) > 0 and all(array("r 2", "f")(scores, {}) for scores in scores_by_learner), what)
    _need(any(len(scores_by_learner[j]) for j in np.flatnonzero(record.counted)), what)
    _need(record.pseudo_rows > 0, what)


def _check_intervals(record: Intervals | LabelSets, ids: list[Any], sizes: Sizes) -> None:
    """Refuse prediction intervals, or sets of labels for classes, that do not fit the learners.

    Intervals also have a scale for each cluster and one for all, and perhaps a model of the spread.
    """
    if isinstance(record, LabelSets):
        _check_scores(record, record.scores, ids, sizes, "sets of labels")
        return
    what, base, spread = "prediction intervals", record.base, record.spread
    _check_scores(record, record.residuals, ids, sizes, what)
    _check_shapes(Scales, base, {"d": sizes["k"] + 1}, what)
    _check_shapes(Spread, spread, {}, what)
    _need(base.pseudo_rows > 0 and np.isfinite(base.centres).all(), what)
    width = getattr(spread.model, "n_features_in_", sizes["q"])
    _need((spread.model is None or hasattr(spread.model, "predict")) and width == sizes["q"], what)


def _check_table(gains: dict[Any, Any], ids: Any, labels: Any, sizes: Sizes) -> None:
    """Refuse a table of gains whose columns are not those of these learners and labels.

    A row is a learner or newcomer, in the order of ``ids``.
    """
    # A newcomer whom no cluster fits has the label -1.
    _need(isinstance(ids, np.ndarray) and ids.shape == (sizes["n"] + sizes["a"],), "a list of learners")
    _need(within("e", "k", -1)(labels, {**sizes, "e": len(ids)}), "a list of labels")
    for name, column in gains.items():
        sized = isinstance(column, np.ndarray) and column.shape == ids.shape
        _need(isinstance(name, str) and sized, "a table of gains")
    _need({"learner", "cluster"} <= set(gains), "a table of gains")
    agrees = gains["learner"].tolist() == ids.tolist() and gains["cluster"].tolist() == labels.tolist()
    _need(agrees, "a table of gains")


def _check_exchange(state: dict[str, Any], sizes: Sizes, rows: bool) -> None:
    """Refuse losses, similarities or labels that are not those of n learners.

    Losses may be missing where the rows are there, and similarities where they are made again from landmarks
    (the few learners to which all others are compared) or losses.
    """
    source, partition, n_learners = state["exchange"].source, state["partition"], sizes["n"]
    if isinstance(source, DenseTiles):
        all_learners = slice(0, n_learners)
        _need(source.tile(all_learners, all_learners).shape == (n_learners, n_learners), "a loss matrix")
    _need(rows or source is not None, "a loss matrix")
    if isinstance(source, LandmarkTiles):
        _check_shapes(LandmarkTiles, source, sizes, "a loss matrix")
    remade = source is None or isinstance(source, LandmarkTiles)
    is_right = (
        remade if partition.similarity is None else partition.similarity.shape == (n_learners, n_learners)
    )
    _need(is_right and partition.embedding.ndim == 2, "a similarity")
    _need(np.isfinite(partition.scale) and partition.scale > 0, "a scale")
    _need(within("n", "k")(partition.labels, dict(sizes)) and sizes["k"] <= n_learners, "a partition")


def _check_recipe(recipe: TableRecipe, names: Array | None) -> None:
    """Refuse a recipe for tables that is about other columns than the names of the predictors.

    Each column has as many fills for missing entries as its kind needs, and levels only as a category.
    """
    what = "a recipe for tables"
    _need(names is not None and names.tolist() == [plan.name for plan in recipe.columns], what)
    for plan in recipe.columns:
        _need(plan.kind in (*ENCODERS, "left out"), what)
        n_fills = {"number": 1, "date": len(plan.parts)}.get(plan.kind, 0)
        _need(len(plan.fills) == n_fills and set(plan.parts) <= set(DATE_PARTS), what)
        _need(bool(plan.levels) == (plan.kind == "category"), what)


def n_predictors(held: dict[str, Any]) -> Any:
    """Return how many columns the models see, as the attributes of the estimator have it."""
    recipe = held.get("table_")
    return len(recipe.features) if isinstance(recipe, TableRecipe) else held.get("n_features_in_")


def checked_parameters(given: dict[str, Any], n_features: Any) -> dict[str, Any]:
    """Refuse parameters of a CoterieRegressor that ask for what a file must not ask for.

    A file must not start days of work or fill the memory when its model is fitted again. ``n_features`` is
    the number of predictors, if it is one. What is returned has no more threads than there are cores.
    """
    own_parameters = cleaned(given)
    engine = own_parameters.get("engine")
    _need(engine is None or isinstance(engine, str), "an engine")
    for name, value in own_parameters.items():
        _need(may_be(name, value, {}), f"a parameter {name!r}")
    _need(isinstance(n_features, int) and 0 < n_features <= MAX_SETTING, "a number of predictors")
    _need(
        n_columns(own_parameters.get("candidates"), n_features) <= max(MAX_COLUMNS, n_features),
        "a polynomial",
    )
    _need(
        n_fits([own_parameters.get("candidates"), own_parameters.get("splitter")]) <= MAX_FITS,
        "a number of fits",
    )
    return own_parameters


def check_fit(
    state: dict[str, Any], held: dict[str, Any], ids_in_order: Any, labels: Any, rows: bool
) -> None:
    """Refuse parts that do not make a fit, and attributes of the estimator that do not belong to it.

    ``state`` has the fields of `Fit`, and ``held`` the attributes of the estimator. ``ids_in_order`` and
    ``labels`` are what the manifest shows of the learners; ``rows`` says whether their rows are there.
    """
    checked_fields(Fit, state)
    checked_fields(Attributes, held)
    _need("n_features_in_" in held, "a number of predictors")
    learners, selection = state["learners"], state["selection"]
    classes = held.get("classes_")
    loss: Loss = SQUARED_ERROR if classes is None else BrierScore(len(classes))
    _need(classes is None or (classes.ndim == 1 and len(np.unique(classes)) == len(classes) > 1), "classes")
    _need(learners.loss == loss == state["collaboration"].loss, "a response")
    n_features, ids = n_predictors(held), learners.ids.tolist()
    sizes = {
        "n": len(ids),
        "a": len(state["newcomers"]),
        "p": n_features,
        "q": n_features + 1,
        "k": state["partition"].n_clusters,
    }
    _check_learners(learners, sizes, rows)
    for name in ("selection", "exchange", "partition", "collaboration", "with_all", "own"):
        _check_record(state[name], ids)
    position_of_learner = {learner: j for j, learner in enumerate(ids)}
    n_rows = learners.sizes[[position_of_learner[i] for i in selection.learner_ids.tolist()]]
    # A learner that was read in a stream has chosen on more rows than were kept.
    has_enough_rows = selection.n_rows.shape == n_rows.shape and bool((selection.n_rows >= n_rows).all())
    _need(has_enough_rows, "a number of rows")
    _need(all(hasattr(model, "predict") for model in selection.models), "a model")
    _check_rows(selection.residuals, n_rows, "a residual")
    _check_rows(selection.folds, n_rows, "a fold", ndim=1)
    for losses, n_rows_of_learner in zip(selection.candidate_losses, n_rows.tolist(), strict=True):
        _need(all(by_row.shape == (n_rows_of_learner,) for by_row in losses.values()), "a candidate's losses")
    _check_exchange(state, sizes, rows)
    for name in ("collaboration", "with_all"):
        _check_collaboration(state[name], sizes, n_rows)
    _check_rows(state["own"].residuals, n_rows, "an OwnResiduals")
    for name, kind_of_record in (("own", OwnResiduals), ("gain_model", GainModel)):
        _check_shapes(
            kind_of_record,
            state[name],
            sizes,
            f"{'an' if name == 'alone' else 'a'} {kind_of_record.__name__}",
        )
    _check_newcomers(state, sizes)
    if state["units"] is not None:
        all_learners = {**sizes, "e": sizes["n"] + sizes["a"]}
        _check_shapes(Standardization, state["units"], all_learners, "a standardization")
    for name in ("cluster_fit", "stability"):
        record = state[name]
        if record is not None:
            what = f"a {type(record).__name__}"
            _need(_is_about(record, ids), what)
            _check_shapes(type(record), record, sizes, what)
    _need(state["stability"] is None or state["stability"].n_replicates > 0, "a Stability")
    if state["intervals"] is not None:
        _need(isinstance(state["intervals"], LabelSets) == (classes is not None), "prediction intervals")
        newcomer_ids = [new.learner_id for new in state["newcomers"]]
        _check_intervals(state["intervals"], [*ids, *newcomer_ids], sizes)
    _check_table(state["gains"], ids_in_order, labels, sizes)
    _need(array("p", "iu")(state["exponents"], sizes), "a unit of a column")
    # Powers of two by which columns are scaled: those of a double lie within these bounds.
    _need(stay_within(state["exponents"], 1100, -1100), "a unit of a column")
    names = held.get("feature_names_in_")
    _need(names is None or names.shape == (held["n_features_in_"],), "a column name")
    if "ranges_" in held:
        _need(doubles("2 p")(held["ranges_"], sizes), "a range of a column")
    if "table_" in held:
        _check_recipe(held["table_"], names)
