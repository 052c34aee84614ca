"""The search: all rules for the number of clusters, the one that decides, and Refine.

It goes from losses to a partition, and asks an `Answerer` for what the losses alone do not say. Rows that
are here answer by arithmetic, sites that keep their rows by numbers. The same code decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie._options import brief, check_count, check_option, listed
from coterie.kernels.limits import LIMITS
from coterie.kernels.similarities import ExchangeSimilarity
from coterie.method.likelihood.answer import answer_learners
from coterie.method.n_clusters.eigengap import eigengap
from coterie.method.n_clusters.evidence import Evidence
from coterie.method.n_clusters.gap import gap_rules
from coterie.method.n_clusters.held_out import (
    RULE,
    HeldOut,
    best_refined,
    held_out,
    one_is_as_good,
    second_is_better,
)
from coterie.method.n_clusters.penalty import penalty
from coterie.method.refine.losses import ClusterLosses, LocalRows
from coterie.method.refine.moves import REFINE
from coterie.method.spectral import resolve_scale, tidy_labels
from coterie.records import Curve, Exchange, Partition, SimilarityTiles
from coterie.rows.ids import canonical_order
from coterie.rows.learners import Learners
from coterie.rows.threshold import enough_rows

OR_A_NUMBER = "a number or "
RULES = ("auto", "held-out", "gap", "gap-jump", "eigengap", "penalty", "cv")


@dataclass(frozen=True)
class SearchOptions:
    """What a search is to do; the options of `cluster_learners`. ``seed`` is for k-means and references."""

    n_clusters: Any = "auto"
    max_clusters: int | None = None
    scale: Any = "noise"
    refine: str | None = "pooled"
    refine_rounds: int = REFINE.rounds
    seed: int = 0
    device: str = "cpu"


@dataclass(frozen=True)
class Answerer:
    """What answers for a matrix of losses: rows that are here, or sites that answer by numbers.

    ``n_rows`` has shape (L,). ``learners`` have the rows that the likelihood takes; ``in_order`` says that
    neighbouring rows depend on each other. ``local`` is what only rows that are here can add. With no
    ``losses`` there is the matrix alone.
    """

    losses: ClusterLosses | None = None
    n_rows: Array | None = None
    n_features: int | None = None
    learners: Learners | None = None
    in_order: bool = False
    local: LocalRows = field(default_factory=LocalRows)


@dataclass(frozen=True)
class SearchResult:
    """A partition, and the labellings that the held-out rule found for each number of clusters.

    ``learner_ids`` of shape (M,) are the learners whose losses are finite, in the order of the labellings,
    which are empty where the number was given. ``losses`` is the form that decided; None where there is a
    matrix alone.
    """

    partition: Partition
    learner_ids: Array
    labellings: Mapping[int, Array]
    losses: ClusterLosses | None


def default_max_clusters(n_learners: int) -> int:
    """Return how many clusters are looked at: 2 sqrt(L), at least 8 and at most 20."""
    return int(min(n_learners, max(8, np.ceil(2 * np.sqrt(n_learners))), 20))


def check_n_clusters(n_clusters: Any, n_learners: int) -> Any:
    """Return the rule or the number of clusters; refuse one that is unknown, or that learners cannot fill."""
    if isinstance(n_clusters, str):
        check_option(n_clusters, "n_clusters", RULES, alternative=OR_A_NUMBER)
        return n_clusters
    count = check_count(n_clusters, "n_clusters")
    if count > n_learners:
        raise ValueError(
            f"The 'n_clusters' option must not exceed the number of learners ({n_learners}). "
            f"Got {brief(count)}."
        )
    return count


def largest_count(n_learners: int, n_clusters: Any, max_clusters: int | None) -> int:
    """Return the largest number of clusters to look at among learners whose losses are finite."""
    most = default_max_clusters(n_learners)
    if max_clusters is not None:
        most = min(check_count(max_clusters, "max_clusters"), n_learners)
    return most if isinstance(n_clusters, str) else max(most, min(n_clusters, n_learners))


def finite_learners(exchange: Exchange) -> Array:
    """Return the positions of the learners whose losses are finite, in the canonical order of their ids."""
    finite = np.flatnonzero(~exchange.isolated)
    return finite[canonical_order(exchange.learner_ids[finite])]


def _search(
    evidence: Evidence, losses: ClusterLosses, local: LocalRows, *, refine: bool, rounds: int
) -> tuple[HeldOut, ClusterLosses]:
    """Let the held-out rule search, beside it a second form that may do better, and keep the better.

    A form is how a cluster predicts, by lines or by flexible models. The held-out rule takes the smallest
    number of clusters that predicts rows left out as well as the best number does. Returns the answer of the
    better form, and its losses.
    """
    answer = held_out(evidence, losses, local, refine=refine, rounds=rounds)
    result, second = answer.labels[answer.curve.chosen], local.second
    if second is None or not (second.always or one_is_as_good(losses, second.losses, result)):
        return answer, losses
    other = held_out(evidence, second.losses, second.local, refine=refine, rounds=rounds)
    others, ruled_out = other.labels[other.curve.chosen], answer.curve.one_truth_z is not None
    if second_is_better(losses, result, second.losses, others, ruled_out=ruled_out):
        return other, second.losses
    return answer, losses


def _refined(
    evidence: Evidence, losses: ClusterLosses, local: LocalRows, count: int, rounds: int
) -> tuple[Array, ClusterLosses]:
    """Return the labels (L,) for a given number of clusters, and the form of losses that found them.

    A second form, flexible models instead of lines, searches, too, if it is to search always.
    """
    labels, second = best_refined(evidence, losses, count, local, rounds=rounds), local.second
    if second is None or not second.always:
        return labels, losses
    others = best_refined(evidence, second.losses, count, second.local, rounds=rounds)
    if second_is_better(losses, labels, second.losses, others):
        return others, second.losses
    return labels, losses


def _curves(
    evidence: Evidence, answerer: Answerer, rule: Any, options: SearchOptions
) -> tuple[dict[str, Curve], HeldOut | None, ClusterLosses | None]:
    """Return every rule's curve, the held-out rule's answer, and the form of losses that it chose.

    The answer is None where there are no rows, or where the number is given: then nobody needs that search.
    """
    first, jump = gap_rules(evidence)
    curves = {"eigengap": eigengap(evidence), "gap": first, "gap-jump": jump, "penalty": penalty(evidence)}
    losses, local = answerer.losses, answerer.local
    if losses is None or not isinstance(rule, str):
        return curves, None, losses
    # With more learners the curve of cross-validation is computed only on request.
    if local.cross_validate is not None and (evidence.n_learners <= LIMITS.many or rule == "cv"):
        curves["cv"] = local.cross_validate(evidence)
    refine, rounds = options.refine is not None, options.refine_rounds
    answer, losses = _search(evidence, losses, local, refine=refine, rounds=rounds)
    curves["held-out"] = answer.curve
    return curves, answer, losses


def _notes(answer: HeldOut | None, evidence: Evidence, n_features: int | None, n_found: int) -> list[str]:
    """Say in sentences for the user why there are no clear coteries, and what else limits the answer.

    ``answer`` is the held-out rule's, None where another rule decided; ``n_found`` counts the clusters that
    have members. A note that begins with "No clear" is what later makes the partition unclear.
    """
    notes = []
    if answer is not None:
        n_learners = evidence.n_learners
        reason = None
        if answer.curve.chosen == evidence.most < n_learners:
            reason = "more clusters would predict still better"
        elif answer.excess > RULE.unclear:
            reason = "no number of clusters predicts the learners as well as their own noise allows"
        elif n_found == n_learners > 1:
            reason = "every learner is alone in its cluster"
        if answer.curve.one_truth_z is not None:
            notes.append(
                "Two clusters explain more than they would of one truth, by "
                f"{answer.curve.one_truth_z:.0f} standard deviations. But on halves of the rows they do not "
                "surely predict better than one. So the clusters of single learners are uncertain, and "
                "differences may be gradual."
            )
        if reason is not None:
            notes.append(f"No clear coteries: {reason}; take the labels as a summary, not as groups.")
    if n_features is not None and evidence.n_rows is not None:
        enough = enough_rows(n_features)
        few = int(np.sum(evidence.n_rows < enough))
        if few:
            notes.append(
                f"The number of clusters is uncertain: {few} of {evidence.n_learners} learners hold "
                f"fewer than 2p + 5 = {enough} rows."
            )
    return notes


def _by_likelihood(evidence: Evidence, answerer: Answerer, options: SearchOptions) -> SearchResult:
    """Cluster by the likelihood: it labels, and says how many unless a number or another rule is given.

    The likelihood is a mixture of lines that is fitted to rows. The other rules' curves are made for the
    user to compare; spectral clusters serve as further starts.
    """
    rule = options.n_clusters
    if answerer.learners is None:
        raise ValueError(
            "The option refine='likelihood' needs the learners' rows: pass X, y, groups and selection."
        )
    if rule == "auto":
        curves, _, _ = _curves(evidence, Answerer(), rule, options)
        count = None
    else:
        curves, _, _ = _curves(evidence, answerer, rule, options)
        count = curves[rule].chosen if isinstance(rule, str) else rule
    spectral = [evidence.labels(k) for k in range(2, evidence.most + 1)]
    answer = answer_learners(
        answerer.learners, evidence.most, given=count, extra=spectral, in_order=answerer.in_order
    )
    curves["likelihood"] = answer.curve
    notes = () if answer.clear else (f"No clear coteries: {answer.why}.",)
    name = rule if isinstance(rule, str) else "given"
    partition = _made(evidence, answer.labels, "likelihood" if name == "auto" else name, curves, notes)
    return SearchResult(partition, evidence.exchange.learner_ids, answer.labellings, answerer.losses)


def _made(
    evidence: Evidence, labels: Array, rule: str, curves: Mapping[str, Curve], notes: Sequence[str]
) -> Partition:
    # The partition as users see it: clusters numbered by size, and unclear if a note says so.
    labels = tidy_labels(labels)
    return Partition(
        learner_ids=evidence.exchange.learner_ids,
        labels=labels,
        similarity=evidence.similarity,
        eigenvalues=evidence.spectrum.eigenvalues,
        embedding=evidence.spectrum.embedding(int(labels.max()) + 1),
        scale=evidence.scale,
        rule=rule,
        curves=curves,
        clear=not any(note.startswith("No clear") for note in notes),
        notes=tuple(notes),
    )


def _partition(exchange: Exchange, answerer: Answerer, most: int, options: SearchOptions) -> SearchResult:
    """Cluster learners all of whose losses are finite, in the order given.

    The rule finds the number, Refine moves learners to the cluster that predicts them best, and last those
    whom losses cannot place go where their rows are most probable. ``most`` is the largest number looked at.
    """
    rule, local = options.n_clusters, answerer.local
    evidence = Evidence(
        exchange,
        resolve_scale(exchange, options.scale),
        most,
        options.seed,
        answerer.n_rows,
        options.device,
        1 if isinstance(rule, str) else rule,
    )
    if options.refine == "likelihood":
        return _by_likelihood(evidence, answerer, options)
    notes = []
    if rule == "auto" and answerer.losses is None:
        rule = "eigengap"
        notes.append(
            "The number of clusters is by eigengap: the held-out rule needs the learners' rows, "
            "and there is only a matrix of losses."
        )
    elif rule == "auto":
        rule = "held-out"
    without = {"held-out": answerer.losses is None, "cv": local.cross_validate is None}
    if without.get(rule):
        raise ValueError(
            f"The rule {rule!r} needs the learners' rows; from a matrix of losses alone take "
            "'eigengap', 'gap', 'gap-jump', 'penalty' or a number."
        )
    curves, answer, losses = _curves(evidence, answerer, rule, options)
    count = curves[rule].chosen if isinstance(rule, str) else rule
    labellings = {} if answer is None else answer.labels
    if losses is None or options.refine is None:
        labels = evidence.labels(count)
    else:
        assert answerer.losses is not None
        if count in labellings:
            labels = labellings[count]
        else:
            labels, losses = _refined(evidence, answerer.losses, local, count, options.refine_rounds)
        if losses is answerer.losses:
            labels = local.reassign(tidy_labels(labels))
    labels = tidy_labels(labels)
    result = int(labels.max()) + 1
    if result < count:
        notes.append(f"Of {count} clusters {count - result} stayed without members.")
    if evidence.spectrum.residual > RULE.negligible:
        notes.append(
            f"The spectrum is known to a residual of {evidence.spectrum.residual:.0e} only: learners between "
            "clusters may be placed differently on another run of it."
        )
    if local.check_landmarks is not None:
        notes.append(local.check_landmarks(labels, evidence.scale))
    unclear = _notes(answer if rule == "held-out" else None, evidence, answerer.n_features, result)
    name = rule if isinstance(rule, str) else "given"
    partition = _made(evidence, labels, name, curves, (*notes, *unclear))
    return SearchResult(partition, exchange.learner_ids, labellings, losses)


def _with_isolated(partition: Partition, exchange: Exchange) -> Partition:
    """Put back the learners whose models gave no finite losses, each in a cluster of its own.

    They took no part in the clustering. Their similarity with others is zero, and the embedding, which says
    nothing about them, is the first unit vector. ``exchange`` has all learners, in the order of the result.
    """
    isolated = exchange.isolated
    n, finite = len(isolated), np.flatnonzero(~isolated)
    labels = np.empty(n, dtype=int)
    labels[finite] = partition.labels
    labels[isolated] = partition.n_clusters + np.arange(isolated.sum())
    similarity: Array | SimilarityTiles
    if isinstance(partition.similarity, np.ndarray):
        similarity = np.eye(n)
        similarity[np.ix_(finite, finite)] = partition.similarity
    else:
        similarity = ExchangeSimilarity(exchange, partition.scale)
    embedding = np.zeros((n, partition.embedding.shape[1]))
    embedding[finite] = partition.embedding
    embedding[isolated, 0] = 1.0
    note = (
        f"Learner {listed(exchange.learner_ids[isolated])} stands alone: "
        "the losses of its model were not finite."
    )
    return replace(
        partition,
        learner_ids=exchange.learner_ids,
        labels=labels,
        similarity=similarity,
        embedding=embedding,
        notes=(*partition.notes, note),
    )


def search_partition(exchange: Exchange, answerer: Answerer, options: SearchOptions) -> SearchResult:
    """Cluster learners whose losses are known; the result is in the order of the exchange.

    ``answerer`` knows the `finite_learners` of the exchange, in that order. Learners whose model failed on
    somebody's rows stand apart. The canonical order makes the answer independent of the order of learners.
    """
    n_clusters = check_n_clusters(options.n_clusters, len(exchange.learner_ids))
    finite = finite_learners(exchange)
    most = largest_count(len(finite), n_clusters, options.max_clusters)
    count = n_clusters if isinstance(n_clusters, str) else min(n_clusters, len(finite))
    rounds = check_count(options.refine_rounds, "refine_rounds")
    options = replace(options, n_clusters=count, refine_rounds=rounds)
    result = _partition(exchange.take(finite), answerer, most, options)
    partition = result.partition
    if exchange.isolated.any():
        reordered = exchange.take(np.r_[finite, np.flatnonzero(exchange.isolated)])
        partition = _with_isolated(partition, reordered)
    return replace(result, partition=partition.aligned_to(exchange.learner_ids))
