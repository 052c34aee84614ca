"""The conclusion's table: what each site's coterie brings it, from the numbers that the sites sent."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie.collaboration.forms import average_weights
from coterie.collaboration.nested.averaging import shared_ranges
from coterie.federated.conclusions import ClassMixturePart, Conclusion, Gain, Line, Mixture, SentCurve
from coterie.federated.messages import Verdict
from coterie.federated.participants import Participants
from coterie.federated.peers import N_FOLDS
from coterie.method.search import SearchResult
from coterie.records import Exchange, Partition
from coterie.verdicts.cluster_fit import ClusterComparison, ClusterFit, judge_cluster_fit
from coterie.verdicts.gains import ERRORS, GAINS, LearnerComparisons, add_gains
from coterie.verdicts.learning import LearnerErrors, compared
from coterie.verdicts.outliers import bad_models
from coterie.verdicts.table import Gains
from coterie.verdicts.verdict import NOT_MEASURED

BY_LOSSES = "by losses alone; what it brings was not measured"


def _plain(value: Any) -> Any:
    """Return a cell as a message holds it: a number that is not finite is not known."""
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


@dataclass(frozen=True)
class MemberOutcomes:
    """How M members predict and what it brings them.

    ``models`` (M, M) are the weights of each member's mixture, and ``own`` (M,) the part of its own model
    beside averages; ``verdicts`` is what the members answered, and ``losses`` (K, M) the clusters' mean
    losses on them. Of classes there are ``parts`` (M, E + 1, M) and ``part_shares`` (M, 2 E + 1), too; see
    `coterie.collaboration.classes.ClassAverages`.
    """

    models: Array
    own: Array
    verdicts: Sequence[Verdict]
    losses: Array
    parts: Array | None = None
    part_shares: Array | None = None


def _cluster_fit(
    partition: Partition, places: Array, sizes: Array, noise: Array, mixed: MemberOutcomes
) -> ClusterFit:
    """Return how the members stand, by the sites' own comparisons."""
    if not mixed.verdicts:
        n_sites = len(partition.labels)
        unknown = np.full((n_sites, partition.n_clusters), np.inf)
        related = np.ones(partition.n_clusters, dtype=bool)
        return ClusterFit.of(partition.learner_ids, partition.labels, unknown, np.isfinite(unknown), related)
    excess, errors = np.full(mixed.losses.shape, np.inf), np.zeros(mixed.losses.shape)
    for index, verdict in enumerate(mixed.verdicts):
        for k, pair in enumerate(verdict.clusters):
            if pair is not None:
                excess[k, index], errors[k, index] = pair
    constant, spreads = np.array([verdict.constant for verdict in mixed.verdicts]).T
    coterie = (*np.array([verdict.coterie for verdict in mixed.verdicts]).T, sizes)
    beyond: Array | None = None
    coterie_beyond: Array | None = None
    if all(verdict.beyond for verdict in mixed.verdicts):
        beyond = np.array([verdict.beyond for verdict in mixed.verdicts], dtype=float).T
        coterie_beyond = np.array([verdict.coterie_beyond for verdict in mixed.verdicts])
    comparison = ClusterComparison(mixed.losses, excess, errors, constant, spreads, beyond)
    return judge_cluster_fit(partition, places, comparison, coterie, sizes, noise, coterie_beyond)


def _unmeasured(participants: Participants, partition: Partition) -> Gains:
    """Return the table of gains in which nothing is measured yet."""
    sites = partition.learner_ids
    shares = [participants.shares[site] for site in sites.tolist()]
    errors = [f"{name}{ending}" for name in ERRORS for ending in ("", "_se")]
    numbers = {name: np.full(len(sites), np.nan) for name in (*errors, *GAINS, "membership")}
    return Gains(
        learner=sites,
        cluster=partition.labels,
        model=np.array([share.family for share in shares]),
        n_rows=np.array([share.n_rows for share in shares]),
        **numbers,
    )


def _comparisons(n_sites: int, places: Array, mixed: MemberOutcomes) -> LearnerComparisons:
    """Return what the members answered about their errors; who stands apart takes all from itself."""
    each, inflation, own = [LearnerErrors()] * n_sites, np.ones(n_sites), np.ones(n_sites)
    one_class = np.zeros(n_sites, dtype=bool)
    for index, verdict in zip(places.tolist(), mixed.verdicts, strict=True):
        errors = verdict.early, verdict.own, verdict.others
        each[index] = LearnerErrors(errors, verdict.n_rows, verdict.variance, verdict.distance, verdict.exact)
        inflation[index], one_class[index] = verdict.inflation, verdict.one_class
    own[places] = mixed.own
    return LearnerComparisons(
        *compared(each),
        shares=(1 / 2, 1 - 1 / N_FOLDS),
        inflation=inflation,
        own=own,
        by_others=True,
        bounded=True,
        one_class=one_class,
    )


def _plain_mixtures(participants: Participants, partition: Partition) -> dict[str, Mixture]:
    """Return the averages of each coterie's models, weighted by rows, but none for more than the median."""
    sites, n_features = partition.learner_ids.tolist(), _n_features(participants)
    n_rows = np.array([participants.shares[site].n_rows for site in sites])
    bounded_rows = np.minimum(n_rows, np.median(n_rows))
    weights = average_weights(bounded_rows, partition.labels)[partition.labels]
    of_classes = bool(_classes(participants))
    return {
        site: _mixture(sites, mine, n_features, of_classes) for site, mine in zip(sites, weights, strict=True)
    }


def _n_features(participants: Participants) -> int:
    return len(next(iter(participants.shares.values())).columns)


def _classes(participants: Participants) -> tuple[str, ...]:
    return next(iter(participants.shares.values())).classes


def _used(sites: Sequence[str], weights: Array) -> dict[str, float]:
    """Return what models weigh, those that weigh something."""
    return {site: float(weight) for site, weight in zip(sites, weights, strict=True) if weight > 0}


def _mixture(sites: Sequence[str], weights: Array, n_features: int, of_classes: bool) -> Mixture:
    """Return a mixture without a line."""
    used = _used(sites, weights)
    parts = (ClassMixturePart(1.0, used),) if of_classes else ()
    return Mixture(used, (0.0,) * (n_features + 1), (0.0, 0.0), parts=parts)


def _class_parts(
    members: Sequence[str], parts: Array, shares: Array, lines: Sequence[Line]
) -> tuple[ClassMixturePart, ...]:
    """Return the parts of a mixture of classifiers that weigh something."""
    n_shared = len(parts) - 1
    n_columns = len(lines) // (2 * n_shared)
    each = [tuple(lines[start : start + n_columns]) for start in range(0, len(lines), n_columns)]
    averages = [_used(members, row) for row in parts]
    result: list[tuple[float, dict[str, float], tuple[Line, ...]]] = [(shares[0], averages[0], ())]
    result += [(shares[1 + k], averages[1 + k % n_shared], each[k]) for k in range(2 * n_shared)]
    return tuple(ClassMixturePart(float(share), weights, own) for share, weights, own in result if share > 0)


def _mixtures(participants: Participants, partition: Partition, places: Array, mixed: MemberOutcomes) -> Any:
    """Return how each site predicts with others; who stands apart predicts alone."""
    sites, n_features = partition.learner_ids.tolist(), _n_features(participants)
    of_classes = bool(_classes(participants))
    whole = {site: _mixture([site], np.ones(1), n_features, of_classes) for site in sites}
    members = [sites[index] for index in places]
    plausible: list[Any] = [None] * len(members)
    if mixed.parts is None:
        ranges = np.array([verdict.range for verdict in mixed.verdicts]).reshape(-1, 2)
        result = shared_ranges(ranges, partition.labels[places][: len(ranges)]).tolist()
        plausible = [(low, high) for low, high in result]
    for index, (site, verdict) in enumerate(zip(members, mixed.verdicts, strict=False)):
        models, parts = _used(members, mixed.models[index]), tuple[ClassMixturePart, ...]()
        if mixed.parts is not None and mixed.part_shares is not None:
            parts = _class_parts(members, mixed.parts[index], mixed.part_shares[index], verdict.lines)
        whole[site] = Mixture(models, verdict.line, verdict.limits, verdict.range, parts, plausible[index])
    return whole


def conclusion_by_losses(
    participants: Participants, found: SearchResult, settings: Mapping[str, str]
) -> Conclusion:
    """Return the conclusion where sites were asked for losses only: clusters, and no gains."""
    partition = found.partition
    company = np.bincount(partition.labels)[partition.labels] - 1
    table = _unmeasured(participants, partition)
    table["verdict"] = np.full(len(company), NOT_MEASURED)
    table["reason"] = np.full(len(company), BY_LOSSES)
    # Nobody judged whom a cluster describes: nobody is said to be outside.
    table["fits"] = np.ones(len(company), dtype=bool)
    table["second_cluster"] = np.full(len(company), -1)
    mixtures = _plain_mixtures(participants, partition)
    return _concluded(participants, partition, table, mixtures, 0, settings)


def _concluded(
    participants: Participants,
    partition: Partition,
    table: Mapping[str, Array],
    mixtures: Mapping[str, Mixture],
    rounds: int,
    settings: Mapping[str, str],
) -> Conclusion:
    """Put the conclusion together."""
    rows = zip(*(table[field.name] for field in fields(Gain)), strict=True)
    return Conclusion(
        gains=tuple(Gain(*map(_plain, row)) for row in rows),
        mixtures=mixtures,
        models={site: share.sha for site, share in participants.shares.items()},
        rule=partition.rule,
        clear=bool(partition.clear),
        curves={
            name: SentCurve(
                curve.criterion,
                tuple(map(_plain, curve.n_clusters)),
                tuple(map(_plain, curve.values)),
                int(curve.chosen),
            )
            for name, curve in partition.curves.items()
        },
        left_out=dict(participants.left_out) | dict(participants.waiting),
        notes=partition.notes,
        rounds=rounds,
        settings=settings,
        classes=_classes(participants),
    )


def conclusion_from(
    participants: Participants,
    exchange: Exchange,
    found: SearchResult,
    mixed: MemberOutcomes | None,
    rounds: int,
    settings: Mapping[str, str],
) -> Conclusion:
    """Return the conclusion of the sites in ``exchange``, sorted by site.

    ``mixed`` says how those whose models gave finite losses predict; None where there is only one of them.
    ``rounds`` counts the rounds of questions; ``settings`` are what it was concluded with.
    """
    partition = found.partition
    indices = np.searchsorted(partition.learner_ids, found.learner_ids)
    if mixed is None:
        nothing = np.zeros((0, len(indices)))
        mixed = MemberOutcomes(np.ones((0, 0)), np.ones(0), (), nothing)
        indices = indices[:0]
    sizes = np.array(
        [participants.shares[site].n_rows for site in partition.learner_ids[indices]], dtype=float
    )
    cluster_fit = _cluster_fit(partition, indices, sizes, exchange.noise[indices], mixed)
    table = _unmeasured(participants, partition)
    for index, name in enumerate(ERRORS):
        pairs = np.array([verdict.errors[index] for verdict in mixed.verdicts]).reshape(-1, 2)
        table[name][indices], table[f"{name}_se"][indices] = pairs.T
    for index, verdict in zip(indices.tolist(), mixed.verdicts, strict=True):
        if verdict.membership:
            table["membership"][index] = verdict.membership[partition.labels[index]]
    comparisons = _comparisons(len(partition.labels), indices, mixed)
    add_gains(table, comparisons, cluster_fit, bad_models(exchange, partition, cluster_fit))
    mixtures = _mixtures(participants, partition, indices, mixed)
    return _concluded(participants, partition, table, mixtures, rounds, settings)
