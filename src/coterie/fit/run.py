"""The method from rows to a record: Select, Exchange, Cluster, Collaborate, and what each learner is told.

Read `fit_learners` and `fit_selected` to know the default algorithm; each step is one call into its own
folder.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie.collaboration.forms import collaborate
from coterie.collaboration.nested import FewRows, Nested, NestedCollaboration, Recipe, nest_learners
from coterie.engines import resolve_engine
from coterie.fit.admit import admit_learners, place_few, told_apart, with_few
from coterie.fit.intervals import measured_intervals
from coterie.fit.options import Options
from coterie.fit.record import Fit
from coterie.method.cluster import search_clusters
from coterie.method.exchange import cross_evaluate
from coterie.method.search import SearchOptions, check_n_clusters
from coterie.method.select import select_models
from coterie.records import Collaboration, Exchange, Partition, Selection
from coterie.rows.learners import Learners, Standardization
from coterie.verdicts import Gains, bad_models, bootstrap_clustering, measure_cluster_fit, measure_gains


def rows_were_left_out(selection: Selection, learners: Learners) -> bool:
    """Tell whether models were fitted on more rows than are here, as out of core."""
    return bool(selection.n_rows.sum() > len(learners.y))


def _averaged_with_all(
    selection: Selection, partition: Partition, learners: Learners, settings: dict[str, Any]
) -> Collaboration:
    """Return how everybody, newcomers too, would predict with the average of all models."""
    one = replace(partition, labels=np.zeros_like(partition.labels))
    averaged = collaborate(selection, one, learners, method="average", **settings)
    return replace(averaged, newcomer_weight_rows=np.zeros(partition.n_clusters, dtype=int))


def settings_of(options: Options, seed: int) -> dict[str, Any]:
    """Return what every stage takes: the seed, and who runs the work."""
    return {"random_state": seed, "engine": options.engine, "n_jobs": options.n_jobs}


def _nested(
    options: Options,
    seed: int,
    selection: Selection,
    exchange: Exchange,
    partition: Partition,
    learners: Learners,
    few: FewRows | None,
) -> Nested:
    """Return how learners predict with nested coteries, in the order in which they first appeared."""
    labels = partition.aligned_to(learners.ids).labels
    engine = resolve_engine(options.engine, options.n_jobs)
    chosen = int(labels.max()) + 1
    nested = nest_learners(
        learners,
        selection.aligned_to(learners.ids),
        exchange.aligned_to(learners.ids),
        labels,
        options.chosen_candidates,
        Recipe(chosen, options.scale, options.refine, options.robust, seed, engine, options.landmarks),
        form="average" if options.refine == "average" else "pooled",
        n_folds=options.n_folds,
        splitter=options.splitter,
        few=few,
        trees=options.trees,
        levels=options.standardize is None,
    )
    return replace(nested, collaboration=nested.collaboration.take(learners.appearance))


def pools_few_rows(options: Options, selection: Selection, learners: Learners) -> bool:
    """Tell whether rows of learners that are too small for a model of their own are pooled."""
    pooled = options.collaboration == "auto" and options.refine != "average" and not options.standardize
    return pooled and not rows_were_left_out(selection, learners)


def collaborate_all(
    options: Options,
    seed: int,
    selection: Selection,
    exchange: Exchange,
    partition: Partition,
    learners: Learners,
    few: FewRows | None = None,
) -> tuple[Collaboration, Collaboration, Nested | None]:
    """Return how learners predict with their coteries, and with all; and nested coteries, if they do so."""
    method = options.collaboration
    settings = {**settings_of(options, seed), "candidates": options.chosen_candidates}
    if rows_were_left_out(selection, learners) and method in ("auto", "average", "local"):
        method = "average" if method == "auto" else method
        coterie = collaborate(selection, partition, learners, method=method, **settings)
        return coterie, _averaged_with_all(selection, partition, learners, settings), None
    if method == "auto":
        nested = _nested(options, seed, selection, exchange, partition, learners, few)
        return nested.collaboration, nested.collaboration.with_all(), nested
    coterie = collaborate(selection, partition, learners, method=method, **settings)
    if partition.n_clusters == 1 and coterie.method == "pooled":
        return coterie, coterie, None
    return coterie, collaborate(selection, partition, learners, method="global", **settings), None


def gains_of(fit: Fit) -> Gains:
    """Return the table of the learners that shaped the clusters."""
    alone = fit.selection
    if isinstance(fit.collaboration, NestedCollaboration):
        # All three on the same folds, so that they can be compared.
        alone = replace(alone, residuals=fit.collaboration.alone_residuals)
    return measure_gains(
        alone,
        fit.partition,
        fit.collaboration,
        fit.with_all,
        fit.learners,
        fit.cluster_fit,
        fit.stability,
        None if fit.units is None else fit.units.take(np.arange(len(fit.learners))),
        bad_models(fit.exchange, fit.partition, fit.cluster_fit),
    )


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

    ``small`` learners, with too few rows for a model of their own, are placed when the clusters are known.
    """
    seeded = settings_of(options, seed)
    # Pooled models would see the rows that are here, single models have seen all: unlike things.
    thinned = rows_were_left_out(selection, learners)
    exchange = cross_evaluate(
        selection, learners, robust=options.robust, landmarks=options.landmarks, **seeded
    )
    search = SearchOptions(
        n_clusters=options.n_clusters,
        max_clusters=options.max_clusters,
        scale=options.scale,
        refine="average" if thinned and options.refine == "pooled" else options.refine,
        seed=seed,
        device=options.device,
    )
    running = {"candidates": options.chosen_candidates, "engine": options.engine, "n_jobs": options.n_jobs}
    clustering = search_clusters(exchange, learners, selection, search, **running)
    partition = clustering.partition
    few, placed, apart = None, None, small
    if small is not None and pools_few_rows(options, selection, learners):
        pooled, apart = told_apart(small, learners)
        if pooled is not None:
            few, placed = place_few(pooled, selection, partition, learners, options, seed)
    coterie, with_all, nested = collaborate_all(options, seed, selection, exchange, partition, learners, few)
    stability = None
    if options.n_replicates:
        stability = bootstrap_clustering(clustering, n_replicates=options.n_replicates, entropy=seed)
    fit = Fit(
        options=options,
        learners=learners,
        selection=selection,
        exchange=exchange,
        partition=partition,
        collaboration=coterie,
        with_all=with_all,
        cluster_fit=measure_cluster_fit(clustering, selection, coterie),
        stability=stability,
        gains=Gains(),
        admission=None,
        newcomers=(),
        units=units,
        exponents=np.zeros(learners.n_features, dtype=int) if exponents is None else exponents,
        seed=seed,
        min_rows=min_rows,
        few=None if few is None else few.learners,
    )
    fit = replace(fit, gains=gains_of(fit))
    if nested is not None and few is not None and placed is not None:
        fit = with_few(fit, few.learners, placed, nested)
    fit = replace(fit, intervals=measured_intervals(fit, nested))
    return fit if apart is None else admit_learners(fit, apart)


def fit_learners(learners: Learners, options: Options, *, seed: int, exponents: Array) -> Fit:
    """Run the method: learners with rows enough shape the clusters, the others are admitted."""
    small, min_rows = options.split_by_size(learners.ids, learners.sizes, learners.n_features)
    shaping, units = learners.take(np.flatnonzero(~small)), None
    check_n_clusters(options.n_clusters, len(shaping))
    if options.standardize:
        shaping, units = shaping.standardized()
    selection = select_models(
        shaping,
        candidates=options.chosen_candidates,
        splitter=options.splitter,
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
        fit = fit.shown_in_order(learners.ids[learners.appearance].tolist())
    return fit
