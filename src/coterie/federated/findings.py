"""The conclusion: who learns with whom, how, and what it brings, from the numbers that the sites sent.

Shapes: n_sites sites of the partition. M of them, the members, take part in averages of models; the models of
all others failed somewhere. K clusters, E averages (labellings) that are mixed, p predictors.
"""

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


def _finite_or_none(cell: Any) -> Any:
    """Return a cell of a table as messages hold it: a Python value, and None for NaN and infinity."""
    cell = cell.item() if isinstance(cell, np.generic) else cell
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell


@dataclass(frozen=True)
class MemberOutcomes:
    """How M members predict with others, and what they answered that it brings them.

    ``models`` (M, M) has the weights of everybody's models in each member's mixture, ``own`` (M,) the part of
    its own model beside averages. ``verdicts`` are the members' answers, and ``losses`` (K, M) the mean
    losses of clusters on members.

    Of classes there are ``parts`` (M, E + 1, M), the models in each average, and ``part_shares``
    (M, 2 E + 1), the averages in each mixture; see `coterie.collaboration.classes.ClassAverages`.
    """

    models: Array
    own: Array
    verdicts: Sequence[Verdict]
    losses: Array
    parts: Array | None = None
    part_shares: Array | None = None


def _cluster_fit(
    partition: Partition, member_indices: Array, sizes: Array, noise: Array, outcomes: MemberOutcomes
) -> ClusterFit:
    """Return which clusters predict which members as well as the members' own noise allows.

    ``member_indices`` (M,) are the members' indices in the partition, ``sizes`` (M,) their rows and ``noise``
    (M,) their noise levels. The comparisons were made at the sites; without verdicts, everything stays
    unknown.
    """
    if not outcomes.verdicts:
        n_sites = len(partition.labels)
        unknown_losses = np.full((n_sites, partition.n_clusters), np.inf)
        all_related = np.ones(partition.n_clusters, dtype=bool)
        return ClusterFit.of(
            learner_ids=partition.learner_ids,
            labels=partition.labels,
            losses=unknown_losses,
            fits=np.isfinite(unknown_losses),
            related=all_related,
        )
    # Infinite excess: nobody of the cluster could predict the member.
    excess, errors = np.full(outcomes.losses.shape, np.inf), np.zeros(outcomes.losses.shape)
    for index, verdict in enumerate(outcomes.verdicts):
        for k, mean_and_error in enumerate(verdict.clusters):
            if mean_and_error is not None:
                excess[k, index], errors[k, index] = mean_and_error
    constant_excess, constant_errors = np.array([verdict.constant for verdict in outcomes.verdicts]).T
    coterie_excess = (*np.array([verdict.coterie for verdict in outcomes.verdicts]).T, sizes)
    # By how many standard deviations losses exceed what probabilities claim; numbers claim nothing.
    cluster_beyond: Array | None = None
    coterie_beyond: Array | None = None
    if all(verdict.beyond for verdict in outcomes.verdicts):
        cluster_beyond = np.array([verdict.beyond for verdict in outcomes.verdicts], dtype=float).T
        coterie_beyond = np.array([verdict.coterie_beyond for verdict in outcomes.verdicts])
    comparison = ClusterComparison(
        means=outcomes.losses,
        excess=excess,
        errors=errors,
        constant_excess=constant_excess,
        constant_errors=constant_errors,
        beyond=cluster_beyond,
    )
    return judge_cluster_fit(
        partition, member_indices, comparison, coterie_excess, sizes, noise, coterie_beyond
    )


def _empty_gains(participants: Participants, partition: Partition) -> Gains:
    """Return the table of gains with sites, clusters, models and rows, and NaN for all that is measured.

    Only members have measured errors, which are filled in later; the other sites keep NaN.
    """
    sites = partition.learner_ids
    shares = [participants.shares[site] for site in sites.tolist()]
    error_columns = [f"{name}{ending}" for name in ERRORS for ending in ("", "_se")]
    unmeasured_columns = {
        name: np.full(len(sites), np.nan) for name in (*error_columns, *GAINS, "membership")
    }
    return Gains(
        learner=sites,
        cluster=partition.labels,
        model=np.array([share.family for share in shares]),
        n_rows=np.array([share.n_rows for share in shares]),
        **unmeasured_columns,
    )


def _comparisons(n_sites: int, member_indices: Array, outcomes: MemberOutcomes) -> LearnerComparisons:
    """Return what is known of the errors of all sites, in the form that gains are computed from.

    ``member_indices`` (M,) are the members' indices among ``n_sites``. A site outside the members could not
    be compared, and takes all of its prediction from its own model.
    """
    # For sites outside the members: nothing compared, rows independent, all weight on the own model.
    learner_errors, inflation, own_weights = [LearnerErrors()] * n_sites, np.ones(n_sites), np.ones(n_sites)
    one_class = np.zeros(n_sites, dtype=bool)
    for index, verdict in zip(member_indices.tolist(), outcomes.verdicts, strict=True):
        mean_errors = verdict.early, verdict.own, verdict.others
        learner_errors[index] = LearnerErrors(
            errors=mean_errors,
            n_rows=verdict.n_rows,
            variance=verdict.variance,
            distance=verdict.distance,
            exact=verdict.exact,
        )
        inflation[index], one_class[index] = verdict.inflation, verdict.one_class
    own_weights[member_indices] = outcomes.own
    return LearnerComparisons(
        *compared(learner_errors),
        # The shares of rows that own models saw: Select fits on halves, own models by fold on the others.
        shares=(1 / 2, 1 - 1 / N_FOLDS),
        inflation=inflation,
        own=own_weights,
        by_others=True,
        bounded=True,
        one_class=one_class,
    )


def _plain_mixtures(participants: Participants, partition: Partition) -> dict[str, Mixture]:
    """Return for each site the average of its coterie's models, weighted by rows.

    No site counts for more rows than the median site: a site may state any number of rows. This is for
    conclusions by losses alone, where no weights were learnt.
    """
    sites, n_features = partition.learner_ids.tolist(), _n_features(participants)
    n_rows = np.array([participants.shares[site].n_rows for site in sites])
    bounded_rows = np.minimum(n_rows, np.median(n_rows))
    weights = average_weights(bounded_rows, partition.labels)[partition.labels]
    of_classes = bool(_classes(participants))
    return {
        site: _mixture_without_line(sites, weights_of_site, n_features, of_classes)
        for site, weights_of_site in zip(sites, weights, strict=True)
    }


def _n_features(participants: Participants) -> int:
    """Return the number of predictors; participants have the same columns."""
    return len(next(iter(participants.shares.values())).columns)


def _classes(participants: Participants) -> tuple[str, ...]:
    """Return the classes of the response; none: it is a number. Participants have the same classes."""
    return next(iter(participants.shares.values())).classes


def _positive_weights(sites: Sequence[str], weights: Array) -> dict[str, float]:
    """Return the models' weights by site, leaving out zeros: their models need not be sent."""
    return {site: float(weight) for site, weight in zip(sites, weights, strict=True) if weight > 0}


def _mixture_without_line(sites: Sequence[str], weights: Array, n_features: int, of_classes: bool) -> Mixture:
    """Return a weighted average of models as a mixture whose linear correction is zero."""
    positive = _positive_weights(sites, weights)
    parts = (ClassMixturePart(1.0, positive),) if of_classes else ()
    return Mixture(positive, (0.0,) * (n_features + 1), (0.0, 0.0), parts=parts)


def _class_parts(
    members: Sequence[str], parts: Array, shares: Array, lines: Sequence[Line]
) -> tuple[ClassMixturePart, ...]:
    """Return a member's mixture of classifiers as the averages in it that have a positive share.

    ``parts`` (E + 1, M) are the models' weights in the own model and in E averages. ``shares`` (2 E + 1,) are
    of the own model, the averages with an offset, and those with offset and slopes. ``lines`` are added to
    the log-odds, one for each of the 2 E corrected averages and each column.
    """
    n_shared = len(parts) - 1
    n_columns = len(lines) // (2 * n_shared)
    lines_by_average = [tuple(lines[first : first + n_columns]) for first in range(0, len(lines), n_columns)]
    averages = [_positive_weights(members, row) for row in parts]
    # Each entry: share in the mixture, models' weights, lines. Averages come twice, so k counts to 2 E.
    weighed: list[tuple[float, dict[str, float], tuple[Line, ...]]] = [(shares[0], averages[0], ())]
    weighed += [(shares[1 + k], averages[1 + k % n_shared], lines_by_average[k]) for k in range(2 * n_shared)]
    return tuple(
        ClassMixturePart(float(share), weights, own_lines)
        for share, weights, own_lines in weighed
        if share > 0
    )


def _mixtures(
    participants: Participants, partition: Partition, member_indices: Array, outcomes: MemberOutcomes
) -> Any:
    """Return for each site how it predicts with others; a site outside the members predicts alone.

    ``member_indices`` (M,) are the members' indices in the partition. Predictions of numbers are kept within
    a plausible range, which the members of a coterie share.
    """
    sites, n_features = partition.learner_ids.tolist(), _n_features(participants)
    of_classes = bool(_classes(participants))
    by_site = {site: _mixture_without_line([site], np.ones(1), n_features, of_classes) for site in sites}
    members = [sites[index] for index in member_indices]
    plausible: list[Any] = [None] * len(members)
    if outcomes.parts is None:
        ranges = np.array([verdict.range for verdict in outcomes.verdicts]).reshape(-1, 2)
        plausible_ranges = shared_ranges(ranges, partition.labels[member_indices][: len(ranges)]).tolist()
        plausible = [(low, high) for low, high in plausible_ranges]
    # A single member has no verdict and keeps its own model, hence the zip that is not strict.
    for index, (site, verdict) in enumerate(zip(members, outcomes.verdicts, strict=False)):
        model_weights, parts = (
            _positive_weights(members, outcomes.models[index]),
            tuple[ClassMixturePart, ...](),
        )
        if outcomes.parts is not None and outcomes.part_shares is not None:
            parts = _class_parts(members, outcomes.parts[index], outcomes.part_shares[index], verdict.lines)
        by_site[site] = Mixture(
            weights=model_weights,
            line=verdict.line,
            limits=verdict.limits,
            range=verdict.range,
            parts=parts,
            plausible=plausible[index],
        )
    return by_site


def conclusion_by_losses(
    participants: Participants, search_result: SearchResult, settings: Mapping[str, str]
) -> Conclusion:
    """Return the conclusion where sites sent only losses of models: clusters, but no measured gains.

    This is the paper's method without further rounds of questions. Each coterie predicts by a plain average.
    """
    partition = search_result.partition
    n_companions = np.bincount(partition.labels)[partition.labels] - 1
    table = _empty_gains(participants, partition)
    table["verdict"] = np.full(len(n_companions), NOT_MEASURED)
    table["reason"] = np.full(len(n_companions), BY_LOSSES)
    # Nobody judged whom a cluster describes: nobody is said to be outside.
    table["fits"] = np.ones(len(n_companions), dtype=bool)
    table["second_cluster"] = np.full(len(n_companions), -1)
    mixtures = _plain_mixtures(participants, partition)
    return _concluded(
        participants=participants,
        partition=partition,
        table=table,
        mixtures=mixtures,
        rounds=0,
        settings=settings,
    )


def _concluded(
    participants: Participants,
    partition: Partition,
    table: Mapping[str, Array],
    mixtures: Mapping[str, Mixture],
    rounds: int,
    settings: Mapping[str, str],
) -> Conclusion:
    """Return the conclusion from its parts; ``table`` has the columns of gains, a row per site.

    NumPy's values become Python's own, and NaN becomes None, for messages hold nothing else.
    """
    rows = zip(*(table[field.name] for field in fields(Gain)), strict=True)
    return Conclusion(
        gains=tuple(Gain(*map(_finite_or_none, row)) for row in rows),
        mixtures=mixtures,
        models={site: share.sha for site, share in participants.shares.items()},
        rule=partition.rule,
        clear=bool(partition.clear),
        curves={
            name: SentCurve(
                curve.criterion,
                tuple(map(_finite_or_none, curve.n_clusters)),
                tuple(map(_finite_or_none, curve.values)),
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
    search_result: SearchResult,
    outcomes: MemberOutcomes | None,
    rounds: int,
    settings: Mapping[str, str],
) -> Conclusion:
    """Return the conclusion of the sites in ``exchange``, sorted by site, with gains and verdicts.

    ``outcomes`` says how the members predict, those whose models gave finite losses; None where there is only
    one of them. ``rounds`` counts the rounds of questions; ``settings`` are those to conclude again by.
    """
    partition = search_result.partition
    # Sites are sorted, so that members are found in the partition by bisection.
    member_indices = np.searchsorted(partition.learner_ids, search_result.learner_ids)
    if outcomes is None:
        # A single member is compared with nobody: everything measured stays empty.
        no_losses = np.zeros((0, len(member_indices)))
        outcomes = MemberOutcomes(models=np.ones((0, 0)), own=np.ones(0), verdicts=(), losses=no_losses)
        member_indices = member_indices[:0]
    sizes = np.array(
        [participants.shares[site].n_rows for site in partition.learner_ids[member_indices]], dtype=float
    )
    cluster_fit = _cluster_fit(partition, member_indices, sizes, exchange.noise[member_indices], outcomes)
    table = _empty_gains(participants, partition)
    for index, name in enumerate(ERRORS):
        means_and_errors = np.array([verdict.errors[index] for verdict in outcomes.verdicts]).reshape(-1, 2)
        table[name][member_indices], table[f"{name}_se"][member_indices] = means_and_errors.T
    for index, verdict in zip(member_indices.tolist(), outcomes.verdicts, strict=True):
        if verdict.membership:
            table["membership"][index] = verdict.membership[partition.labels[index]]
    comparisons = _comparisons(len(partition.labels), member_indices, outcomes)
    add_gains(table, comparisons, cluster_fit, bad_models(exchange, partition, cluster_fit))
    mixtures = _mixtures(participants, partition, member_indices, outcomes)
    return _concluded(
        participants=participants,
        partition=partition,
        table=table,
        mixtures=mixtures,
        rounds=rounds,
        settings=settings,
    )
