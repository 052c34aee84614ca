"""Collaborate: what a learner predicts with, once it knows its coterie.

``"average"`` weights the members' models by their rows and moves no data (the paper's first case);
``"pooled"`` fits one model on the members' pooled rows (its second case); ``"local"`` and
``"global"`` are the two ends. The pooled model is chosen as every learner's was, on the same split of the
rows, so its residuals are honest and comparable with those of learning alone.
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
    """Return the weights of shape (K, L) of the paper's average: members count by their rows."""
    weights = membership(labels, int(labels.max()) + 1, n_rows.astype(float))
    total = weights.sum(axis=1, keepdims=True)
    # A cluster without members predicts nothing.
    shares: Array = np.divide(weights, total, out=np.full_like(weights, np.nan), where=total > 0)
    return shares


def plausible_ranges(learners: Learners, labels: Array) -> Array:
    """Return what the responses of each cluster make plausible, of shape (K, 2)."""
    cluster_of_row, n_clusters = labels[learners.owner], int(labels.max()) + 1
    if learners.loss.bounds is not None:
        counts = np.bincount(cluster_of_row, minlength=n_clusters).tolist()
        return np.array([learners.loss.own_bounds(count) for count in counts])
    return np.array([widened(learners.scalar_y[cluster_of_row == k]) for k in range(n_clusters)])


def averaged_residuals(
    averages: ModelAverages, weights: Array, labels: Array, owner: Array, y: Array, own: Array
) -> Array:
    """Return honest residuals (N,) of rows under the average of their owner's cluster.

    ``averages`` predicts these rows, ``weights`` come from `average_weights`; ``owner`` (N,) is the learner
    who holds each row, ``own`` (N, C) the honest residuals of the owners' own models. The other members never
    saw these rows; the owner's part comes from its honest model.
    """
    of_own_cluster = averages.predict(weights)[labels[owner], np.arange(len(owner))]
    own_weight = weights[labels, np.arange(len(labels))][owner, None]
    residuals: Array = y - (of_own_cluster + own_weight * (y - own - averages.own()))
    return residuals


def _by_own_models(
    selection: Selection, learners: Learners, labels: Array, method: str, engine: Engine
) -> Collaboration:
    """Let everybody predict with its own model, or with the average of its cluster's models."""
    weights, weight_rows, residuals = average_weights(selection.n_rows, labels), labels, selection.residuals
    newcomer_weight_rows, plausible = np.arange(len(weights)), plausible_ranges(learners, labels)
    if method == "average":
        averages = model_averages(selection.models, learners, engine)
        honest = np.concatenate(selection.residuals)
        averaged = averaged_residuals(averages, weights, labels, learners.owner, learners.y, honest)
        residuals = tuple(np.split(averaged, learners.offsets[1:-1]))
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
    learners: Learners, selection: Selection, sets: list[Any], members: Array, entropy: int
) -> FitJob:
    """Return the job that chooses among a cluster's candidates on its members' pooled rows."""
    rows = np.isin(learners.owner, members)
    candidates: dict[str, Any] = {}
    for j in members:
        for name, candidate in sets[j].items():
            candidates.setdefault(name, candidate)
    folds = selected_folds(selection.take(members))
    # Random halves compete on one half, as in Select; a splitter's folds all count.
    scored = (0,) if len(folds) == 2 else tuple(range(len(folds)))
    seed = integer_seed(generator_for(entropy, f"coterie of {learners.ids[members[0]]}"))
    weights = None if learners.weights is None else learners.weights[rows]
    owner = f"the coterie of learner {listed([learners.ids[members[0]]])}"
    X, y = learners.X[rows], learners.y[rows]
    return FitJob(
        owner, X, y, folds.held_out, folds.training, scored, candidates, seed, weights, learners.loss
    )


def _own(selection: Selection, j: int) -> Fitted:
    """Return what Select found for one learner."""
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
    """Return how learners predict whose clusters have one pooled model each."""
    each = tuple(models)
    return Collaboration(
        learner_ids=learner_ids,
        method="pooled",
        models=each,
        names=tuple(names),
        weights=np.eye(len(each)),
        weight_rows=labels,
        newcomer_weight_rows=np.arange(len(each)),
        residuals=residuals,
        loss=loss,
        plausible=plausible,
    )


def pool_rows(
    selection: Selection, learners: Learners, labels: Array, sets: list[Any], entropy: int, engine: Engine
) -> Collaboration:
    """Give each cluster of ``labels`` (L,) one model of pooled rows, among its members' candidates."""
    clusters = [np.flatnonzero(labels == k) for k in range(int(labels.max()) + 1)]
    several = [members for members in clusters if len(members) > 1]
    jobs = [_pooled_job(learners, selection, sets, members, entropy) for members in several]
    with quiet_fits():
        fits = iter(counted(engine, "Collaborate").map(choose_candidate, jobs))
    chosen = [next(fits) if len(m) > 1 else _own(selection, int(m[0])) for m in clusters]
    residuals: list[Array] = [np.empty(0)] * len(labels)
    for members, result in zip(clusters, chosen, strict=True):
        cuts = np.cumsum(learners.sizes[members])[:-1]
        for j, part in zip(members, np.split(result.residuals, cuts), strict=True):
            residuals[j] = part
    models, names = (fitted.model for fitted in chosen), (fitted.name for fitted in chosen)
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
    chosen = selection.aligned_to(learners.ids)
    labels = partition.aligned_to(learners.ids).labels
    runner = resolve_engine(engine, n_jobs)
    if method in ("average", "local"):
        result = _by_own_models(chosen, learners, labels, method, runner)
    else:
        shared_labels = labels if method == "pooled" else np.zeros_like(labels)
        sets = candidates_per_learner(candidates, learners.ids.tolist())
        result = pool_rows(chosen, learners, shared_labels, sets, as_entropy(random_state), runner)
        if method == "global":
            one = np.zeros(int(labels.max()) + 1, dtype=int)
            result = replace(result, method="global", newcomer_weight_rows=one)
    return result.take(learners.appearance)
