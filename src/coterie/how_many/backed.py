"""The rules side by side, one of which decides: from losses, and whatever answers for them, to a partition.

Rows that are here answer by arithmetic, parties that keep their rows by numbers. The same code decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie._options import check_count, check_option, listed, shown
from coterie.how_many.eigengap import eigengap
from coterie.how_many.evidence import Evidence
from coterie.how_many.gap import gap_rules
from coterie.how_many.held_out import (
    RULE,
    HeldOut,
    best_refined,
    costlier_is_better,
    held_out,
    one_is_as_good,
)
from coterie.how_many.penalty import penalty
from coterie.kernels.limits import LIMITS
from coterie.kernels.similarities import ExchangeSimilarity
from coterie.kernels.together import TogetherLosses
from coterie.records import Curve, Exchange, Partition, SimilarityTiles
from coterie.stages.cluster import resolve_scale, tidy_labels
from coterie.stages.refine import REFINE

Array = NDArray[Any]

RULES = ("auto", "held-out", "gap", "gap-jump", "eigengap", "penalty", "cv")


@dataclass(frozen=True)
class Backing:
    """What stands behind a matrix of losses: rows that are here, or parties that answer by numbers.

    Parameters
    ----------
    losses : TogetherLosses
        Answers what clusters lose.
    n_rows : ndarray of shape (L,)
        Rows of each learner.
    n_features : int
        Number of predictors.
    cross_validate : callable or None, default=None
        Draws the curve of cross-validation, where rows are here.
    check_landmarks : callable or None, default=None
        Given labels and scale, says how far they are from the exact answer, where only landmarks exchanged.
    """

    losses: TogetherLosses
    n_rows: Array
    n_features: int
    cross_validate: Callable[[Evidence], Curve] | None = None
    check_landmarks: Callable[..., str] | None = None


@dataclass(frozen=True)
class Found:
    """A partition, and the labellings that the held-out rule found for each number of clusters.

    Parameters
    ----------
    partition : Partition
        Who learns with whom.
    learner_ids : ndarray of shape (M,)
        The learners whose losses are finite, in the order of the labellings.
    labellings : mapping of int to ndarray of shape (M,)
        Empty where the number was given.
    losses : TogetherLosses or None
        The form in which they were found: what was given, or its costlier form.
    """

    partition: Partition
    learner_ids: Array
    labellings: Mapping[int, Array]
    losses: TogetherLosses | None


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
            f"The 'n_clusters' option must not exceed the number of learners ({n_learners}). "
            f"Got {shown(count)}."
        )
    return count


def largest_count(n_learners: int, n_clusters: Any, max_clusters: int | None) -> int:
    """Return the largest number of clusters to look at among learners whose losses are finite."""
    most = default_max_clusters(n_learners)
    if max_clusters is not None:
        most = min(check_count(max_clusters, "max_clusters"), n_learners)
    return most if isinstance(n_clusters, str) else max(most, min(n_clusters, n_learners))


def in_order(exchange: Exchange) -> Array:
    """Return the positions of the learners whose losses are finite, sorted by the text of their ids."""
    kept = np.flatnonzero(~exchange.isolated)
    texts = np.array([str(learner) for learner in exchange.learner_ids[kept].tolist()])
    ordered: Array = kept[np.argsort(texts, kind="stable")]
    return ordered


def _best_form(
    evidence: Evidence, losses: TogetherLosses, how: dict[str, Any]
) -> tuple[HeldOut, TogetherLosses]:
    """Let the held-out rule search, beside it a costlier form that may do better, and keep the better."""
    answer, costlier = held_out(evidence, losses, **how), losses.costlier
    if costlier is None:
        return answer, losses
    found = answer.labels[answer.curve.chosen]
    if not (losses.costlier_searches or one_is_as_good(losses, costlier, found)):
        return answer, losses
    other = held_out(evidence, costlier, **how)
    others, ruled_out = other.labels[other.curve.chosen], answer.curve.surprise is not None
    if costlier_is_better(losses, found, costlier, others, ruled_out=ruled_out):
        return other, costlier
    return answer, losses


def _refined(
    evidence: Evidence, losses: TogetherLosses, count: int, rounds: int
) -> tuple[Array, TogetherLosses]:
    """Return the labels for a given number of clusters, and the form of losses that found them."""
    labels = best_refined(evidence, losses, count, rounds=rounds)
    costlier = losses.costlier
    if costlier is None or not losses.costlier_searches:
        return labels, losses
    others = best_refined(evidence, costlier, count, rounds=rounds)
    if costlier_is_better(losses, labels, costlier, others):
        return others, costlier
    return labels, losses


def _curves(
    evidence: Evidence, backing: Backing | None, rule: Any, refine: str | None, rounds: int
) -> tuple[dict[str, Curve], HeldOut | None, TogetherLosses | None]:
    losses = None if backing is None else backing.losses
    first, jump = gap_rules(evidence)
    curves = {"eigengap": eigengap(evidence), "gap": first, "gap-jump": jump}
    curves["penalty"] = penalty(evidence)
    answer = None
    if backing is not None and isinstance(rule, str):
        # Of more learners the curve of cross-validation is drawn only when asked for.
        few = evidence.n_learners <= LIMITS.many
        if backing.cross_validate is not None and (few or rule == "cv"):
            curves["cv"] = backing.cross_validate(evidence)
        how: dict[str, Any] = {"refine": refine is not None, "rounds": rounds}
        answer, losses = _best_form(evidence, backing.losses, how)
        curves["held-out"] = answer.curve
    return curves, answer, losses


def _notes(answer: HeldOut | None, evidence: Evidence, n_features: int | None, n_found: int) -> list[str]:
    notes = []
    if answer is not None:
        n_learners = evidence.n_learners
        why = None
        if answer.curve.chosen == evidence.most < n_learners:
            why = "more clusters would predict still better"
        elif answer.excess > RULE.unclear:
            why = "no number of clusters predicts the learners as well as their own noise allows"
        elif n_found == n_learners > 1:
            why = "every learner stands alone"
        if answer.curve.surprise is not None:
            notes.append(
                "Two clusters explain more than they would of one truth, by "
                f"{answer.curve.surprise:.0f} standard deviations, though on halves of the rows they do "
                "not surely predict better than one: who belongs where is uncertain for single learners, and "
                "differences may be gradual."
            )
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
    backing: Backing | None,
    n_clusters: Any,
    most: int,
    scale: Any,
    refine: str | None,
    rounds: int,
    seed: int,
    device: str,
) -> Found:
    """Cluster learners all of whose losses are finite, in the order given."""
    losses = None if backing is None else backing.losses
    sizes = None if backing is None else backing.n_rows
    needed = 1 if isinstance(n_clusters, str) else n_clusters
    evidence = Evidence(exchange, resolve_scale(exchange, scale), most, seed, sizes, device, needed)
    rule = n_clusters
    notes = []
    if rule == "auto":
        rule = "eigengap" if backing is None else "held-out"
    if backing is None and n_clusters == "auto":
        notes.append(
            "The number of clusters is by eigengap: the held-out rule needs the learners' rows, "
            "and there is only a matrix of losses."
        )
    without_rows = backing is None or backing.cross_validate is None
    if (backing is None and rule == "held-out") or (without_rows and rule == "cv"):
        raise ValueError(
            f"The rule {rule!r} needs the learners' rows; from a matrix of losses alone take "
            "'eigengap', 'gap', 'gap-jump', 'penalty' or a number."
        )
    curves, answer, losses = _curves(evidence, backing, rule, refine, rounds)
    count = curves[rule].chosen if isinstance(rule, str) else rule
    if losses is None or refine is None:
        labels = evidence.labels(count)
    else:
        known = {} if answer is None else answer.labels
        if count in known:
            labels = known[count]
        else:
            labels, losses = _refined(evidence, losses, count, rounds)
        labels = losses.settled(tidy_labels(labels))
    labels = tidy_labels(labels)
    found = int(labels.max()) + 1
    if found < count:
        notes.append(f"Of {count} clusters {count - found} stayed without members.")
    if evidence.spectrum.residual > RULE.negligible:
        notes.append(
            f"The spectrum is known to a residual of {evidence.spectrum.residual:.0e} only: learners between "
            "clusters may be placed differently on another run of it."
        )
    if backing is not None and backing.check_landmarks is not None:
        notes.append(backing.check_landmarks(labels=labels, scale=evidence.scale))
    labellings = {} if answer is None else answer.labels
    if rule != "held-out":
        answer = None
    unclear = _notes(answer, evidence, None if backing is None else backing.n_features, found)
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
    return Found(partition, exchange.learner_ids, labellings, losses)


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


def search_backed(
    exchange: Exchange,
    back: Callable[[Exchange], Backing | None],
    *,
    n_clusters: Any = "auto",
    max_clusters: int | None = None,
    scale: Any = "noise",
    refine: str | None = "average",
    refine_rounds: int = REFINE.rounds,
    seed: int = 0,
    device: str = "cpu",
) -> Found:
    """Cluster learners whose losses are known, whatever stands behind the losses.

    Parameters
    ----------
    exchange : Exchange
        Losses among the learners.
    back : callable
        Given the exchange among the learners whose losses are finite, returns what answers for them.
    n_clusters : int or str, default="auto"
        As for `cluster_learners`.
    max_clusters : int or None, default=None
        As for `cluster_learners`.
    scale : {"noise", "median"} or float, default="noise"
        As for `cluster_learners`.
    refine : {"pooled", "average", None}, default="average"
        None: nobody is moved.
    refine_rounds : int, default=10
        As for `cluster_learners`.
    seed : int, default=0
        For k-means and for the reference sets of the gap statistic.
    device : {"auto", "cpu", "cuda"}, default="cpu"
        Where the spectrum of very many learners is found.

    Returns
    -------
    Found
        In the order of the exchange.
    """
    n_clusters = check_n_clusters(n_clusters, len(exchange.learner_ids))
    kept = in_order(exchange)
    known = exchange.take(kept)
    most = largest_count(len(kept), n_clusters, max_clusters)
    count = n_clusters if isinstance(n_clusters, str) else min(n_clusters, len(kept))
    rounds = check_count(refine_rounds, "refine_rounds")
    found = _partition(known, back(known), count, most, scale, refine, rounds, seed, device)
    partition = found.partition
    if exchange.isolated.any():
        reordered = exchange.take(np.r_[kept, np.flatnonzero(exchange.isolated)])
        partition = _with_isolated(partition, reordered)
    return replace(found, partition=partition.aligned_to(exchange.learner_ids))
