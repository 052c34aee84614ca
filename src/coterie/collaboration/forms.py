"""Collaborate: what a learner predicts with, once it knows its coterie.

``"average"`` weights the members' models by their rows and moves no data (the paper's first case);
``"pooled"`` fits one model on the members' pooled rows (its second case); ``"local"`` and
``"global"`` are the two ends. The pooled model is chosen as every learner's was, on the same split of the
rows, so its residuals are honest and comparable with those of learning alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie._options import check_option, listed
from coterie._seeds import as_entropy, generator_for, integer_seed
from coterie.candidates import candidates_per_learner
from coterie.engines import Engine, counted, resolve_engine
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


def averaged_residuals(
    averages: ModelAverages, weights: Array, labels: Array, owner: Array, y: Array, own: Array
) -> Array:
    """Return honest residuals (N,) of rows under the average of their owner's cluster.

    ``averages`` predicts these rows, ``weights`` come from `average_weights`; ``owner`` (N,) is the learner
    who holds each row, ``own`` (N, C) the honest residuals of the owners' own models. The other members never
    saw these rows; the owner's part comes from its honest model.
    """
    mine = averages.predict(weights)[labels[owner], np.arange(len(owner))]
    own_weight = weights[labels, np.arange(len(labels))][owner, None]
    residuals: Array = y - (mine + own_weight * (y - own - averages.own()))
    return residuals


def _averaged(selection: Selection, learners: Learners, labels: Array, engine: Engine) -> Collaboration:
    weights = average_weights(selection.n_rows, labels)
    averages = model_averages(selection.models, learners, engine)
    honest = np.concatenate(selection.residuals)
    residuals = averaged_residuals(averages, weights, labels, learners.owner, learners.y, honest)
    return Collaboration(
        learner_ids=learners.ids,
        method="average",
        models=selection.models,
        names=selection.names,
        weights=weights,
        ways=labels,
        newcomer_ways=np.arange(len(weights)),
        residuals=tuple(np.split(residuals, learners.offsets[1:-1])),
        loss=learners.loss,
    )


def _local(selection: Selection, learners: Learners, labels: Array) -> Collaboration:
    n = len(labels)
    averages = average_weights(selection.n_rows, labels)
    return Collaboration(
        learner_ids=learners.ids,
        method="local",
        models=selection.models,
        names=selection.names,
        weights=np.vstack([np.eye(n), averages]),
        ways=np.arange(n),
        # A newcomer has no model here yet: it predicts with the average of its coterie.
        newcomer_ways=n + np.arange(len(averages)),
        residuals=selection.residuals,
        loss=learners.loss,
    )


def _pooled_job(
    learners: Learners, selection: Selection, sets: list[Any], members: Array, entropy: int
) -> FitJob:
    rows = np.isin(learners.owner, members)
    candidates: dict[str, Any] = {}
    for j in members:
        for name, candidate in sets[j].items():
            candidates.setdefault(name, candidate)
    folds = np.concatenate([selection.folds[j] for j in members])
    # A member with fewer folds than others trains with all its rows in the folds that it lacks.
    n_folds = max(len(selection.training[j]) for j in members)
    lacking = [(0, n_folds - len(selection.training[j])) for j in members]
    training = np.hstack(
        [
            np.pad(selection.training[j], (lack, (0, 0)), constant_values=True)
            for j, lack in zip(members, lacking, strict=True)
        ]
    )
    # Random halves compete on one half, as in Select; a splitter's folds all count.
    scored = (0,) if n_folds == 2 else tuple(range(n_folds))
    seed = integer_seed(generator_for(entropy, f"coterie of {learners.ids[members[0]]}"))
    weights = None if learners.weights is None else learners.weights[rows]
    owner = f"the coterie of learner {listed([learners.ids[members[0]]])}"
    X, y = learners.X[rows], learners.y[rows]
    return FitJob(owner, X, y, folds, training, scored, candidates, seed, weights, learners.loss)


def _own(selection: Selection, j: int) -> Fitted:
    return Fitted(
        name=selection.names[j],
        model=selection.models[j],
        error=float(selection.errors[j]),
        held_out_error=float(selection.held_out_errors[j]),
        candidate_errors=selection.candidate_errors[j],
        residuals=selection.residuals[j],
        fold_models=selection.fold_models[j],
        failures={},
    )


def _pooled(
    selection: Selection,
    learners: Learners,
    labels: Array,
    sets: list[Any],
    entropy: int,
    engine: Engine,
) -> tuple[list[Fitted], tuple[Array, ...]]:
    clusters = [np.flatnonzero(labels == k) for k in range(int(labels.max()) + 1)]
    several = [members for members in clusters if len(members) > 1]
    jobs = [_pooled_job(learners, selection, sets, members, entropy) for members in several]
    with quiet_fits():
        fitted = iter(counted(engine, "Collaborate").map(choose_candidate, jobs))
    chosen = [next(fitted) if len(m) > 1 else _own(selection, int(m[0])) for m in clusters]
    residuals: list[Array] = [np.empty(0)] * len(labels)
    for members, result in zip(clusters, chosen, strict=True):
        cuts = np.cumsum(learners.sizes[members])[:-1]
        for j, part in zip(members, np.split(result.residuals, cuts), strict=True):
            residuals[j] = part
    return chosen, tuple(residuals)


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
    >>> together = coterie.collaborate(selection, partition, **rows, method="average")
    >>> together.weights.shape
    (2, 6)
    """
    check_option(method, "method", METHODS)
    learners = gather_learners(X, y, groups, sample_weight=sample_weight, caller="collaborate")
    chosen = selection.aligned_to(learners.ids)
    labels = partition.aligned_to(learners.ids).labels
    runner = resolve_engine(engine, n_jobs)
    if method == "average":
        result = _averaged(chosen, learners, labels, runner)
    elif method == "local":
        result = _local(chosen, learners, labels)
    else:
        ways = labels if method == "pooled" else np.zeros_like(labels)
        sets = candidates_per_learner(candidates, learners.ids.tolist())
        entropy = as_entropy(random_state)
        fitted, residuals = _pooled(chosen, learners, ways, sets, entropy, runner)
        n_clusters = int(labels.max()) + 1
        result = Collaboration(
            learner_ids=learners.ids,
            method=method,
            models=tuple(f.model for f in fitted),
            names=tuple(f.name for f in fitted),
            weights=np.eye(len(fitted)),
            ways=ways,
            newcomer_ways=np.arange(n_clusters) if method == "pooled" else np.zeros(n_clusters, int),
            residuals=residuals,
            loss=learners.loss,
        )
    return result.take(learners.appearance)
