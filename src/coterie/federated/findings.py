"""The conclusion's table: what each site's coterie brings it, from the numbers that the sites sent."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie.federated.messages import Conclusion, Curve, Gain, Member, Verdict
from coterie.federated.participants import Participants
from coterie.method.search import Found
from coterie.records import Exchange, Partition
from coterie.verdicts.cluster_fit import ClusterFit, Comparison, judge_cluster_fit
from coterie.verdicts.gains import ERRORS, GAINS, ROUNDING, Gains, gain_of, with_verdicts
from coterie.verdicts.outliers import bad_models
from coterie.verdicts.verdict import COLLABORATE, STAY_ALONE

NOT_MEASURED = "by losses alone; what it brings was not measured"


def _plain(value: Any) -> Any:
    """Return a cell as a message holds it: a number that is not finite is not known."""
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _cluster_fit(
    partition: Partition, places: Array, members: Sequence[Member], verdicts: Sequence[Verdict], losses: Array
) -> ClusterFit:
    """Return how the members stand, by the sites' own comparisons."""
    excess, errors = np.full(losses.shape, np.inf), np.zeros(losses.shape)
    for place, verdict in enumerate(verdicts):
        for k, pair in enumerate(verdict.clusters):
            if pair is not None:
                excess[k, place], errors[k, place] = pair
    constant = np.array([verdict.constant for verdict in verdicts]).T
    sizes = np.array([member.n_rows for member in members])
    noise = np.array([member.noise for member in members])
    coterie = (*np.array([verdict.coterie for verdict in verdicts]).T, sizes)
    return judge_cluster_fit(
        partition, places, Comparison(losses, excess, errors, *constant), coterie, sizes, noise
    )


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


def _gains(
    participants: Participants, partition: Partition, places: Array, verdicts: Sequence[Verdict], noise: Array
) -> Gains:
    """Return the table of errors, gains and memberships, NaN for sites that stand apart."""
    table = _unmeasured(participants, partition)
    for place, name in enumerate(ERRORS):
        pairs = np.array([verdict.errors[place] for verdict in verdicts])
        table[name][places], table[f"{name}_se"][places] = pairs.T
    table["gain"] = gain_of(table["error_alone"], table["error_with"], ROUNDING * noise)
    for place, verdict in zip(places.tolist(), verdicts, strict=True):
        table["gain_se"][place] = np.nan if verdict.gain_error is None else verdict.gain_error
        if verdict.membership:
            table["membership"][place] = verdict.membership[partition.labels[place]]
    return table


def conclusion_by_losses(participants: Participants, found: Found) -> Conclusion:
    """Return the conclusion where sites were asked for losses only: clusters, and no gains."""
    partition = found.partition
    company = np.bincount(partition.labels)[partition.labels] - 1
    table = _unmeasured(participants, partition)
    table["verdict"] = np.where(company > 0, COLLABORATE, STAY_ALONE)
    table["reason"] = np.full(len(company), NOT_MEASURED)
    # Nobody judged whom a cluster describes: nobody is said to be outside.
    table["fits"] = np.ones(len(company), dtype=bool)
    table["second_cluster"] = np.full(len(company), -1)
    return _concluded(participants, partition, table, 0)


def _concluded(
    participants: Participants, partition: Partition, table: Mapping[str, Array], rounds: int
) -> Conclusion:
    rows = zip(*(table[field.name] for field in fields(Gain)), strict=True)
    return Conclusion(
        gains=tuple(Gain(*map(_plain, row)) for row in rows),
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
    )


def conclusion_from(
    participants: Participants,
    exchange: Exchange,
    found: Found,
    members: Sequence[Member],
    verdicts: Sequence[Verdict],
    losses: Array,
    rounds: int,
) -> Conclusion:
    """Return the conclusion of the sites in ``exchange``, sorted by site.

    ``members`` are those whose models gave finite losses, ``verdicts`` what the partition brings each of
    them, ``losses``, of shape (K, M), the clusters' mean losses on them, and ``rounds`` the rounds of
    questions.
    """
    partition = found.partition
    places = np.searchsorted(partition.learner_ids, found.learner_ids)
    cluster_fit = _cluster_fit(partition, places, members, verdicts, losses)
    table = _gains(participants, partition, places, verdicts, exchange.noise)
    table = with_verdicts(
        table, cluster_fit, table["membership"], bad_models(exchange, partition, cluster_fit)
    )
    return _concluded(participants, partition, table, rounds)
