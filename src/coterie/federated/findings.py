"""The conclusion's table: what each site's coterie brings it, from the numbers that the sites sent."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.federated.attendance import Attendance
from coterie.federated.messages import Conclusion, Curve, Gain, Member, Verdict
from coterie.how_many import Found
from coterie.records import Exchange, Partition
from coterie.verdicts.gains import ROUNDING, Gains, gain_of, with_verdicts
from coterie.verdicts.outliers import bad_models
from coterie.verdicts.standing import (
    FALSE_ALARMS,
    Comparison,
    Standing,
    is_worse,
    judge_standing,
    standing_of_all,
)
from coterie.verdicts.verdict import COLLABORATE, STAY_ALONE

Array = NDArray[Any]
COLUMNS = ("alone", "coterie", "all")
NOT_MEASURED = "by losses alone; what it brings was not measured"


def _known(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _comparison(verdicts: Sequence[Verdict], losses: Array) -> Comparison:
    """Return the sites' own comparisons as one; ``losses`` of shape (K, L) are the clusters' means."""
    excess, errors = np.full(losses.shape, np.inf), np.zeros(losses.shape)
    for place, verdict in enumerate(verdicts):
        for k, pair in enumerate(verdict.clusters):
            if pair is not None:
                excess[k, place], errors[k, place] = pair
    constant = np.array([verdict.constant for verdict in verdicts]).T
    return Comparison(losses, excess, errors, *constant)


def _standing(
    partition: Partition,
    places: Array,
    members: Sequence[Member],
    verdicts: Sequence[Verdict],
    losses: Array,
) -> Standing:
    labels = partition.labels[places]
    sizes = np.array([member.n_rows for member in members])
    noise = np.array([member.noise for member in members])
    ids = partition.learner_ids[places]
    known = judge_standing(ids, labels, _comparison(verdicts, losses), sizes, noise)
    excess, errors = np.array([verdict.coterie for verdict in verdicts]).T
    company = np.bincount(partition.labels)[partition.labels] - 1
    with_coterie = np.zeros(len(partition.labels), dtype=bool)
    with_coterie[places] = ~is_worse(excess, errors, sizes, noise, FALSE_ALARMS / len(company))
    return standing_of_all(partition, places, known, with_coterie & (company > 0))


def _gains(
    attendance: Attendance, partition: Partition, places: Array, verdicts: Sequence[Verdict], noise: Array
) -> tuple[Gains, Array]:
    """Return the table of errors and gains, NaN for sites that stand apart, and the memberships."""
    sites, labels = partition.learner_ids, partition.labels
    shares = [attendance.shares[site] for site in sites.tolist()]
    table = Gains(
        learner=sites,
        cluster=labels,
        model=np.array([share.family for share in shares]),
        n_rows=np.array([share.n_rows for share in shares]),
    )
    for place, name in enumerate(COLUMNS):
        table[name], table[f"{name}_se"] = np.full(len(sites), np.nan), np.full(len(sites), np.nan)
        pairs = np.array([verdict.errors[place] for verdict in verdicts])
        table[name][places], table[f"{name}_se"][places] = pairs.T
    table["gain"] = gain_of(table["alone"], table["coterie"], ROUNDING * noise)
    table["gain_se"], membership = np.full(len(sites), np.nan), np.full(len(sites), np.nan)
    for place, verdict in zip(places.tolist(), verdicts, strict=True):
        table["gain_se"][place] = np.nan if verdict.gain_error is None else verdict.gain_error
        if verdict.membership:
            membership[place] = verdict.membership[labels[place]]
    return table, membership


def _rows(table: Mapping[str, Array]) -> tuple[Gain, ...]:
    rows = []
    for place, site in enumerate(table["learner"].tolist()):
        value = {name: column[place] for name, column in table.items()}
        pairs = [(_known(value[name]), _known(value[f"{name}_se"])) for name in COLUMNS]
        whole = [(mean, error) for mean, error in pairs if mean is not None and error is not None]
        rows.append(
            Gain(
                site=site,
                coterie=int(value["cluster"]),
                family=str(value["model"]),
                n_rows=int(value["n_rows"]),
                errors=(whole[0], whole[1], whole[2]) if len(whole) == 3 else None,
                gain=_known(value["gain"]),
                gain_error=_known(value["gain_se"]),
                verdict=str(value["verdict"]),
                reason=str(value["reason"]),
                membership=_known(value["membership"]),
                second=int(value["second_cluster"]),
            )
        )
    return tuple(rows)


def _curves(partition: Partition) -> dict[str, Curve]:
    return {
        name: Curve(
            criterion=curve.criterion,
            n_clusters=tuple(int(k) for k in curve.n_clusters),
            values=tuple(_known(value) for value in curve.values),
            chosen=int(curve.chosen),
        )
        for name, curve in partition.curves.items()
    }


def conclusion_by_losses(attendance: Attendance, found: Found) -> Conclusion:
    """Return the conclusion where sites were asked for losses only: clusters, and no gains.

    Parameters
    ----------
    attendance : Attendance
        Who took part.
    found : Found
        The partition.

    Returns
    -------
    Conclusion
        For everybody.
    """
    partition = found.partition
    company = np.bincount(partition.labels)[partition.labels] - 1
    rows = tuple(
        Gain(
            site=site,
            coterie=int(label),
            family=attendance.shares[site].family,
            n_rows=attendance.shares[site].n_rows,
            errors=None,
            gain=None,
            gain_error=None,
            verdict=COLLABORATE if others else STAY_ALONE,
            reason=NOT_MEASURED,
            membership=None,
            second=-1,
        )
        for site, label, others in zip(partition.learner_ids.tolist(), partition.labels, company, strict=True)
    )
    return _concluded(attendance, partition, rows, 0)


def _concluded(
    attendance: Attendance, partition: Partition, rows: tuple[Gain, ...], rounds: int
) -> Conclusion:
    return Conclusion(
        gains=rows,
        models={site: share.sha for site, share in attendance.shares.items()},
        rule=partition.rule,
        clear=bool(partition.clear),
        curves=_curves(partition),
        left_out=dict(attendance.left_out) | dict(attendance.waiting),
        notes=partition.notes,
        rounds=rounds,
    )


def conclusion_from(
    attendance: Attendance,
    exchange: Exchange,
    found: Found,
    members: Sequence[Member],
    verdicts: Sequence[Verdict],
    losses: Array,
    rounds: int,
) -> Conclusion:
    """Return the conclusion.

    Parameters
    ----------
    attendance : Attendance
        Who took part.
    exchange : Exchange
        Losses among them, sorted by site.
    found : Found
        The partition.
    members : sequence of Member
        Those whose models gave finite losses.
    verdicts : sequence of Verdict
        What the partition brings each member.
    losses : ndarray of shape (K, M)
        Mean losses of the clusters on the members.
    rounds : int
        Rounds of questions that it took.

    Returns
    -------
    Conclusion
        For everybody.
    """
    partition = found.partition
    places = np.searchsorted(partition.learner_ids, found.learner_ids)
    standing = _standing(partition, places, members, verdicts, losses)
    table, membership = _gains(attendance, partition, places, verdicts, exchange.noise)
    table = with_verdicts(table, standing, membership, bad_models(exchange, partition, standing))
    return _concluded(attendance, partition, _rows(table), rounds)
