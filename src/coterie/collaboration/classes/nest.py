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
    """Return the Gram matrix (E, E) of E predictors' residuals (E, n, C), summed over rows and columns.

    Rows are weighed by ``scales`` (n,). The squared error of a mixture with weights w is w'Gw, so that the
    matrix is all that finding weights needs.
    """
    flat_residuals = residuals.reshape(len(residuals), -1)
    weighted_residuals = (residuals * scales[:, None]).reshape(len(residuals), -1)
    gram: Array = weighted_residuals @ flat_residuals.T
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
    """Fit the dictionary's members without each fold and on all rows.

    ``own_predictions`` (N, C) are out-of-fold probabilities of the learners' own models, NaN for learners
    without, and ``scales`` (N,) weigh squared residuals. ``trees`` says which take part, as in
    `possible_members`. Trees without weight on the first fold are not fitted on the others.
    """
    views = ClassViews(table)
    fold_views = [views.view(fold) for fold in range(len(table.folds))]
    members = possible_members(table, fold_views[0], trees)
    rule = FAST_TREES if trees == "fast" else TREES
    n_numbers = fold_views[0].directions.numbers(fold_views[0].lines.own).shape[1]
    tree_jobs = ClassTreeJobs(table, loss, n_numbers, seed, rule)
    Y, validation = table.rows.Y, [np.flatnonzero(view.validation) for view in fold_views]

    def grown(fold: int, fold_members: Sequence[ClassMember]) -> dict[str, Any]:
        """Fit the trees of some members on the rows outside a fold; return them by the members' names."""
        sizes = [
            rule.fold_trees if tree_member.kind == "cuts" else rule.leaves[0] for tree_member in fold_members
        ]
        jobs = [
            tree_jobs.job(tree_member, fold_views[fold], size)
            for tree_member, size in zip(fold_members, sizes, strict=True)
        ]
        with quiet_fits():
            return dict(
                zip((tree_member.name for tree_member in fold_members), engine.map(grow, jobs), strict=True)
            )

    # Trees that get next to no weight on the first fold are not fitted on the others: they would cost most.
    models = [grown(0, [member for member in members if member.has_model])]
    n_fits = len(models[0])
    steps.done()
    known_rows = validation[0][np.isfinite(own_predictions[validation[0]]).all(axis=1)]
    if n_fits and len(known_rows) > 1:
        member_probabilities = [
            tree_jobs.answer(tree_member, models[0].get(tree_member.name), fold_views[0], known_rows)
            for tree_member in members
        ]
        weights = simplex_weights(
            _gram(
                Y[known_rows] - np.array([*member_probabilities, own_predictions[known_rows]]),
                scales[known_rows],
            )
        )
        members = tuple(
            member
            for member, weight in zip(members, weights, strict=False)
            if weight >= LEAST_WEIGHT or not member.has_model or member.name in ALWAYS
        )
    with_models = [member for member in members if member.has_model]
    for fold in range(1, len(fold_views)):
        models.append(grown(fold, with_models))
        n_fits += len(with_models)
        steps.done()
    out_of_fold = np.full((len(members), *Y.shape), np.nan)
    shared = np.full((2, *Y.shape), np.nan)
    for fold, (view, rows) in enumerate(zip(fold_views, validation, strict=True)):
        for index, member in enumerate(members):
            out_of_fold[index, rows] = tree_jobs.answer(member, models[fold].get(member.name), view, rows)
        shared[0, rows], shared[1, rows] = (
            probabilities(view.common[rows]),
            probabilities(view.plain_coterie_line[rows]),
        )
    names = [member.name for member in members]
    tree_shares = np.zeros(2)
    trees_of_all = names.index(TREES_OF_ALL) if TREES_OF_ALL in names else -1
    trees_of_coterie = names.index(TREES_OF_COTERIE) if TREES_OF_COTERIE in names else trees_of_all
    # Entry 0 of ``shared`` is what all learners share, entry 1 what a coterie shares.
    for source, index in enumerate((trees_of_all, trees_of_coterie)):
        if index >= 0:
            # What is shared is a mixture of a line and of trees, weighed by their squared errors out of fold.
            line_and_trees = np.stack([shared[source], out_of_fold[index]])
            is_predicted = np.isfinite(line_and_trees).all(axis=(0, 2))
            tree_shares[source] = simplex_weights(
                _gram(Y[is_predicted] - line_and_trees[:, is_predicted], scales[is_predicted])
            )[1]
            shared[source] = (1 - tree_shares[source]) * shared[source] + tree_shares[source] * out_of_fold[
                index
            ]
    view = views.view(None)
    # All rows are more than a fold trains on, and the rounds of boosting grow in proportion.
    row_ratio = len(Y) / np.mean([fold_view.training.sum() for fold_view in fold_views])
    jobs = []
    for member in with_models:
        rounds = int(np.ceil(row_ratio * np.mean([rounds_of(fold[member.name]) for fold in models])))
        jobs.append(
            tree_jobs.job(member, view, rule.trees if member.kind == "cuts" else rule.leaves[0], rounds)
        )
    with quiet_fits():
        last_models = iter(engine.map(grow, jobs))
    models_of_all_rows = tuple(next(last_models) if member.has_model else None for member in members)
    return ClassDictionary(
        members=members,
        models=models_of_all_rows,
        out_of_fold=out_of_fold,
        plain=shared,
        tree_shares=tree_shares,
        view=view,
        n_fits=n_fits + len(jobs),
    )


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
    """Learn each learner's weights of its own model and of the members, by out-of-fold probabilities.

    Rows count by ``scales`` (N,) for common weights. The first ``n_own`` learners have models of their own
    and weights of their own, the others take the common ones. A mixture of probabilities and a pool of their
    logarithms are learnt, and predict half each. ``own_predictions`` (N, C) are those of own models, NaN
    where there is none.
    """
    held_out, owner, columns = table.folds.held_out, table.rows.owner, dictionary.out_of_fold
    n_folds, weights = len(table.folds), table.rows.weights
    rows, codes = np.flatnonzero(held_out >= 0), loss.target(table.rows.Y)

    def chances_of(predictions: Array) -> Array:
        """Return the probabilities (N,) that predictions (N, C) gave to the class that came.

        Rows that no fold holds out have one: they do not count later.
        """
        chances = np.ones(len(codes))
        chances[rows] = loss.from_columns(predictions[rows])[np.arange(len(rows)), codes[rows]]
        return chances

    chances = np.column_stack([chances_of(column) for column in columns])
    n_learners = table.rows.n_learners
    common_mixture = learn_mixtures(chances, weights, scales, owner, held_out, n_folds, n_learners)
    # Models that know the learner's id have nothing to say of newcomers, whose weights leave them out.
    members_without_id = np.array(
        [p for p, member in enumerate(dictionary.members) if member.name not in KNOW_THE_ID]
    )
    newcomer_weights = np.zeros(len(columns))
    newcomer_weights[members_without_id] = mixture_weights(
        np.maximum(chances[rows][:, members_without_id], LEAST_CHANCE), scales[rows]
    )
    fold_of = np.maximum(held_out, 0)
    mixed_probabilities = np.einsum("ne,enc->nc", common_mixture.common_without[fold_of], columns)
    own_weights, member_weights = np.zeros(n_learners), np.tile(common_mixture.common, (n_learners, 1))
    rows_of_own = np.flatnonzero(owner < n_own)
    own_and_member_chances = np.column_stack(
        [chances_of(np.where(np.isfinite(own_predictions), own_predictions, 0.0)), chances]
    )[rows_of_own]
    learnt_mixture = learn_mixtures(
        own_and_member_chances,
        weights[rows_of_own],
        scales[rows_of_own],
        owner[rows_of_own],
        held_out[rows_of_own],
        n_folds,
        n_own,
    )
    own_weights[:n_own], member_weights[:n_own] = (
        learnt_mixture.personal[:, 0],
        learnt_mixture.personal[:, 1:],
    )
    weights_of_rows = learnt_mixture.personal_without[fold_of[rows_of_own], owner[rows_of_own]]
    mixed_probabilities[rows_of_own] = np.einsum(
        "ne,enc->nc", weights_of_rows, np.concatenate([own_predictions[None], columns])[:, rows_of_own]
    )
    is_known = [np.isfinite(part).all(axis=1)[:, None] for part in (own_predictions, *columns)]
    probabilities = np.array(
        [
            np.where(is_row_known, loss.from_columns(p), np.nan)
            for is_row_known, p in zip(is_known, (own_predictions, *columns), strict=True)
        ]
    )
    pool, pooled = cross_fitted_pool(probabilities, codes, weights, held_out, n_folds)
    mixed_probabilities = (mixed_probabilities + loss.columns(pooled)) / 2
    mixed_probabilities[held_out < 0] = np.nan
    return ClassStackedWeights(
        own=own_weights,
        members=member_weights,
        newcomers=newcomer_weights,
        pool=pool,
        mixed=mixed_probabilities,
        shrinkage=learnt_mixture.shrinkage,
    )


def _split(weights: Array, members: Sequence[ClassMember]) -> tuple[Array, Array]:
    """Split the members' weights (M, E) into those of models, in order, and those of two lines, (M, 2).

    The lines are everybody's and the coterie's: they have no model to call, and stand in columns of their own
    in the record.
    """
    line_weights = np.zeros((len(weights), 2))
    for index, name in enumerate((LINE, COTERIE_LINE)):
        line_weights[:, index] = weights[:, [member.name == name for member in members]].sum(axis=1)
    return weights[:, [member.has_model for member in members]], line_weights


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
    """Put weights, lines and models together in one record that predicts.

    Its rows are the learners with own models, those with few rows, one row for each coterie, by which
    newcomers predict, and last the row of what all learners share. Models are own models, then the
    members' trees. ``residuals`` (N, C) are out of fold; ``calibration`` recalibrates, None: it does not pay.
    """
    view, members = dictionary.view, dictionary.members
    n_own, n_all, n_coteries = len(selection.models), table.rows.n_learners, table.n_coteries
    tree_models = [model for model in dictionary.models if model is not None]
    with_models = [member for member in members if member.has_model]
    tree_names = [member.name for member in with_models]
    n_rows, n_models = n_all + n_coteries + 1, n_own + len(tree_models)
    weights, line_weights = np.zeros((n_rows, n_models)), np.zeros((n_rows, 2))
    weights[np.arange(n_own), np.arange(n_own)] = weighed.own[:n_own]
    weights[:n_all, n_own:], line_weights[:n_all] = _split(weighed.members, members)
    log_weights, log_line_weights = np.zeros_like(weights), np.zeros_like(line_weights)
    own_log_weight, member_log_weights = weighed.pool[0], weighed.pool[1:]
    log_weights[np.arange(n_own), np.arange(n_own)] = own_log_weight
    log_weights[:n_all, n_own:], log_line_weights[:n_all] = _split(member_log_weights[None], members)
    n_columns, size = table.rows.Y.shape[1], table.rows.Z.shape[1]
    lines, coterie_lines = np.zeros((n_rows, n_columns, size)), np.zeros((n_rows, n_columns, size))
    one_cluster = np.zeros(n_all, dtype=int)
    lines[:n_all] = view.lines.of_learners(one_cluster)
    coterie_lines[:n_all] = view.coterie_lines.of_learners(table.labels)
    lines[n_all:] = view.lines.common[:, 0]
    # What models may see of the learner of each row of weights; NaN is unknown, as for a coterie's own row.
    context = np.full((n_rows, view.context.shape[1]), np.nan)
    context[:n_all] = table.context(view.directions, view.lines.own, table.labels)
    tree_shares = dictionary.tree_shares
    trees_of_coterie = TREES_OF_COTERIE if TREES_OF_COTERIE in tree_names else TREES_OF_ALL
    for row, tree_share, name in (
        *((n_all + k, tree_shares[1], trees_of_coterie) for k in range(n_coteries)),
        (n_rows - 1, tree_shares[0], TREES_OF_ALL),
    ):
        is_coterie = row < n_rows - 1 and n_coteries > 1
        line_weights[row, int(is_coterie)] = 1 - tree_share
        if name in tree_names:
            weights[row, n_own + tree_names.index(name)] = tree_share
        if is_coterie:
            coterie_lines[row] = view.coterie_lines.common[:, row - n_all]
            context[row, -1 - table.has_ids] = row - n_all
    mask, takes_line = np.zeros((n_models, context.shape[1]), dtype=bool), np.zeros(n_models, dtype=bool)
    for index, member in enumerate(with_models):
        mask[n_own + index], takes_line[n_own + index] = member.mask, member.takes_line
    sources = [member.source for member in members]
    present_sources = [source for source in SOURCES if source in sources]
    # Half of what a learner takes is by the mixture, half by the pool.
    mean_weights = (weighed.members[:n_own] + member_log_weights) / 2
    taken_from_sources = [
        mean_weights[:, [member_source == source for member_source in sources]].sum(axis=1)
        for source in present_sources
    ]
    by_learner = [
        tuple(residuals_of_all[table.rows.owner == learner] for learner in range(n_own))
        for residuals_of_all in (
            residuals,
            *(table.rows.Y - shared_probabilities for shared_probabilities in dictionary.plain),
        )
    ]
    newcomer_models, newcomer_lines = _split(weighed.newcomers[None], members)
    return NestedClasses(
        learner_ids=selection.learner_ids,
        method="auto",
        models=(*selection.models, *tree_models),
        names=(*selection.names, *tree_names),
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
        share_names=("alone", *(SHARE_NAMES[source] for source in present_sources)),
        shares=np.column_stack([(weighed.own[:n_own] + own_log_weight) / 2, *taken_from_sources]),
        shrinkage=weighed.shrinkage,
        n_fits=dictionary.n_fits,
        newcomers=ClassNewcomers(
            common=view.lines.common,
            coterie_common=view.coterie_lines.common,
            ratios=view.lines.ratios,
            coterie_ratios=view.coterie_lines.ratios,
            directions=view.directions,
            weights=np.r_[np.zeros(n_own), newcomer_models[0]],
            line_weights=newcomer_lines[0],
        ),
    )


def _is_line_candidate(candidate: Any) -> bool:
    """Tell whether an unfitted candidate is a logistic regression, perhaps after scalers in a pipeline.

    Exact types are looked at: a class derived from one may predict in another way.
    """
    if type(candidate) is Pipeline:
        steps = [step for _, step in candidate.steps[:-1]]
        only_scalers = all(step in (None, "passthrough") or type(step) in SCALERS for step in steps)
        return only_scalers and _is_line_candidate(candidate.steps[-1][1])
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
    """Return how each learner mixes its own classifier, its coterie's and everybody's.

    The dictionary (a few models of all rows) is fitted without each fold, weighed on the rows held out, and
    fitted on all rows. Arguments are as for `nest_learners`. Who allows logistic lines only as candidates
    gets no trees, even with ``"full"``.
    """
    candidate_sets = candidates_per_learner(candidates, learners.ids.tolist())
    folds = folds_of(learners, selection, n_folds, splitter, recipe.seed)
    steps = Steps("Collaborate", 2 * len(folds) + 2)
    own = own_by_fold(learners, selection, folds, candidate_sets, recipe, steps.done)
    if form == "average":
        collaboration_of_averages = nest_class_averages(learners, selection, exchange, labels, own, recipe)
        steps.finish()
        return NestedClassResult(collaboration=collaboration_of_averages, own=own.judged(learners))
    all_learners, own_predictions, n_own = learners, own.predictions, len(learners)
    if few is not None:
        all_learners = joined_learners(learners, few.learners)
        labels = np.r_[labels, few.labels]
        folds = joined_folds(folds, few.learners, recipe.seed, in_order=selection.in_order)
        own_predictions = np.concatenate([own_predictions, np.full(few.learners.y.shape, np.nan)])

    def labels_without(fold: int) -> Array:
        """Return the clusters (L,) made again without a fold; -1 for learners with few rows, who shape none.

        Clusters that had seen the fold's rows would look too good on them.
        """
        own_labels = labels_without_fold(
            learners, selection, own.folds.training[fold], own.models[fold], recipe
        )
        return np.asarray(np.r_[own_labels, np.full(len(all_learners) - n_own, -1)])

    if trees == "full" and all(
        _is_line_candidate(candidate)
        for learner_candidates in candidate_sets
        for candidate in learner_candidates.values()
    ):
        trees = "none"
    scale = PredictorScale.of(all_learners.X)
    weights = np.ones(len(all_learners.y)) if all_learners.weights is None else all_learners.weights
    rows = ClassRows(
        Z=scale.rows(all_learners.X),
        Y=all_learners.y,
        weights=weights,
        owner=all_learners.owner,
        n_learners=len(all_learners),
    )
    n_coteries = int(labels.max()) + 1
    table = ClassTable(
        X=all_learners.X,
        rows=rows,
        labels=labels,
        folds=folds,
        n_coteries=n_coteries,
        labels_without=labels_without,
    )
    # Learners count alike from some rows on; those with fewer know their errors badly and count less.
    scales = weights / (all_learners.sizes + PSEUDO_ROWS)[all_learners.owner]
    dictionary = _fitted(
        table, learners.loss, own_predictions, scales, trees, recipe.engine, recipe.seed, steps
    )
    weighed = _weigh(table, learners.loss, dictionary, own_predictions, scales, n_own)
    loss, held_out = learners.loss, folds.held_out
    is_held_out = held_out >= 0
    probabilities = np.full((len(rows.Y), loss.from_columns(rows.Y[:1]).shape[1]), np.nan)
    probabilities[is_held_out] = loss.from_columns(weighed.mixed[is_held_out])
    calibration, recalibrated_probabilities = learn_calibration(
        probabilities, loss.target(rows.Y), weights, held_out, len(folds)
    )
    residuals = rows.Y - loss.columns(recalibrated_probabilities)
    collaboration = _assembled(table, selection, loss, scale, dictionary, weighed, residuals, calibration)
    steps.finish()
    own_residuals = own.judged(learners)
    if few is None:
        return NestedClassResult(collaboration=collaboration, own=own_residuals)
    row_cuts = few.learners.offsets[1:-1]
    residuals_by_learner = [
        tuple(np.split(row_residuals[len(learners.y) :], row_cuts))
        for row_residuals in (residuals, rows.Y - dictionary.plain[0])
    ]
    return NestedClassResult(
        collaboration=collaboration,
        own=own_residuals,
        few_residuals=residuals_by_learner[0],
        few_all_residuals=residuals_by_learner[1],
        few_weight_rows=n_own + np.arange(len(few.learners)),
    )
