"""Nested coteries for classes: a dictionary fitted without each fold, weighed, and fitted on all rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from coterie._arrays import Array
from coterie.candidates import candidates_per_learner
from coterie.collaboration.classes.average_record import ClassAverages
from coterie.collaboration.classes.averaging import nest_class_averages
from coterie.collaboration.classes.calibration import learn_calibration
from coterie.collaboration.classes.lines import ClassRows, probabilities
from coterie.collaboration.classes.members import (
    ClassMember,
    ClassTreeJobs,
    grow,
    possible_members,
    rounds_of,
)
from coterie.collaboration.classes.pool import cross_fitted_pool
from coterie.collaboration.classes.record import ClassNewcomers, NestedClasses, PredictorScale
from coterie.collaboration.classes.views import ClassTable, ClassView, ClassViews
from coterie.collaboration.classes.weights import LEAST_CHANCE, learn_mixtures, mixture_weights
from coterie.collaboration.nested import FewRows, Recipe, folds_of, own_by_fold
from coterie.collaboration.nested.families import SCALERS
from coterie.collaboration.nested.folds import joined_folds
from coterie.collaboration.nested.members import (
    COTERIE_LINE,
    KNOW_THE_ID,
    LINE,
    TREES_OF_ALL,
    TREES_OF_COTERIE,
)
from coterie.collaboration.nested.pooled import LEAST_WEIGHT
from coterie.collaboration.nested.resolutions import labels_without_fold
from coterie.collaboration.nested.stacking import PSEUDO_ROWS, SHARE_NAMES, SOURCES
from coterie.collaboration.nested.trees import FAST_TREES, TREES
from coterie.collaboration.nested.weights import simplex_weights
from coterie.engines import Engine, Steps
from coterie.kernels.logistic import LOGISTIC_ANSWERS
from coterie.loss import Loss
from coterie.method.fitting import quiet_fits
from coterie.records import Exchange, OwnResiduals, Selection
from coterie.rows.learners import Learners, joined_learners

# What everybody, and what a coterie, shares is made of these trees: they stay in any case.
ALWAYS = (TREES_OF_ALL, TREES_OF_COTERIE)


@dataclass(frozen=True)
class ClassDictionary:
    """The members that were fitted: their models on all rows, and what each predicts out of fold.

    ``out_of_fold`` (E, N, C) are probabilities, NaN where no fold holds the row out. ``plain`` (2, N, C) has
    the same of what all learners share and of what the members of a coterie share, and ``tree_shares`` (2,)
    how much of these are trees; the rest is a line.
    """

    members: tuple[ClassMember, ...]
    models: tuple[Any, ...] = field(repr=False)
    out_of_fold: Array = field(repr=False)
    plain: Array = field(repr=False)
    tree_shares: Array
    view: ClassView = field(repr=False)
    n_fits: int


def _gram(residuals: Array, scales: Array) -> Array:
    """Return weighted products (E, E) of residuals (E, n, C) over rows and columns."""
    flat = residuals.reshape(len(residuals), -1)
    weighted = (residuals * scales[:, None]).reshape(len(residuals), -1)
    gram: Array = weighted @ flat.T
    return gram


def _fitted(
    table: ClassTable,
    loss: Loss,
    own_predictions: Array,
    scales: Array,
    trees: str,
    engine: Engine,
    seed: int,
    steps: Steps,
) -> ClassDictionary:
    """Fit the dictionary; ``own_predictions`` (N, C) are own models out of fold, NaN for learners without."""
    views = ClassViews(table)
    folds = [views.view(fold) for fold in range(len(table.folds))]
    members = possible_members(table, folds[0], trees)
    rule = FAST_TREES if trees == "fast" else TREES
    n_numbers = folds[0].directions.numbers(folds[0].lines.own).shape[1]
    growing = ClassTreeJobs(table, loss, n_numbers, seed, rule)
    Y, validation = table.rows.Y, [np.flatnonzero(view.validation) for view in folds]

    def grown(fold: int, some: Sequence[ClassMember]) -> dict[str, Any]:
        """Fit the trees of some members without a fold; return them by name."""
        sizes = [rule.fold_trees if m.kind == "cuts" else rule.leaves[0] for m in some]
        jobs = [growing.job(m, folds[fold], size) for m, size in zip(some, sizes, strict=True)]
        with quiet_fits():
            return dict(zip((m.name for m in some), engine.map(grow, jobs), strict=True))

    models = [grown(0, [member for member in members if member.has_model])]
    n_fits = len(models[0])
    steps.done()
    known = validation[0][np.isfinite(own_predictions[validation[0]]).all(axis=1)]
    if n_fits and len(known) > 1:
        answers = [growing.answer(m, models[0].get(m.name), folds[0], known) for m in members]
        weights = simplex_weights(
            _gram(Y[known] - np.array([*answers, own_predictions[known]]), scales[known])
        )
        members = tuple(
            member
            for member, weight in zip(members, weights, strict=False)
            if weight >= LEAST_WEIGHT or not member.has_model or member.name in ALWAYS
        )
    with_models = [member for member in members if member.has_model]
    for fold in range(1, len(folds)):
        models.append(grown(fold, with_models))
        n_fits += len(with_models)
        steps.done()
    columns = np.full((len(members), *Y.shape), np.nan)
    plain = np.full((2, *Y.shape), np.nan)
    for fold, (view, rows) in enumerate(zip(folds, validation, strict=True)):
        for index, member in enumerate(members):
            columns[index, rows] = growing.answer(member, models[fold].get(member.name), view, rows)
        plain[0, rows], plain[1, rows] = (
            probabilities(view.common[rows]),
            probabilities(view.plain_coterie_line[rows]),
        )
    names = [member.name for member in members]
    shares = np.zeros(2)
    of_all = names.index(TREES_OF_ALL) if TREES_OF_ALL in names else -1
    of_coterie = names.index(TREES_OF_COTERIE) if TREES_OF_COTERIE in names else of_all
    for p, index in enumerate((of_all, of_coterie)):
        if index >= 0:
            both = np.stack([plain[p], columns[index]])
            seen = np.isfinite(both).all(axis=(0, 2))
            shares[p] = simplex_weights(_gram(Y[seen] - both[:, seen], scales[seen]))[1]
            plain[p] = (1 - shares[p]) * plain[p] + shares[p] * columns[index]
    view = views.view(None)
    # More rows bear more rounds.
    more = len(Y) / np.mean([part.training.sum() for part in folds])
    jobs = []
    for member in with_models:
        rounds = int(np.ceil(more * np.mean([rounds_of(fold[member.name]) for fold in models])))
        jobs.append(
            growing.job(member, view, rule.trees if member.kind == "cuts" else rule.leaves[0], rounds)
        )
    with quiet_fits():
        last = iter(engine.map(grow, jobs))
    stay = tuple(next(last) if member.has_model else None for member in members)
    return ClassDictionary(members, stay, columns, plain, shares, view, n_fits + len(jobs))


@dataclass(frozen=True)
class ClassStackedWeights:
    """How everybody weighs the dictionary: own models ``own`` (L,), ``members`` (L, E), ``newcomers`` (E,).

    ``pool`` (1 + E,) are weights of own models and members where logarithms of probabilities are pooled.
    ``mixed`` (N, C) are probabilities out of fold under weights learnt without the row's fold.
    """

    own: Array
    members: Array
    newcomers: Array
    pool: Array
    mixed: Array = field(repr=False)
    shrinkage: float


def _weigh(
    table: ClassTable,
    loss: Loss,
    dictionary: ClassDictionary,
    own_predictions: Array,
    scales: Array,
    n_own: int,
) -> ClassStackedWeights:
    """Learn each learner's weights of its own model and of the members, and predict out of fold with them."""
    held_out, owner, columns = table.folds.held_out, table.rows.owner, dictionary.out_of_fold
    n_folds, weights = len(table.folds), table.rows.weights
    rows, codes = np.flatnonzero(held_out >= 0), loss.target(table.rows.Y)

    def chances_of(answers: Array) -> Array:
        """Return what answers (N, C) gave to the class that came, one where nothing is known."""
        chances = np.ones(len(codes))
        chances[rows] = loss.from_columns(answers[rows])[np.arange(len(rows)), codes[rows]]
        return chances

    chances = np.column_stack([chances_of(column) for column in columns])
    n_learners = table.rows.n_learners
    common = learn_mixtures(chances, weights, scales, owner, held_out, n_folds, n_learners)
    no_id = np.array([p for p, m in enumerate(dictionary.members) if m.name not in KNOW_THE_ID])
    newcomers = np.zeros(len(columns))
    newcomers[no_id] = mixture_weights(np.maximum(chances[rows][:, no_id], LEAST_CHANCE), scales[rows])
    fold_of = np.maximum(held_out, 0)
    mixed = np.einsum("ne,enc->nc", common.common_without[fold_of], columns)
    own_weights, members = np.zeros(n_learners), np.tile(common.common, (n_learners, 1))
    selected = np.flatnonzero(owner < n_own)
    both = np.column_stack(
        [chances_of(np.where(np.isfinite(own_predictions), own_predictions, 0.0)), chances]
    )[selected]
    learnt = learn_mixtures(
        both, weights[selected], scales[selected], owner[selected], held_out[selected], n_folds, n_own
    )
    own_weights[:n_own], members[:n_own] = learnt.personal[:, 0], learnt.personal[:, 1:]
    each = learnt.personal_without[fold_of[selected], owner[selected]]
    mixed[selected] = np.einsum(
        "ne,enc->nc", each, np.concatenate([own_predictions[None], columns])[:, selected]
    )
    known = [np.isfinite(part).all(axis=1)[:, None] for part in (own_predictions, *columns)]
    probabilities = np.array(
        [
            np.where(k, loss.from_columns(p), np.nan)
            for k, p in zip(known, (own_predictions, *columns), strict=True)
        ]
    )
    pool, pooled = cross_fitted_pool(probabilities, codes, weights, held_out, n_folds)
    mixed = (mixed + loss.columns(pooled)) / 2
    mixed[held_out < 0] = np.nan
    return ClassStackedWeights(own_weights, members, newcomers, pool, mixed, learnt.shrinkage)


def _split(weights: Array, members: Sequence[ClassMember]) -> tuple[Array, Array]:
    """Return weights (M, E) of members as those of models, in their order, and of two lines, (M, 2)."""
    lines = np.zeros((len(weights), 2))
    for index, name in enumerate((LINE, COTERIE_LINE)):
        lines[:, index] = weights[:, [m.name == name for m in members]].sum(axis=1)
    return weights[:, [m.has_model for m in members]], lines


def _assembled(
    table: ClassTable,
    selection: Selection,
    loss: Loss,
    scale: PredictorScale,
    dictionary: ClassDictionary,
    weighed: ClassStackedWeights,
    residuals: Array,
    calibration: Array | None,
) -> NestedClasses:
    """Put together how everybody predicts: those with own models, those without, newcomers, and with all."""
    view, members = dictionary.view, dictionary.members
    n_own, n_all, n_coteries = len(selection.models), table.rows.n_learners, table.n_coteries
    grown = [model for model in dictionary.models if model is not None]
    with_models = [member for member in members if member.has_model]
    names = [member.name for member in with_models]
    n_rows, n_models = n_all + n_coteries + 1, n_own + len(grown)
    weights, line_weights = np.zeros((n_rows, n_models)), np.zeros((n_rows, 2))
    weights[np.arange(n_own), np.arange(n_own)] = weighed.own[:n_own]
    weights[:n_all, n_own:], line_weights[:n_all] = _split(weighed.members, members)
    log_weights, log_line_weights = np.zeros_like(weights), np.zeros_like(line_weights)
    own_log, member_logs = weighed.pool[0], weighed.pool[1:]
    log_weights[np.arange(n_own), np.arange(n_own)] = own_log
    log_weights[:n_all, n_own:], log_line_weights[:n_all] = _split(member_logs[None], members)
    n_columns, size = table.rows.Y.shape[1], table.rows.Z.shape[1]
    lines, coterie_lines = np.zeros((n_rows, n_columns, size)), np.zeros((n_rows, n_columns, size))
    one_cluster = np.zeros(n_all, dtype=int)
    lines[:n_all] = view.lines.of_learners(one_cluster)
    coterie_lines[:n_all] = view.coterie_lines.of_learners(table.labels)
    lines[n_all:] = view.lines.common[:, 0]
    context = np.full((n_rows, view.context.shape[1]), np.nan)
    context[:n_all] = table.context(view.directions, view.lines.own, table.labels)
    shared = dictionary.tree_shares
    of_coterie = TREES_OF_COTERIE if TREES_OF_COTERIE in names else TREES_OF_ALL
    for row, share, name in (
        *((n_all + k, shared[1], of_coterie) for k in range(n_coteries)),
        (n_rows - 1, shared[0], TREES_OF_ALL),
    ):
        inside = row < n_rows - 1 and n_coteries > 1
        line_weights[row, int(inside)] = 1 - share
        if name in names:
            weights[row, n_own + names.index(name)] = share
        if inside:
            coterie_lines[row] = view.coterie_lines.common[:, row - n_all]
            context[row, -1 - table.has_ids] = row - n_all
    mask, takes_line = np.zeros((n_models, context.shape[1]), dtype=bool), np.zeros(n_models, dtype=bool)
    for index, member in enumerate(with_models):
        mask[n_own + index], takes_line[n_own + index] = member.mask, member.takes_line
    sources = [member.source for member in members]
    present = [source for source in SOURCES if source in sources]
    # Half of what a learner takes is by the mixture, half by the pool.
    halves = (weighed.members[:n_own] + member_logs) / 2
    taken = [halves[:, [s == source for s in sources]].sum(axis=1) for source in present]
    by_learner = [
        tuple(part[table.rows.owner == j] for j in range(n_own))
        for part in (residuals, *(table.rows.Y - plain for plain in dictionary.plain))
    ]
    newcomer_models, newcomer_lines = _split(weighed.newcomers[None], members)
    return NestedClasses(
        learner_ids=selection.learner_ids,
        method="auto",
        models=(*selection.models, *grown),
        names=(*selection.names, *names),
        weights=weights,
        weight_rows=np.arange(n_own),
        newcomer_weight_rows=n_all + np.arange(n_coteries),
        residuals=by_learner[0],
        loss=loss,
        line_weights=line_weights,
        log_weights=log_weights,
        log_line_weights=log_line_weights,
        lines=lines,
        coterie_lines=coterie_lines,
        scale=scale,
        kinds=(*("own" for _ in range(n_own)), *(member.kind for member in with_models)),
        context=context,
        mask=mask,
        takes_line=takes_line,
        calibration=calibration,
        plain_residuals=by_learner[2],
        all_residuals=by_learner[1],
        all_row=n_rows - 1,
        share_names=("alone", *(SHARE_NAMES[source] for source in present)),
        shares=np.column_stack([(weighed.own[:n_own] + own_log) / 2, *taken]),
        shrinkage=weighed.shrinkage,
        n_fits=dictionary.n_fits,
        newcomers=ClassNewcomers(
            view.lines.common,
            view.coterie_lines.common,
            view.lines.ratios,
            view.coterie_lines.ratios,
            view.directions,
            np.r_[np.zeros(n_own), newcomer_models[0]],
            newcomer_lines[0],
        ),
    )


def _is_line_candidate(candidate: Any) -> bool:
    """Tell whether a candidate, not fitted yet, is a logistic line, maybe behind scalers."""
    if type(candidate) is Pipeline:
        steps = [step for _, step in candidate.steps[:-1]]
        plain = all(step in (None, "passthrough") or type(step) in SCALERS for step in steps)
        return plain and _is_line_candidate(candidate.steps[-1][1])
    return getattr(type(candidate), "predict_proba", None) in LOGISTIC_ANSWERS


@dataclass(frozen=True)
class NestedClassResult:
    """Nested coteries of classes, and what was measured of learners with few rows; as `NestedResult`."""

    collaboration: NestedClasses | ClassAverages
    own: OwnResiduals
    few_residuals: tuple[Array, ...] = field(default=(), repr=False)
    few_all_residuals: tuple[Array, ...] = field(default=(), repr=False)
    few_weight_rows: Array = field(default_factory=lambda: np.zeros(0, dtype=int))


def nest_classes(
    learners: Learners,
    selection: Selection,
    exchange: Exchange,
    labels: Array,
    candidates: Any,
    recipe: Recipe,
    *,
    form: str = "pooled",
    n_folds: int = 4,
    splitter: Any = None,
    few: FewRows | None = None,
    trees: str = "full",
) -> NestedClassResult:
    """Mix what learners take from themselves, their coteries and all; arguments as for `nest_learners`.

    Where all candidates are lines, no trees take part.
    """
    sets = candidates_per_learner(candidates, learners.ids.tolist())
    folds = folds_of(learners, selection, n_folds, splitter, recipe.seed)
    steps = Steps("Collaborate", 2 * len(folds) + 2)
    own = own_by_fold(learners, selection, folds, sets, recipe, steps.done)
    if form == "average":
        averaged = nest_class_averages(learners, selection, exchange, labels, own, recipe)
        steps.finish()
        return NestedClassResult(averaged, own.judged(learners))
    all_learners, own_predictions, n_own = learners, own.predictions, len(learners)
    if few is not None:
        all_learners = joined_learners(learners, few.learners)
        labels = np.r_[labels, few.labels]
        folds = joined_folds(folds, few.learners, recipe.seed, in_order=selection.in_order)
        own_predictions = np.concatenate([own_predictions, np.full(few.learners.y.shape, np.nan)])

    def labels_without(fold: int) -> Array:
        """Return the clusters (L,) made again without a fold; -1 for learners with few rows."""
        result = labels_without_fold(learners, selection, own.folds.training[fold], own.models[fold], recipe)
        return np.asarray(np.r_[result, np.full(len(all_learners) - n_own, -1)])

    if trees == "full" and all(_is_line_candidate(c) for subset in sets for c in subset.values()):
        trees = "none"
    scale = PredictorScale.of(all_learners.X)
    weights = np.ones(len(all_learners.y)) if all_learners.weights is None else all_learners.weights
    rows = ClassRows(
        scale.rows(all_learners.X), all_learners.y, weights, all_learners.owner, len(all_learners)
    )
    n_coteries = int(labels.max()) + 1
    table = ClassTable(all_learners.X, rows, labels, folds, n_coteries, labels_without)
    # Learners count alike from some rows on; those with fewer know their errors badly and count less.
    scales = weights / (all_learners.sizes + PSEUDO_ROWS)[all_learners.owner]
    dictionary = _fitted(
        table, learners.loss, own_predictions, scales, trees, recipe.engine, recipe.seed, steps
    )
    weighed = _weigh(table, learners.loss, dictionary, own_predictions, scales, n_own)
    loss, held_out = learners.loss, folds.held_out
    seen = held_out >= 0
    probabilities = np.full((len(rows.Y), loss.from_columns(rows.Y[:1]).shape[1]), np.nan)
    probabilities[seen] = loss.from_columns(weighed.mixed[seen])
    calibration, mended = learn_calibration(probabilities, loss.target(rows.Y), weights, held_out, len(folds))
    residuals = rows.Y - loss.columns(mended)
    collaboration = _assembled(table, selection, loss, scale, dictionary, weighed, residuals, calibration)
    steps.finish()
    judged = own.judged(learners)
    if few is None:
        return NestedClassResult(collaboration, judged)
    cuts = few.learners.offsets[1:-1]
    parts = [
        tuple(np.split(part[len(learners.y) :], cuts)) for part in (residuals, rows.Y - dictionary.plain[0])
    ]
    return NestedClassResult(collaboration, judged, parts[0], parts[1], n_own + np.arange(len(few.learners)))
