"""From losses and rows to a partition: `cluster_learners`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from coterie._options import check_option, listed
from coterie._seeds import as_entropy
from coterie.candidates import candidates_per_learner
from coterie.engines import Engine, resolve_engine
from coterie.kernels.devices import check_device
from coterie.method.exchange import exchange_from_losses
from coterie.method.n_clusters.cross_validation import cross_validated
from coterie.method.n_clusters.landmark_check import landmark_note
from coterie.method.order import IN_ORDER
from coterie.method.refine.averages import AverageLosses
from coterie.method.refine.losses import LocalLosses, LocalRows
from coterie.method.refine.moves import REFINE
from coterie.method.refine.refits import pooled_losses
from coterie.method.search import (
    Answerer,
    SearchOptions,
    SearchResult,
    check_n_clusters,
    finite_learners,
    search_partition,
)
from coterie.records import Exchange, Partition, Selection
from coterie.rows.learners import Learners, gather_learners
from coterie.rows.wild import notes_on

REFINEMENTS = ("pooled", "average", "likelihood", None)


@dataclass(frozen=True)
class Clustering(SearchResult):
    """A partition, and what judging it takes; the latter is large and lives no longer than the fit."""

    losses: LocalLosses | None


def _of_exchange(learners: Learners, exchange: Exchange) -> Learners:
    """Return the learners in the order of an exchange."""
    index = {learner: p for p, learner in enumerate(learners.ids.tolist())}
    missing = [i for i in exchange.learner_ids.tolist() if i not in index]
    if missing:
        raise ValueError(
            f"Learner {listed(missing)} of the exchange has no rows in X: pass the rows that "
            "the exchange was made from."
        )
    return learners.take(np.array([index[i] for i in exchange.learner_ids.tolist()], dtype=int))


def _rows_answer(
    learners: Learners,
    selection: Selection,
    known: Exchange,
    options: SearchOptions,
    candidates: Any,
    engine: Engine,
) -> Answerer:
    """Return what rows answer for an exchange: what clusters lose, and how rows help a search.

    ``known`` is the exchange, and learners and selection are in its order. How clusters predict is by the
    option ``refine``: a model of pooled rows, or the average of the members' models.
    """
    if known.landmarks is not None and options.refine == "average":
        raise ValueError(
            "Averages of everybody's models take the evaluations that landmarks save: set "
            "refine='pooled' or None, or landmarks=None."
        )
    losses: LocalLosses
    if options.refine == "likelihood" and learners.loss.bounds is not None:
        raise ValueError(
            "The option refine='likelihood' takes a numeric response: for classes set refine='pooled'."
        )
    if options.refine in ("pooled", "likelihood") or known.landmarks is not None:
        ids = known.learner_ids.tolist()
        sets = None if candidates is None else candidates_per_learner(candidates, ids)
        losses, local = pooled_losses(learners, selection, known, engine, sets)
    else:
        losses, local = AverageLosses.of_all(learners, selection, known, engine), LocalRows()
    curve = partial(cross_validated, learners=learners, selection=selection, engine=engine)
    local = replace(local, cross_validate=curve)
    if known.landmarks is not None:
        note = partial(landmark_note, known, learners, selection, engine=engine, seed=options.seed)
        local = replace(local, check_landmarks=note)
    return Answerer(losses, learners.sizes, learners.n_features, learners, selection.in_order, local)


def search_clusters(
    exchange: Exchange,
    learners: Learners | None,
    selection: Selection | None,
    options: SearchOptions,
    *,
    candidates: Any = None,
    engine: Any = None,
    n_jobs: int | None = None,
) -> Clustering:
    """Cluster the learners, and keep what judging the clusters takes; see `cluster_learners`.

    Without ``learners``, the rows, there are only the losses of an exchange. ``selection`` is what each
    learner chose by cross-validation. Options are checked before any work is done.
    """
    if options.refine is not None:
        check_option(options.refine, "refine", REFINEMENTS)
    check_device(options.device)
    check_n_clusters(options.n_clusters, len(exchange.learner_ids))
    answerer = Answerer()
    said: tuple[str, ...] = ()
    if learners is not None:
        if selection is None:
            raise ValueError("cluster_learners needs the selection beside the rows: pass selection=.")
        said = notes_on(learners.wild)
        known = exchange.take(finite_learners(exchange))
        exchanged_learners, chosen = _of_exchange(learners, known), selection.aligned_to(known.learner_ids)
        runner = resolve_engine(engine, n_jobs)
        answerer = _rows_answer(exchanged_learners, chosen, known, options, candidates, runner)
    result = search_partition(exchange, answerer, options)
    if selection is not None and selection.in_order:
        said = (*said, IN_ORDER)
    partition = replace(result.partition, notes=(*said, *result.partition.notes))
    used = result.losses if isinstance(result.losses, LocalLosses) else None
    return Clustering(partition, result.learner_ids, result.labellings, used)


def cluster_learners(
    exchange: Any,
    X: Any = None,
    y: Any = None,
    groups: Any = None,
    *,
    selection: Selection | None = None,
    n_clusters: Any = "auto",
    max_clusters: int | None = None,
    scale: Any = "noise",
    refine: str | None = "pooled",
    candidates: Any = None,
    refine_rounds: int = REFINE.rounds,
    sample_weight: Any = None,
    learner_ids: Any = None,
    random_state: Any = 0,
    engine: Any = None,
    n_jobs: int | None = None,
    device: str = "auto",
) -> Partition:
    """Cluster the learners, with a given number of clusters or by a rule.

    Parameters
    ----------
    exchange : Exchange or array-like of shape (L, L)
        What `cross_evaluate` returned, or a precomputed matrix of losses: row i is the model of
        learner i on everybody.
    X : array-like or table of shape (N, p), or None, default=None
        Predictors. Refine, ``"held-out"`` and ``"cv"`` need the rows and the selection; without
        them the learners are clustered by their losses alone, and ``"auto"`` is ``"eigengap"``.
    y : array-like of shape (N,) or None, default=None
        Response.
    groups : array-like of shape (N,), str, or None, default=None
        Learner id of each row, or the name of the column of X that holds it.
    selection : Selection or None, default=None
        What `select_models` returned for these rows.
    n_clusters : int or str, default="auto"
        A number, or one of the rules ``"held-out"`` (which ``"auto"`` means), ``"gap"``,
        ``"gap-jump"``, ``"eigengap"``, ``"penalty"``, ``"cv"``.
    max_clusters : int or None, default=None
        The largest number that a rule looks at. None: 2 sqrt(L), at least 8 and at most 20.
    scale : {"noise", "median"} or float, default="noise"
        The factor a of S = exp(-a v): one over the median noise level, one over the median
        dissimilarity, or a number.
    refine : {"pooled", "average", "likelihood", None}, default="pooled"
        How clusters predict when learners are moved to the cluster that predicts them best; None:
        nobody is moved, as in the paper. ``"likelihood"``: a mixture of mixed lines labels the learners,
        and says how many clusters there are unless a number or another rule is given.
    candidates : str, list, dict or None, default=None
        What `select_models` chose from. A flexible candidate that no learner chose on its few rows may yet
        predict clusters better. None: clusters predict by what the learners chose.
    refine_rounds : int, default=10
        How often learners are moved at most. Sites that answer by messages pay a round for each.
    sample_weight : array-like of shape (N,) or None, default=None
        Weights of the rows.
    learner_ids : array-like of shape (L,) or None, default=None
        Names for a precomputed matrix of losses.
    random_state : int, RandomState or None, default=0
        For k-means and for the reference sets of the gap statistic.
    engine : {None, "threads", "dask"}, a Dask client or an object with ``map``, default=None
        Who runs the predictions.
    n_jobs : int or None, default=None
        Number of threads.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where the spectrum of more than 4,000 learners is computed, whose similarities are not stored:
        a GPU where torch finds one, the processor, or the GPU.

    Returns
    -------
    Partition
        Labels, similarity, spectrum, and the curves of all rules.

    Examples
    --------
    >>> from coterie import cluster_learners
    >>> losses = [[1, 1.1, 9], [1.1, 1, 9], [9, 9, 1]]
    >>> cluster_learners(losses, n_clusters=2).labels.tolist()
    [0, 0, 1]
    """
    if not isinstance(exchange, Exchange):
        exchange = exchange_from_losses(exchange, learner_ids)
    learners = None
    if X is not None:
        learners = gather_learners(X, y, groups, sample_weight=sample_weight, caller="cluster_learners")
    seed = as_entropy(random_state)
    options = SearchOptions(n_clusters, max_clusters, scale, refine, refine_rounds, seed, device)
    running = {"candidates": candidates, "engine": engine, "n_jobs": n_jobs}
    return search_clusters(exchange, learners, selection, options, **running).partition
