"""The method from rows to a record: Select, Exchange, Cluster, Collaborate, and the verdicts.

Read `fit_learners` and `fit_selected` to know the default algorithm; each step is one call into its own
folder.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie.candidates import candidates_per_learner
from coterie.collaboration.classes import NestedClassResult, nest_classes
from coterie.collaboration.forms import collaborate, plausible_ranges
from coterie.collaboration.nested import FewRows, NestedResult, Recipe, folds_of, nest_learners, own_by_fold
from coterie.collaboration.out_of_fold import residuals_out_of_fold
from coterie.engines import resolve_engine
from coterie.fit.admit import admit_learners, place_few, split_far_learners, with_few
from coterie.fit.intervals import measured_intervals
from coterie.fit.options import Options
from coterie.fit.record import Fit
from coterie.method.cluster import search_clusters
from coterie.method.exchange import cross_evaluate
from coterie.method.search import SearchOptions, check_n_clusters
from coterie.method.select import select_models
from coterie.method.weight_limits import within_reach
from coterie.records import Collaboration, Exchange, OwnResiduals, Partition, Selection, share_of_rows
from coterie.rows.learners import Learners, Standardization
from coterie.verdicts import (
    NOTHING_MEASURED,
    Gains,
    bad_models,
    bootstrap_clustering,
    measure_cluster_fit,
    measure_gains,
)


def rows_were_left_out(selection: Selection, learners: Learners) -> bool:
    """Tell whether models were fitted on more rows than are here, as out of core (rows beyond the memory)."""
    return bool(selection.n_rows.sum() > len(learners.y))


def _averaged_with_all(
    selection: Selection, partition: Partition, learners: Learners, settings: dict[str, Any]
) -> Collaboration:
    """Return how everybody, newcomers too, would predict with the average of all models.

    There is one cluster then, so newcomers of whatever cluster predict by the first row of weights.
    """
    one_cluster = replace(partition, labels=np.zeros_like(partition.labels))
    averaged = collaborate(selection, one_cluster, learners, method="average", **settings)
    return replace(averaged, newcomer_weight_rows=np.zeros(partition.n_clusters, dtype=int))


def _judged_by_halves(selection: Selection, learners: Learners) -> OwnResiduals:
    """Return the residuals of own models on held-out halves of the rows, and the bounds of their predictions.

    Halves are each learner's rows in two parts: models of one are judged on the other. Out of core no further
    folds are fitted: the halves by which Select chose the models judge them, too.
    """
    bounds = plausible_ranges(learners, np.arange(len(learners)))[learners.appearance]
    residuals = selection.residuals
    if learners.loss.bounds is not None:
        bounds = np.array([learners.loss.own_bounds(n) for n in selection.n_rows.tolist()])
        # Predictions, response less residual, are clipped to the bounds, and residuals taken again.
        ys = [learners.y[learners.span(j)] for j in learners.appearance]
        by_learner = zip(ys, residuals, bounds, strict=True)
        residuals = tuple(y - np.clip(y - residual, *limits) for y, residual, limits in by_learner)
    return OwnResiduals(selection.learner_ids, residuals, share_of_rows(selection), bounds)


def settings_of(options: Options, seed: int) -> dict[str, Any]:
    """Return what every stage takes: the seed, and who runs the work."""
    return {"random_state": seed, "engine": options.engine, "n_jobs": options.n_jobs}


def _recipe(options: Options, seed: int, labels: Array) -> Recipe:
    """Return how the clusters ``labels`` (L,) were made, so that each fold can make them without its rows."""
    engine, n_clusters = resolve_engine(options.engine, options.n_jobs), int(labels.max()) + 1
    return Recipe(
        chosen=n_clusters,
        scale=options.scale,
        refine=options.refine,
        robust=options.robust,
        seed=seed,
        engine=engine,
        landmarks=options.landmarks,
        rounds=options.moves,
    )


def _nested(
    options: Options,
    seed: int,
    selection: Selection,
    exchange: Exchange,
    partition: Partition,
    learners: Learners,
    few: FewRows | None,
) -> NestedResult:
    """Return how learners predict with nested coteries, in the order in which they first appeared.

    Nested coteries mix for each learner its own model, its cluster's and everybody's. The folds of
    Collaborate need everything in the order of the rows: by the text of the learners' ids. ``few`` learners,
    with too few rows for a model, have their rows pooled; None: nobody.
    """
    labels = partition.aligned_to(learners.ids).labels
    nested = nest_learners(
        learners,
        selection.aligned_to(learners.ids),
        exchange.aligned_to(learners.ids),
        labels,
        options.chosen_candidates,
        _recipe(options, seed, labels),
        form="average" if options.refine == "average" else "pooled",
        n_folds=options.n_folds,
        splitter=options.held_out_by,
        few=few,
        trees=options.trees,
        levels=options.standardize is None,
    )
    return replace(nested, collaboration=nested.collaboration.take(learners.appearance))


def _nested_classes(
    options: Options,
    seed: int,
    selection: Selection,
    exchange: Exchange,
    partition: Partition,
    learners: Learners,
    few: FewRows | None,
) -> NestedClassResult:
    """Return how learners predict classes with nested coteries, in the order in which they first appeared.

    As `_nested`, with classifiers and their probabilities.
    """
    labels = partition.aligned_to(learners.ids).labels
    nested = nest_classes(
        learners,
        selection.aligned_to(learners.ids),
        exchange.aligned_to(learners.ids),
        labels,
        options.chosen_candidates,
        _recipe(options, seed, labels),
        form="average" if options.refine == "average" else "pooled",
        n_folds=options.n_folds,
        splitter=options.held_out_by,
        few=few,
        trees=options.trees,
    )
    return replace(nested, collaboration=nested.collaboration.take(learners.appearance))


def pools_few_rows(options: Options, selection: Selection, learners: Learners) -> bool:
    """Tell whether rows of learners that are too small for a model of their own are pooled.

    Only the default form pools them, where all rows are here, in one unit, and may be brought together.
    """
    pooled = options.collaboration == "auto" and options.refine != "average" and not options.standardize
    return pooled and not rows_were_left_out(selection, learners)


@dataclass(frozen=True)
class CollaborationResults:
    """How learners predict with others, with all and alone, in the order in which they first appeared."""

    coterie: Collaboration
    with_all: Collaboration
    own: OwnResiduals
    nested: NestedResult | NestedClassResult | None = None


def _plain(
    options: Options,
    seed: int,
    selection: Selection,
    partition: Partition,
    learners: Learners,
) -> CollaborationResults:
    """Return how learners predict with one of the plain forms: pooled, averaged, global or own models.

    The models of use are fitted on all rows. Those that give the residuals are fitted anew in each fold,
    without the rows that they are judged by.
    """
    settings = {**settings_of(options, seed), "candidates": options.chosen_candidates}
    coterie = collaborate(selection, partition, learners, method=options.collaboration, **settings)
    with_all = coterie
    if partition.n_clusters > 1 or coterie.method != "pooled":
        with_all = collaborate(selection, partition, learners, method="global", **settings)
    # Folds work in the order of the rows, which is that of the ids' text.
    selection_by_id = selection.aligned_to(learners.ids)
    labels = partition.aligned_to(learners.ids).labels
    candidates = candidates_per_learner(options.chosen_candidates, learners.ids.tolist())
    recipe = _recipe(options, seed, labels)
    folds = folds_of(learners, selection_by_id, options.n_folds, options.held_out_by, seed)
    own_models = own_by_fold(learners, selection_by_id, folds, candidates, recipe)
    own_residuals = own_models.judged(learners).take(learners.appearance)
    # With one model of all rows, nothing but the choice of its candidate has seen a row that it is judged by.
    if coterie.method != "global" and coterie is not with_all:
        residuals = residuals_out_of_fold(
            coterie.method, labels, learners, selection_by_id, own_models, candidates, recipe
        )
        coterie = replace(coterie, residuals=tuple(residuals[j] for j in learners.appearance))
    return CollaborationResults(coterie, with_all, own_residuals)


def collaborate_all(
    options: Options,
    seed: int,
    selection: Selection,
    exchange: Exchange,
    partition: Partition,
    learners: Learners,
    few: FewRows | None = None,
) -> CollaborationResults:
    """Return how learners predict with others, with all, and alone, as the option ``collaboration`` has it.

    ``few`` are learners with too few rows for models, whose rows nested coteries pool. Out of core, where
    models have seen rows that are not here, clusters predict with averages of models.
    """
    method = options.collaboration
    if rows_were_left_out(selection, learners) and method in ("auto", "average", "local"):
        settings = {**settings_of(options, seed), "candidates": options.chosen_candidates}
        method = "average" if method == "auto" else method
        coterie = collaborate(selection, partition, learners, method=method, **settings)
        with_all = _averaged_with_all(selection, partition, learners, settings)
        return CollaborationResults(coterie, with_all, _judged_by_halves(selection, learners))
    if method == "auto" and learners.loss.bounds is not None:
        if len(learners) == 1 and few is None:
            return _plain(replace(options, collaboration="local"), seed, selection, partition, learners)
        of_classes = _nested_classes(options, seed, selection, exchange, partition, learners, few)
        own_residuals = of_classes.own.take(learners.appearance)
        return CollaborationResults(
            of_classes.collaboration, of_classes.collaboration.with_all(), own_residuals, of_classes
        )
    if method == "auto":
        nested = _nested(options, seed, selection, exchange, partition, learners, few)
        own_residuals = nested.own.take(learners.appearance)
        return CollaborationResults(
            nested.collaboration, nested.collaboration.with_all(), own_residuals, nested
        )
    return _plain(options, seed, selection, partition, learners)


def judged(fit: Fit) -> Fit:
    """Return the fit with the gains and verdicts of the learners that shaped the clusters.

    A gain is the share of a learner's error alone that others are expected to save; newcomers come later.
    """
    gains, model = measure_gains(
        selection=fit.selection,
        own_models=fit.own,
        partition=fit.partition,
        coterie=fit.collaboration,
        with_all=fit.with_all,
        learners=fit.learners,
        cluster_fit=fit.cluster_fit,
        stability=fit.stability,
        # The units of newcomers stand behind those of these learners.
        units=None if fit.units is None else fit.units.take(np.arange(len(fit.learners))),
        bad_model=bad_models(fit.exchange, fit.partition, fit.cluster_fit),
    )
    return replace(fit, gains=gains, gain_model=model)


def fit_selected(
    selection: Selection,
    learners: Learners,
    options: Options,
    *,
    seed: int,
    min_rows: int,
    units: Standardization | None = None,
    exponents: Array | None = None,
    small: Learners | None = None,
) -> Fit:
    """Exchange, cluster and collaborate among learners who have selected, maybe on more rows.

    To exchange is to measure the losses of everybody's models on everybody's rows. ``selection`` has the
    models that learners chose. ``units`` are their centres and spreads where rows were standardised,
    ``exponents`` the powers of two that columns were divided by. ``small`` learners, with too few rows for a
    model of their own, are placed when the clusters are known. ``min_rows`` is what it took to shape them.
    """
    seeded = settings_of(options, seed)
    # Pooled models would see the rows that are here only, and single models have seen all: they cannot be
    # compared, so that Refine uses averages of single models then.
    rows_left_out = rows_were_left_out(selection, learners)
    # Sites that answer by messages report their noise: none may claim a value that outweighs all others.
    if options.refine == "average":
        selection = replace(selection, noise=within_reach(selection.noise))
    exchange = cross_evaluate(
        selection, learners, robust=options.robust, landmarks=options.landmarks, **seeded
    )
    search = SearchOptions(
        n_clusters=options.n_clusters,
        max_clusters=options.max_clusters,
        scale=options.scale,
        refine="average" if rows_left_out and options.refine == "pooled" else options.refine,
        refine_rounds=options.moves,
        seed=seed,
        device=options.device,
    )
    running = {"candidates": options.chosen_candidates, "engine": options.engine, "n_jobs": options.n_jobs}
    clustering = search_clusters(exchange, learners, selection, search, **running)
    partition = clustering.partition
    few, placed, apart = None, None, small
    if small is not None and pools_few_rows(options, selection, learners):
        pooled, apart = split_far_learners(small, learners)
        if pooled is not None:
            few, placed = place_few(pooled, selection, partition, learners, options, seed)
    results = collaborate_all(options, seed, selection, exchange, partition, learners, few)
    stability = None
    if options.n_replicates:
        stability = bootstrap_clustering(clustering, n_replicates=options.n_replicates, entropy=seed)
    fit = Fit(
        options=options,
        learners=learners,
        selection=selection,
        exchange=exchange,
        partition=partition,
        collaboration=results.coterie,
        with_all=results.with_all,
        own=results.own,
        cluster_fit=measure_cluster_fit(clustering, selection, results.coterie),
        stability=stability,
        gains=Gains(),
        gain_model=NOTHING_MEASURED,
        admission=None,
        newcomers=(),
        units=units,
        exponents=np.zeros(learners.n_features, dtype=int) if exponents is None else exponents,
        seed=seed,
        min_rows=min_rows,
        few=None if few is None else few.learners,
    )
    fit = judged(fit)
    if results.nested is not None and few is not None and placed is not None:
        fit = with_few(fit, few.learners, placed, results.nested)
    fit = replace(fit, intervals=measured_intervals(fit, results.nested))
    return fit if apart is None else admit_learners(fit, apart)


def fit_learners(learners: Learners, options: Options, *, seed: int, exponents: Array) -> Fit:
    """Run the method: learners with rows enough shape the clusters, the others are admitted.

    Every random draw derives from ``seed``. Columns of X were divided by two to the power of ``exponents``
    (p,). The answer's table is in the order in which learners first appeared.
    """
    small, min_rows = options.split_by_size(learners.ids, learners.sizes, learners.n_features)
    shaping, units = learners.take(np.flatnonzero(~small)), None
    check_n_clusters(options.n_clusters, len(shaping))
    if options.standardize:
        shaping, units = shaping.standardized()
    selection = select_models(
        shaping,
        candidates=options.chosen_candidates,
        splitter=options.held_out_by,
        order=options.order,
        **settings_of(options, seed),
    )
    admitted = small.any() and options.small_learners == "admit"
    fit = fit_selected(
        selection,
        shaping,
        options,
        seed=seed,
        min_rows=min_rows,
        units=units,
        exponents=exponents,
        small=learners.take(np.flatnonzero(small)) if admitted else None,
    )
    if admitted:
        fit = fit.in_order(learners.ids[learners.appearance].tolist())
    return fit
