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
from coterie.federated.conclusions import Conclusion, Curve, Gain, Mixture
from coterie.federated.messages import Verdict
from coterie.federated.participants import Participants
from coterie.federated.peers import N_FOLDS
from coterie.method.search import Found
from coterie.method.voices import VOICES
from coterie.records import Exchange, Partition
from coterie.verdicts.cluster_fit import ClusterFit, Comparison, judge_cluster_fit
from coterie.verdicts.gains import ERRORS, GAINS, Comparisons, Gains, add_gains
from coterie.verdicts.learning import Measured, compared
from coterie.verdicts.outliers import bad_models
from coterie.verdicts.verdict import COLLABORATE, STAY_ALONE

NOT_MEASURED = "by losses alone; what it brings was not measured"


def _plain(value: Any) -> Any:
    """Return a cell as a message holds it: a number that is not finite is not known."""
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


@dataclass(frozen=True)
class Mixed:
    """How M members predict and what it brings them.

    ``models`` (M, M) are the weights of each member's mixture, and ``alone`` (M,) the part of its own model
    beside averages; ``verdicts`` is what the members answered, and ``losses`` (K, M) the clusters' mean
    losses on them.
    """

    models: Array
    alone: Array
    verdicts: Sequence[Verdict]
    losses: Array


def _cluster_fit(partition: Partition, places: Array, sizes: Array, noise: Array, mixed: Mixed) -> ClusterFit:
    """Return how the members stand, by the sites' own comparisons."""
    if not mixed.verdicts:
        n_sites = len(partition.labels)
        unknown = np.full((n_sites, partition.n_clusters), np.inf)
        related = np.ones(partition.n_clusters, dtype=bool)
        return ClusterFit.of(partition.learner_ids, partition.labels, unknown, np.isfinite(unknown), related)
    excess, errors = np.full(mixed.losses.shape, np.inf), np.zeros(mixed.losses.shape)
    for place, verdict in enumerate(mixed.verdicts):
        for k, pair in enumerate(verdict.clusters):
            if pair is not None:
                excess[k, place], errors[k, place] = pair
    constant = np.array([verdict.constant for verdict in mixed.verdicts]).T
    coterie = (*np.array([verdict.coterie for verdict in mixed.verdicts]).T, sizes)
    comparison = Comparison(mixed.losses, excess, errors, *constant)
    return judge_cluster_fit(partition, places, comparison, coterie, sizes, noise)


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


def _comparisons(n_sites: int, places: Array, mixed: Mixed) -> Comparisons:
    """Return what the members answered about their errors; who stands apart takes all from itself."""
    each, inflation, own = [Measured()] * n_sites, np.ones(n_sites), np.ones(n_sites)
    for place, verdict in zip(places.tolist(), mixed.verdicts, strict=True):
        errors = verdict.early, verdict.alone, verdict.others
        each[place] = Measured(errors, verdict.n_rows, verdict.variance, verdict.distance, verdict.exact)
        inflation[place] = verdict.inflation
    own[places] = mixed.alone
    return Comparisons(
        *compared(each),
        shares=(1 / 2, 1 - 1 / N_FOLDS),
        inflation=inflation,
        own=own,
        by_others=True,
        bounded=True,
    )


def _plain_mixtures(participants: Participants, partition: Partition) -> dict[str, Mixture]:
    """Return the averages of each coterie's models, weighted by rows, but none for more than twice the
    median."""
    sites, n_features = partition.learner_ids.tolist(), _n_features(participants)
    n_rows = np.array([participants.shares[site].n_rows for site in sites])
    heard = np.minimum(n_rows, VOICES.weight * np.median(n_rows))
    weights = average_weights(heard, partition.labels)[partition.labels]
    return {site: _mixture(sites, mine, n_features) for site, mine in zip(sites, weights, strict=True)}


def _n_features(participants: Participants) -> int:
    return len(next(iter(participants.shares.values())).columns)


def _mixture(sites: Sequence[str], weights: Array, n_features: int) -> Mixture:
    """Return a mixture without a line."""
    used = {site: float(weight) for site, weight in zip(sites, weights, strict=True) if weight > 0}
    return Mixture(used, (0.0,) * (n_features + 1), (0.0, 0.0))


def _mixtures(participants: Participants, partition: Partition, places: Array, mixed: Mixed) -> Any:
    """Return how each site predicts with others; who stands apart predicts alone."""
    sites, n_features = partition.learner_ids.tolist(), _n_features(participants)
    whole = {site: _mixture([site], np.ones(1), n_features) for site in sites}
    members = [sites[place] for place in places]
    ranges = np.array([verdict.range for verdict in mixed.verdicts]).reshape(-1, 2)
    plausible = shared_ranges(ranges, partition.labels[places][: len(ranges)]).tolist()
    for site, weights, verdict, (low, high) in zip(
        members, mixed.models, mixed.verdicts, plausible, strict=True
    ):
        models = _mixture(members, weights, n_features).weights
        whole[site] = Mixture(models, verdict.line, verdict.limits, verdict.range, (low, high))
    return whole


def conclusion_by_losses(participants: Participants, found: Found, settings: Mapping[str, str]) -> Conclusion:
    """Return the conclusion where sites were asked for losses only: clusters, and no gains."""
    partition = found.partition
    company = np.bincount(partition.labels)[partition.labels] - 1
    table = _unmeasured(participants, partition)
    table["verdict"] = np.where(company > 0, COLLABORATE, STAY_ALONE)
    table["reason"] = np.full(len(company), NOT_MEASURED)
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
    rows = zip(*(table[field.name] for field in fields(Gain)), strict=True)
    return Conclusion(
        gains=tuple(Gain(*map(_plain, row)) for row in rows),
        mixtures=mixtures,
        models={site: share.sha for site, share in participants.shares.items()},
        rule=partition.rule,
        clear=bool(partition.clear),
        curves={
            name: Curve(
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
    )


def conclusion_from(
    participants: Participants,
    exchange: Exchange,
    found: Found,
    mixed: Mixed | None,
    rounds: int,
    settings: Mapping[str, str],
) -> Conclusion:
    """Return the conclusion of the sites in ``exchange``, sorted by site.

    ``mixed`` says how those whose models gave finite losses predict; None where there is only one of them.
    ``rounds`` counts the rounds of questions; ``settings`` are what it was concluded with.
    """
    partition = found.partition
    places = np.searchsorted(partition.learner_ids, found.learner_ids)
    if mixed is None:
        nothing = np.zeros((0, len(places)))
        mixed = Mixed(np.ones((0, 0)), np.ones(0), (), nothing)
        places = places[:0]
    sizes = np.array(
        [participants.shares[site].n_rows for site in partition.learner_ids[places]], dtype=float
    )
    cluster_fit = _cluster_fit(partition, places, sizes, exchange.noise[places], mixed)
    table = _unmeasured(participants, partition)
    for place, name in enumerate(ERRORS):
        pairs = np.array([verdict.errors[place] for verdict in mixed.verdicts]).reshape(-1, 2)
        table[name][places], table[f"{name}_se"][places] = pairs.T
    for place, verdict in zip(places.tolist(), mixed.verdicts, strict=True):
        if verdict.membership:
            table["membership"][place] = verdict.membership[partition.labels[place]]
    comparisons = _comparisons(len(partition.labels), places, mixed)
    add_gains(table, comparisons, cluster_fit, bad_models(exchange, partition, cluster_fit))
    mixtures = _mixtures(participants, partition, places, mixed)
    return _concluded(participants, partition, table, mixtures, rounds, settings)
