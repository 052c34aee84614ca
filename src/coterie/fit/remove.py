"""Learners leave a fit: their rows, losses and models go, and what was fitted on their rows.

Nothing is selected, exchanged or clustered again. Everybody collaborates anew, since models are of
everybody's rows and verdicts of everybody's gains.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie._options import listed
from coterie.collaboration.classes import NestedClassResult
from coterie.collaboration.nested import FewRows, NestedResult
from coterie.fit.intervals import intervals_without
from coterie.fit.record import Fit, Newcomer
from coterie.fit.run import collaborate_all, judged
from coterie.method.spectral import tidy_labels
from coterie.records import Collaboration, Partition
from coterie.rows.wild import notes_on
from coterie.verdicts import Admission, ClusterFit, Stability, few_gains, second_clusters


def positions_without(ids: Array, leaving: set[Any]) -> Array:
    """Return the positions in ``ids`` of those who stay, all but the ``leaving``."""
    return np.array([p for p, learner in enumerate(ids.tolist()) if learner not in leaving], dtype=int)


def partition_without(partition: Partition, staying: Array) -> tuple[Partition, Array]:
    """Return the partition of those who stay, and the old number (K,) of each of its K clusters.

    ``staying`` are positions in the partition. Clusters are numbered anew by size, and empty ones go.
    """
    remaining = partition.take(staying)
    labels = tidy_labels(remaining.labels)
    old_numbers = np.empty(int(labels.max()) + 1, dtype=int)
    old_numbers[labels] = remaining.labels
    return replace(remaining, labels=labels), old_numbers


def cluster_fit_without(
    cluster_fit: ClusterFit, staying: Array, partition: Partition, old: Array
) -> ClusterFit:
    """Return how those who stay stand towards the clusters that are left, as measured in the fit.

    ``staying`` are positions in the record, ``old`` (K,) the old numbers of the clusters in ``partition``.
    Whoever is left alone in its cluster is predicted by nobody else there: that loss becomes infinite.
    """
    losses, fits = cluster_fit.losses[np.ix_(staying, old)], cluster_fit.fits[np.ix_(staying, old)]
    return ClusterFit.of(partition.learner_ids, partition.labels, losses, fits, cluster_fit.related[old])


def stability_without(stability: Stability, staying: Array, partition: Partition, old: Array) -> Stability:
    """Return the membership of those who stay in the clusters that are left, as measured in the fit.

    Membership is the share of resamplings in which a cluster predicts the learner best. ``staying`` are
    positions, ``old`` (K,) the old numbers of the clusters in ``partition``; rows are scaled to sum to one.
    """
    counted = stability.membership[np.ix_(staying, old)]
    totals = counted.sum(axis=1, keepdims=True)
    # Who was in no cluster that is left in any replicate belongs to its own.
    all_in_own_cluster = np.eye(len(old))[partition.labels]
    membership = np.divide(counted, totals, out=all_in_own_cluster, where=totals > 0)
    return replace(stability, learner_ids=partition.learner_ids, membership=membership)


def admission_without(admission: Admission, staying: Array, old: Array) -> Admission | None:
    """Return the newcomers who stay, with the new numbers of the clusters that are left; None for nobody.

    ``staying`` are positions in the admission, and ``old`` (K,) the old numbers of the K clusters left. A
    newcomer cannot stay where all learners that made its cluster leave.
    """
    if not len(staying):
        return None
    remaining = admission.take(staying)
    new_numbers = np.full(admission.similarities.shape[1], -1)
    new_numbers[old] = np.arange(len(old))
    orphans = remaining.learner_ids[(remaining.labels >= 0) & (new_numbers[remaining.nearest] < 0)]
    if len(orphans):
        raise ValueError(
            f"Newcomer {listed(orphans)} would be left in a cluster without the learners that made it: "
            "remove it too, and admit it again."
        )
    similarities = remaining.similarities[:, old]
    return replace(
        remaining,
        labels=np.where(remaining.labels < 0, -1, new_numbers[remaining.labels]),
        nearest=similarities.argmax(axis=1),
        similarities=similarities,
        probabilities=remaining.probabilities[:, old],
    )


def _few_remaining(fit: Fit, admission: Admission | None) -> FewRows | None:
    """Return the learners with few rows who stay, and their clusters; None where none are pooled."""
    if fit.few is None or admission is None:
        return None
    return FewRows(fit.few, admission.aligned_to(fit.few.ids).nearest)


def _collaborate_again(fit: Fit, few: FewRows | None) -> tuple[Fit, NestedResult | NestedClassResult | None]:
    """Return the fit with the collaboration of the learners that remain, and its nested result, if any.

    Models are fitted anew, as the old ones have seen rows that leave. The nested result is what the default
    form measured beside it; None with another form.
    """
    results = collaborate_all(
        options=fit.options,
        seed=fit.seed,
        selection=fit.selection,
        exchange=fit.exchange,
        partition=fit.partition,
        learners=fit.learners,
        few=few,
    )
    fit = replace(fit, collaboration=results.coterie, with_all=results.with_all, own=results.own)
    return fit, results.nested


def _newcomers_without(
    fit: Fit,
    before: Collaboration,
    leaving: set[Any],
    admission: Admission | None,
    nested: NestedResult | NestedClassResult | None,
) -> tuple[Newcomer, ...]:
    """Return the newcomers who stay, with their weights among the models that are left.

    Where models were fitted anew they predict as their cluster does: their own rows are not kept, unless they
    were pooled with the others'. ``before`` is the collaboration with everybody: if it is still the fit's,
    nothing was fitted.
    """
    staying = [new for new in fit.newcomers if new.learner_id not in leaving]
    if admission is None or fit.collaboration is before:
        return tuple(staying)
    cluster_of = dict(zip(admission.learner_ids.tolist(), admission.nearest.tolist(), strict=True))
    weight_row_of_cluster = fit.collaboration.newcomer_weight_rows
    weight_row_of = {learner: int(weight_row_of_cluster[k]) for learner, k in cluster_of.items()}
    if nested is not None and fit.few is not None:
        weight_row_of |= dict(zip(fit.few.ids.tolist(), nested.few_weight_rows.tolist(), strict=True))
    return tuple(replace(new, weight_row=weight_row_of[new.learner_id]) for new in staying)


def _judged_again(
    fit: Fit, admission: Admission | None, nested: NestedResult | NestedClassResult | None
) -> Fit:
    """Measure the gains of those whose rows are here; newcomers keep theirs, with new cluster numbers.

    ``admission`` says where the newcomers who stay were placed, None without them. ``nested`` has residuals
    of learners whose few rows were pooled again; None if nothing was fitted anew.
    """
    gains_before, fit = fit.gains, judged(fit)
    table = fit.gains
    if admission is None:
        return fit
    placed_late = [new.learner_id for new in fit.newcomers]
    if nested is not None and fit.few is not None:
        pooled = fit.few.ids.tolist()
        n = len(fit.learners)
        units = None if fit.units is None else fit.units.take(n + np.arange(len(pooled)))
        residuals = nested.few_residuals, nested.few_all_residuals
        table = table.joined(few_gains(fit.few, admission.aligned_to(fit.few.ids), residuals, units))
        placed_late = [learner for learner in placed_late if learner not in set(pooled)]
    if not placed_late:
        return replace(fit, gains=table)
    kept_gains = gains_before.of(placed_late)
    placed = admission.aligned_to(kept_gains["learner"])
    kept_gains["cluster"], kept_gains["second_cluster"] = placed.labels, second_clusters(placed)
    return replace(fit, gains=table.joined(kept_gains))


def _without_notes(fit: Fit, leaving: set[Any]) -> Fit:
    """Take what notes say of wild cells of those who leave out of the notes.

    Wild cells lie far from all others of their column. Other notes stay, behind these.
    """
    before = fit.learners.wild
    remaining = tuple(cells for cells in before if cells.learner not in leaving)
    others = [note for note in fit.partition.notes if note not in notes_on(before)]
    partition = replace(fit.partition, notes=(*notes_on(remaining), *others))
    return replace(fit, learners=replace(fit.learners, wild=remaining), partition=partition)


def remove_learners(fit: Fit, leaving: set[Any]) -> Fit:
    """Return the fit without the learners whose ids are ``leaving``.

    Where one whose rows are in models leaves, everybody collaborates anew, for which the fit needs its rows.
    Without such a learner only the table, the placements and the notes change.
    """
    fit_before, collaboration_before, n_shaping = fit, fit.collaboration, len(fit.partition.labels)
    remaining_ids = [learner for learner in fit.learner_ids.tolist() if learner not in leaving]
    # Records of the stages are in order of first appearance, rows in order of the ids' text.
    staying = positions_without(fit.selection.learner_ids, leaving)
    staying_by_id = positions_without(fit.learners.ids, leaving)
    partition, old_numbers = partition_without(fit.partition, staying)
    admission = None
    if fit.admission is not None:
        staying_placed = positions_without(fit.admission.learner_ids, leaving)
        admission = admission_without(fit.admission, staying_placed, old_numbers)
    units = fit.units
    if units is not None:
        # The units of newcomers stand behind those of the learners that shape clusters.
        first = len(fit.learners)
        staying_new = [first + p for p, new in enumerate(fit.newcomers) if new.learner_id not in leaving]
        units = units.take(np.array([*staying_by_id.tolist(), *staying_new], dtype=int))
    few, pooled_rows_leave = fit.few, False
    if few is not None:
        staying_few = positions_without(few.ids, leaving)
        pooled_rows_leave = len(staying_few) < len(few)
        few = few.take(staying_few) if len(staying_few) else None
    fit = replace(fit, units=units, few=few)
    shaping_leave = len(staying) < n_shaping
    if shaping_leave:
        stability = fit.stability
        if stability is not None:
            stability = stability_without(stability, staying, partition, old_numbers)
        fit = replace(
            fit,
            learners=fit.learners.take(staying_by_id),
            selection=fit.selection.take(staying),
            exchange=fit.exchange.take(staying),
            partition=partition,
            cluster_fit=cluster_fit_without(fit.cluster_fit, staying, partition, old_numbers),
            stability=stability,
        )
    nested: NestedResult | NestedClassResult | None = None
    fit_again = shaping_leave or pooled_rows_leave
    if fit_again:
        fit, nested = _collaborate_again(fit, _few_remaining(fit, admission))
    newcomers = _newcomers_without(fit, collaboration_before, leaving, admission, nested)
    fit = replace(fit, newcomers=newcomers, admission=admission)
    fit = _judged_again(fit, admission, nested).in_order(remaining_ids)
    fit = intervals_without(fit_before, fit, nested, again=fit_again)
    return _without_notes(fit, leaving)
