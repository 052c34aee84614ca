"""Collaborate: what a learner predicts with, once it knows its coterie.

``"average"`` weights the members' models by their rows and moves no data (the paper's first case);
``"pooled"`` fits one model on the members' pooled rows (its second case); ``"local"`` and
``"global"`` are the two ends. The pooled model is chosen as every learner's was, on the same split of the
rows, so its residuals are out of fold and comparable with those of learning alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie._options import check_option, listed
from coterie._seeds import as_entropy, generator_for, integer_seed
from coterie.candidates import candidates_per_learner
from coterie.collaboration.nested.folds import selected_folds
from coterie.collaboration.nested.guard import widened
from coterie.engines import Engine, counted, resolve_engine
from coterie.loss import Loss
from coterie.method.fitting import FitJob, Fitted, choose_candidate, quiet_fits
from coterie.method.refine.averages import ModelAverages, membership, model_averages
from coterie.records import Collaboration, Partition, Selection
from coterie.rows.learners import Learners, gather_learners

METHODS = ("pooled", "average", "local", "global")


def average_weights(n_rows: Array, labels: Array) -> Array:
    """Return the weights (K, L) of L learners' models in the averages of K clusters, ``labels`` (L,).

    As in the paper, a member counts in proportion to its number of rows, ``n_rows`` (L,); others have
    weight zero. The weights of a cluster without members are NaN.
    """
    rows_of_members = membership(labels, int(labels.max()) + 1, n_rows.astype(float))
    rows_of_cluster = rows_of_members.sum(axis=1, keepdims=True)
    # A cluster without members predicts nothing.
    weights: Array = np.divide(
        rows_of_members, rows_of_cluster, out=np.full_like(rows_of_members, np.nan), where=rows_of_cluster > 0
    )
    return weights


def plausible_ranges(learners: Learners, labels: Array) -> Array:
    """Return the lowest and highest plausible prediction in each of K clusters, of shape (K, 2).

    For numbers it is the range of the members' responses with a margin, for classes what their number of
    rows allows. Predictions are clipped to it, so that a model that extrapolates does no harm.
    """
    cluster_of_row, n_clusters = labels[learners.owner], int(labels.max()) + 1
    if learners.loss.bounds is not None:
        counts = np.bincount(cluster_of_row, minlength=n_clusters).tolist()
        return np.array([learners.loss.own_bounds(count) for count in counts])
    return np.array([widened(learners.scalar_y[cluster_of_row == k]) for k in range(n_clusters)])


def averaged_residuals(
    averages: ModelAverages, weights: Array, labels: Array, owner: Array, y: Array, own: Array
) -> Array:
    """Return out-of-fold residuals (N, C) of rows under the average of their owner's cluster.

    ``averages`` predicts these rows and ``weights`` (K, L) come from `average_weights`. ``labels`` (L,)
    are the clusters, ``owner`` (N,) is the learner that holds each row, and ``own`` (N, C) are
    out-of-fold residuals of the owners' own models.

    The other members' models were not fitted on these rows. The owner's model was, so its prediction in
    the average is replaced by its out-of-fold prediction.
    """
    cluster_predictions = averages.predict(weights)[labels[owner], np.arange(len(owner))]
    owner_weights = weights[labels, np.arange(len(labels))][owner, None]
    residuals: Array = y - (cluster_predictions + owner_weights * (y - own - averages.own()))
    return residuals


def _by_own_models(
    selection: Selection, learners: Learners, labels: Array, method: str, engine: Engine
) -> Collaboration:
    """Return how learners predict with their own models, or with the average of their cluster's models.

    ``labels`` (L,) are the clusters and ``method`` is ``"local"`` (own models) or ``"average"``. No model is
    fitted: those of ``selection`` are used. Residuals are out of fold.
    """
    weights, weight_rows, residuals = average_weights(selection.n_rows, labels), labels, selection.residuals
    newcomer_weight_rows, plausible = np.arange(len(weights)), plausible_ranges(learners, labels)
    if method == "average":
        averages = model_averages(selection.models, learners, engine)
        own_residuals = np.concatenate(selection.residuals)
        average_residuals = averaged_residuals(
            averages, weights, labels, learners.owner, learners.y, own_residuals
        )
        residuals = tuple(np.split(average_residuals, learners.offsets[1:-1]))
    else:
        # A newcomer has no model here yet: it predicts with the average of its coterie.
        weight_rows, newcomer_weight_rows = np.arange(len(labels)), len(labels) + newcomer_weight_rows
        weights = np.vstack([np.eye(len(labels)), weights])
        plausible = np.vstack([plausible_ranges(learners, np.arange(len(labels))), plausible])
    return Collaboration(
        learner_ids=learners.ids,
        method=method,
        models=selection.models,
        names=selection.names,
        weights=weights,
        weight_rows=weight_rows,
        newcomer_weight_rows=newcomer_weight_rows,
        residuals=residuals,
        loss=learners.loss,
        plausible=plausible,
    )


def _pooled_job(
    learners: Learners, selection: Selection, candidate_sets: list[Any], members: Array, entropy: int
) -> FitJob:
    """Return the job that chooses and fits one candidate on the pooled rows of a cluster.

    ``members`` are positions of the cluster's learners, ``candidate_sets`` the candidates of every
    learner. Those of all members compete, on the folds by which each member chose its own model.
    """
    is_members_row = np.isin(learners.owner, members)
    candidates: dict[str, Any] = {}
    for member in members:
        for name, candidate in candidate_sets[member].items():
            candidates.setdefault(name, candidate)
    folds = selected_folds(selection.take(members))
    # Random halves compete on one half, as in Select; a splitter's folds all count.
    scored_folds = (0,) if len(folds) == 2 else tuple(range(len(folds)))
    seed = integer_seed(generator_for(entropy, f"coterie of {learners.ids[members[0]]}"))
    weights = None if learners.weights is None else learners.weights[is_members_row]
    job_name = f"the coterie of learner {listed([learners.ids[members[0]]])}"
    X, y = learners.X[is_members_row], learners.y[is_members_row]
    return FitJob(
        owner=job_name,
        X=X,
        y=y,
        folds=folds.held_out,
        training=folds.training,
        scored=scored_folds,
        candidates=candidates,
        seed=seed,
        weights=weights,
        loss=learners.loss,
    )


def _own(selection: Selection, j: int) -> Fitted:
    """Return learner j's own fit from Select as a record: the pooled model of a cluster of one."""
    return Fitted(
        name=selection.names[j],
        model=selection.models[j],
        error=float(selection.errors[j]),
        held_out_error=float(selection.held_out_errors[j]),
        candidate_errors=selection.candidate_errors[j],
        candidate_losses=selection.candidate_losses[j],
        residuals=selection.residuals[j],
        fold_models=selection.fold_models[j],
        failures={},
    )


def one_model_each(
    learner_ids: Array,
    labels: Array,
    models: Iterable[Any],
    names: Iterable[str],
    residuals: tuple[Array, ...],
    loss: Loss,
    plausible: Array,
) -> Collaboration:
    """Return how learners predict where each of K clusters has one model of pooled rows.

    ``labels`` (L,) are the clusters; ``models`` and ``names`` have K entries, ``residuals`` one array for
    each learner, and ``plausible`` (K, 2) has the bounds of predictions.
    """
    models_of_clusters = tuple(models)
    return Collaboration(
        learner_ids=learner_ids,
        method="pooled",
        models=models_of_clusters,
        names=tuple(names),
        weights=np.eye(len(models_of_clusters)),
        weight_rows=labels,
        newcomer_weight_rows=np.arange(len(models_of_clusters)),
        residuals=residuals,
        loss=loss,
        plausible=plausible,
    )


def pool_rows(
    selection: Selection, learners: Learners, labels: Array, sets: list[Any], entropy: int, engine: Engine
) -> Collaboration:
    """Fit one model on the pooled rows of each cluster of ``labels`` (L,); its members predict with it.

    ``sets`` has the candidates of every learner. A cluster of one learner keeps that learner's own model.
    Residuals are out of fold, as those of learning alone, so that the two can be compared.
    """
    clusters = [np.flatnonzero(labels == k) for k in range(int(labels.max()) + 1)]
    clusters_of_several = [members for members in clusters if len(members) > 1]
    jobs = [_pooled_job(learners, selection, sets, members, entropy) for members in clusters_of_several]
    with quiet_fits():
        pooled_fits = iter(counted(engine, "Collaborate").map(choose_candidate, jobs))
    fit_of_clusters = [
        next(pooled_fits) if len(positions) > 1 else _own(selection, int(positions[0]))
        for positions in clusters
    ]
    residuals: list[Array] = [np.empty(0)] * len(labels)
    for members, cluster_fit in zip(clusters, fit_of_clusters, strict=True):
        row_cuts = np.cumsum(learners.sizes[members])[:-1]
        for member, residuals_of_member in zip(
            members, np.split(cluster_fit.residuals, row_cuts), strict=True
        ):
            residuals[member] = residuals_of_member
    models, names = (fitted.model for fitted in fit_of_clusters), (fitted.name for fitted in fit_of_clusters)
    plausible = plausible_ranges(learners, labels)
    return one_model_each(learners.ids, labels, models, names, tuple(residuals), learners.loss, plausible)


def collaborate(
    selection: Selection,
    partition: Partition,
    X: Any,
    y: Any = None,
    groups: Any = None,
    *,
    method: str = "pooled",
    candidates: Any = None,
    sample_weight: Any = None,
    random_state: Any = 0,
    engine: Any = None,
    n_jobs: int | None = None,
) -> Collaboration:
    """Give every learner the models of its coterie.

    Parameters
    ----------
    selection : Selection
        What `select_models` returned for these rows.
    partition : Partition
        What `cluster_learners` returned.
    X : array-like or table of shape (N, p)
        Predictors of all learners.
    y : array-like of shape (N,)
        Response.
    groups : array-like of shape (N,), str, or None, default=None
        Learner id of each row, or the name of the column of X that holds it.
    method : {"pooled", "average", "local", "global"}, default="pooled"
        One model on the coterie's rows; the average of its models, weighted by rows; each learner's
        own model; one model on all rows.
    candidates : str, list, dict or None, default=None
        As for `select_models`; a coterie chooses among those of all its members.
    sample_weight : array-like of shape (N,) or None, default=None
        Weights of the rows, for the candidates that take them.
    random_state : int, RandomState or None, default=0
        Seed of the pooled models.
    engine : {None, "threads", "dask"}, a Dask client or an object with ``map``, default=None
        Who runs the fits.
    n_jobs : int or None, default=None
        Number of threads.

    Returns
    -------
    Collaboration
        How each learner, and a newcomer to each cluster, predicts.

    Examples
    --------
    >>> import coterie
    >>> from coterie.datasets import make_linear_learners
    >>> data = make_linear_learners(n_learners=6, n_truths=2, random_state=0)
    >>> rows = dict(X=data.X, y=data.y, groups=data.groups)
    >>> selection = coterie.select_models(**rows, candidates="linear")
    >>> partition = coterie.cluster_learners(coterie.cross_evaluate(selection, **rows), n_clusters=2)
    >>> collaboration = coterie.collaborate(selection, partition, **rows, method="average")
    >>> collaboration.weights.shape
    (2, 6)
    """
    check_option(method, "method", METHODS)
    learners = gather_learners(X, y, groups, sample_weight=sample_weight, caller="collaborate")
    aligned_selection = selection.aligned_to(learners.ids)
    labels = partition.aligned_to(learners.ids).labels
    job_engine = resolve_engine(engine, n_jobs)
    if method in ("average", "local"):
        collaboration = _by_own_models(aligned_selection, learners, labels, method, job_engine)
    else:
        shared_labels = labels if method == "pooled" else np.zeros_like(labels)
        candidate_sets = candidates_per_learner(candidates, learners.ids.tolist())
        collaboration = pool_rows(
            aligned_selection, learners, shared_labels, candidate_sets, as_entropy(random_state), job_engine
        )
        if method == "global":
            newcomer_rows = np.zeros(int(labels.max()) + 1, dtype=int)
            collaboration = replace(collaboration, method="global", newcomer_weight_rows=newcomer_rows)
    return collaboration.take(learners.appearance)
