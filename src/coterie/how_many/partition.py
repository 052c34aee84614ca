"""From losses to a partition: the rules side by side, one of which decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie._options import check_count, check_option, listed
from coterie._rows import Learners, gather_learners
from coterie._seeds import as_entropy
from coterie.engines import Engine, resolve_engine
from coterie.how_many.cross_validation import cross_validated
from coterie.how_many.eigengap import eigengap
from coterie.how_many.evidence import Evidence
from coterie.how_many.gap import gap_rules
from coterie.how_many.held_out import UNCLEAR, HeldOut, best_refined, held_out
from coterie.how_many.landmark_check import landmark_note
from coterie.how_many.penalty import penalty
from coterie.how_many.precomputed import exchange_from_losses
from coterie.kernels.averages import AverageLosses
from coterie.kernels.devices import check_device
from coterie.kernels.refits import pooled_losses
from coterie.kernels.similarities import ExchangeSimilarity
from coterie.kernels.together import LocalLosses
from coterie.records import Curve, Exchange, Partition, Selection, SimilarityTiles
from coterie.stages.cluster import resolve_scale, tidy_labels

Array = NDArray[Any]

RULES = ("auto", "held-out", "gap", "gap-jump", "eigengap", "penalty", "cv")
REFINEMENTS = ("pooled", "average", None)
# Above this residual of the spectrum a reader should know of it.
LARGEST_RESIDUAL = 1e-3
# Beyond this many learners the curve of cross-validation is drawn only when asked for.
CROSS_VALIDATED_LEARNERS = 1_000


@dataclass(frozen=True)
class _Rows:
    learners: Learners
    selection: Selection
    engine: Engine


@dataclass(frozen=True)
class Clustering:
    """A partition, and what judging it takes; the latter is large and lives no longer than the fit.

    Parameters
    ----------
    partition : Partition
        Who learns with whom.
    learner_ids : ndarray of shape (M,)
        The learners whose losses are finite, in the order of the fields below.
    losses : LocalLosses or None
        Answers what clusters lose on these learners; None without rows.
    labellings : mapping of int to ndarray of shape (M,)
        What the held-out rule found for each number of clusters; empty where the number was given.
    """

    partition: Partition
    learner_ids: Array
    losses: LocalLosses | None
    labellings: Mapping[int, Array]


def default_max_clusters(n_learners: int) -> int:
    """Return how many clusters are looked at: 2 sqrt(L), at least 8 and at most 20."""
    return int(min(n_learners, max(8, np.ceil(2 * np.sqrt(n_learners))), 20))


def check_n_clusters(n_clusters: Any, n_learners: int) -> Any:
    """Refuse what is neither a rule nor a number that the learners can fill."""
    if isinstance(n_clusters, str):
        check_option(n_clusters, "n_clusters", RULES)
        return n_clusters
    count = check_count(n_clusters, "n_clusters")
    if count > n_learners:
        raise ValueError(
            f"The 'n_clusters' option must not exceed the number of learners ({n_learners}). Got {count}."
        )
    return count


def _together(exchange: Exchange, rows: _Rows | None, refine: str | None) -> LocalLosses | None:
    if rows is None:
        return None
    if exchange.landmarks is not None and refine == "average":
        raise ValueError(
            "Averages of everybody's models take the evaluations that landmarks save: set refine='pooled' "
            "or None, or landmarks=None."
        )
    if refine == "pooled" or exchange.landmarks is not None:
        return pooled_losses(rows.learners, rows.selection, exchange, rows.engine)
    return AverageLosses(rows.learners, rows.selection, exchange, rows.engine)


def _curves(
    evidence: Evidence, rows: _Rows | None, rule: Any, refine: str | None
) -> tuple[dict[str, Curve], HeldOut | None]:
    first, jump = gap_rules(evidence)
    curves = {"eigengap": eigengap(evidence), "gap": first, "gap-jump": jump}
    curves["penalty"] = penalty(evidence)
    answer = None
    if rows is not None and isinstance(rule, str):
        if rule == "cv" or evidence.n_learners <= CROSS_VALIDATED_LEARNERS:
            curves["cv"] = cross_validated(evidence, rows.learners, rows.selection, rows.engine)
        assert evidence.losses is not None
        answer = held_out(evidence, evidence.losses, refine=refine is not None)
        curves["held-out"] = answer.curve
    return curves, answer


def _notes(answer: HeldOut | None, evidence: Evidence, n_features: int | None) -> list[str]:
    notes = []
    if answer is not None:
        n_learners = evidence.n_learners
        why = None
        if answer.curve.chosen == evidence.most < n_learners:
            why = "more clusters would predict still better"
        elif answer.excess > UNCLEAR:
            why = "no number of clusters predicts the learners as well as their own noise allows"
        elif answer.curve.chosen == n_learners > 1:
            why = "every learner stands alone"
        if why is not None:
            notes.append(f"No clear coteries: {why}; take the labels as a summary, not as groups.")
    if n_features is not None and evidence.n_rows is not None:
        few = int(np.sum(evidence.n_rows < 2 * n_features + 5))
        if few:
            notes.append(
                f"The number of clusters is uncertain: {few} of {evidence.n_learners} learners hold "
                f"fewer than 2p + 5 = {2 * n_features + 5} rows."
            )
    return notes


def _partition(
    exchange: Exchange,
    rows: _Rows | None,
    n_clusters: Any,
    most: int,
    scale: Any,
    refine: str | None,
    seed: int,
    device: str,
) -> Clustering:
    """Cluster learners all of whose losses are finite, in the order given."""
    losses = _together(exchange, rows, refine)
    sizes = None if rows is None else rows.learners.sizes
    needed = 1 if isinstance(n_clusters, str) else n_clusters
    evidence = Evidence(exchange, resolve_scale(exchange, scale), most, seed, sizes, losses, device, needed)
    rule = n_clusters
    notes = []
    if rule == "auto":
        rule = "eigengap" if rows is None else "held-out"
    if rows is None and n_clusters == "auto":
        notes.append(
            "The number of clusters is by eigengap: the held-out rule needs the learners' rows, "
            "and there is only a matrix of losses."
        )
    if rows is None and rule in ("held-out", "cv"):
        raise ValueError(
            f"The rule {rule!r} needs the learners' rows; from a matrix of losses alone take "
            "'eigengap', 'gap', 'gap-jump', 'penalty' or a number."
        )
    curves, answer = _curves(evidence, rows, rule, refine)
    count = curves[rule].chosen if isinstance(rule, str) else rule
    if losses is None or refine is None:
        labels = evidence.labels(count)
    elif answer is not None and count in answer.labels:
        labels = answer.labels[count]
    else:
        labels = best_refined(evidence, losses, count)
    labels = tidy_labels(labels)
    found = int(labels.max()) + 1
    if found < count:
        notes.append(f"Of {count} clusters {count - found} stayed without members.")
    if evidence.spectrum.residual > LARGEST_RESIDUAL:
        notes.append(
            f"The spectrum is known to a residual of {evidence.spectrum.residual:.0e} only: learners between "
            "clusters may be placed differently on another run of it."
        )
    if rows is not None and exchange.landmarks is not None:
        known = (rows.learners, rows.selection, labels, evidence.scale, rows.engine)
        notes.append(landmark_note(exchange, *known, seed=seed))
    labellings = {} if answer is None else answer.labels
    if rule != "held-out":
        answer = None
    unclear = _notes(answer, evidence, None if rows is None else rows.learners.n_features)
    partition = Partition(
        learner_ids=exchange.learner_ids,
        labels=labels,
        similarity=evidence.similarity,
        eigenvalues=evidence.spectrum.eigenvalues,
        embedding=evidence.spectrum.embedding(found),
        scale=evidence.scale,
        rule=rule if isinstance(rule, str) else "given",
        curves=curves,
        clear=not any(note.startswith("No clear") for note in unclear),
        notes=(*notes, *unclear),
    )
    return Clustering(partition, exchange.learner_ids, losses, labellings)


def _with_isolated(partition: Partition, exchange: Exchange) -> Partition:
    """Put back the learners whose models gave no finite losses, each in a cluster of its own."""
    apart = exchange.isolated
    n, kept = len(apart), np.flatnonzero(~apart)
    labels = np.empty(n, dtype=int)
    labels[kept] = partition.labels
    labels[apart] = partition.n_clusters + np.arange(apart.sum())
    similarity: Array | SimilarityTiles
    if isinstance(partition.similarity, np.ndarray):
        similarity = np.eye(n)
        similarity[np.ix_(kept, kept)] = partition.similarity
    else:
        similarity = ExchangeSimilarity(exchange, partition.scale)
    embedding = np.zeros((n, partition.embedding.shape[1]))
    embedding[kept] = partition.embedding
    embedding[apart, 0] = 1.0
    note = (
        f"Learner {listed(exchange.learner_ids[apart])} stands alone: "
        "the losses of its model were not finite."
    )
    return Partition(
        exchange.learner_ids,
        labels,
        similarity,
        partition.eigenvalues,
        embedding,
        partition.scale,
        partition.rule,
        partition.curves,
        partition.clear,
        (*partition.notes, note),
    )


def search_clusters(
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
    sample_weight: Any = None,
    learner_ids: Any = None,
    random_state: Any = 0,
    engine: Any = None,
    n_jobs: int | None = None,
    device: str = "auto",
) -> Clustering:
    """Cluster the learners, and keep what judging the clusters takes; see `cluster_learners`."""
    if refine is not None:
        check_option(refine, "refine", REFINEMENTS)
    check_device(device)
    if not isinstance(exchange, Exchange):
        exchange = exchange_from_losses(exchange, learner_ids)
    n_learners = len(exchange.learner_ids)
    n_clusters = check_n_clusters(n_clusters, n_learners)
    kept = np.flatnonzero(~exchange.isolated)
    texts = np.array([str(learner) for learner in exchange.learner_ids[kept].tolist()])
    kept = kept[np.argsort(texts, kind="stable")]
    known = exchange.take(kept)
    rows = None
    if X is not None:
        if selection is None:
            raise ValueError("cluster_learners needs the selection beside the rows: pass selection=.")
        learners = gather_learners(X, y, groups, sample_weight=sample_weight, caller="cluster_learners")
        place = {learner: p for p, learner in enumerate(learners.ids.tolist())}
        missing = [i for i in known.learner_ids.tolist() if i not in place]
        if missing:
            raise ValueError(
                f"Learner {listed(missing)} of the exchange has no rows in X: pass the rows that "
                "the exchange was made from."
            )
        learners = learners.take(np.array([place[i] for i in known.learner_ids.tolist()], dtype=int))
        chosen = selection.aligned_to(known.learner_ids)
        rows = _Rows(learners, chosen, resolve_engine(engine, n_jobs))
    most = default_max_clusters(len(kept))
    if max_clusters is not None:
        most = min(check_count(max_clusters, "max_clusters"), len(kept))
    count = n_clusters if isinstance(n_clusters, str) else min(n_clusters, len(kept))
    if not isinstance(count, str):
        most = max(most, count)
    found = _partition(known, rows, count, most, scale, refine, as_entropy(random_state), device)
    partition = found.partition
    if exchange.isolated.any():
        reordered = exchange.take(np.r_[kept, np.flatnonzero(exchange.isolated)])
        partition = _with_isolated(partition, reordered)
    return replace(found, partition=partition.aligned_to(exchange.learner_ids))


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
    refine : {"pooled", "average", None}, default="pooled"
        How clusters predict when learners are moved to the cluster that predicts them best; None:
        nobody is moved, as in the paper.
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
    return search_clusters(
        exchange,
        X,
        y,
        groups,
        selection=selection,
        n_clusters=n_clusters,
        max_clusters=max_clusters,
        scale=scale,
        refine=refine,
        sample_weight=sample_weight,
        learner_ids=learner_ids,
        random_state=random_state,
        engine=engine,
        n_jobs=n_jobs,
        device=device,
    ).partition
