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
from coterie.collaboration.nested import NestedCollaboration, nest_coteries
from coterie.fit.admit import admit_learners
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


def collaborate_all(
    options: Options,
    seed: int,
    selection: Selection,
    exchange: Exchange,
    partition: Partition,
    learners: Learners,
) -> tuple[Collaboration, Collaboration]:
    """Return how learners predict with their coteries, and with all."""
    method = options.collaboration
    settings = {**settings_of(options, seed), "candidates": options.candidates}
    if rows_were_left_out(selection, learners) and method in ("auto", "average", "local"):
        method = "average" if method == "auto" else method
        coterie = collaborate(selection, partition, learners, method=method, **settings)
        return coterie, _averaged_with_all(selection, partition, learners, settings)
    if method == "auto":
        nested = nest_coteries(
            selection,
            exchange,
            partition,
            learners,
            form="average" if options.refine == "average" else "pooled",
            n_folds=options.nested_folds,
            splitter=options.splitter,
            scale=options.scale,
            refine=options.refine,
            robust=options.robust,
            landmarks=options.landmarks,
            **settings,
        )
        return nested, nested.with_all()
    coterie = collaborate(selection, partition, learners, method=method, **settings)
    if partition.n_clusters == 1 and coterie.method == "pooled":
        return coterie, coterie
    return coterie, collaborate(selection, partition, learners, method="global", **settings)


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
) -> Fit:
    """Exchange, cluster and collaborate among learners who have selected, maybe on more rows."""
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
    candidates = "default" if options.candidates is None else options.candidates
    running = {"candidates": candidates, "engine": options.engine, "n_jobs": options.n_jobs}
    clustering = search_clusters(exchange, learners, selection, search, **running)
    partition = clustering.partition
    coterie, with_all = collaborate_all(options, seed, selection, exchange, partition, learners)
    stability = None
    if options.n_bootstrap:
        stability = bootstrap_clustering(clustering, n_replicates=options.n_bootstrap, entropy=seed)
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
    )
    return replace(fit, gains=gains_of(fit))


def fit_learners(learners: Learners, options: Options, *, seed: int, exponents: Array) -> Fit:
    """Run the method: learners with rows enough shape the clusters, the others are admitted."""
    small, min_rows = options.split_by_size(learners.ids, learners.sizes, learners.n_features)
    shaping, units = learners.take(np.flatnonzero(~small)), None
    check_n_clusters(options.n_clusters, len(shaping))
    if options.standardize:
        shaping, units = shaping.standardized()
    selection = select_models(
        shaping,
        candidates=options.candidates,
        splitter=options.splitter,
        order=options.order,
        **settings_of(options, seed),
    )
    fit = fit_selected(
        selection, shaping, options, seed=seed, min_rows=min_rows, units=units, exponents=exponents
    )
    if small.any() and options.small_learners == "admit":
        fit = admit_learners(fit, learners.take(np.flatnonzero(small)))
        fit = fit.shown_in_order(learners.ids[learners.appearance].tolist())
    return fit
