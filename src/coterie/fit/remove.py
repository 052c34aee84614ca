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
    """Return the positions of those who stay."""
    return np.array([p for p, learner in enumerate(ids.tolist()) if learner not in leaving], dtype=int)


def partition_without(partition: Partition, staying: Array) -> tuple[Partition, Array]:
    """Return the partition of those who stay, and the old number of each of its clusters."""
    taken = partition.take(staying)
    labels = tidy_labels(taken.labels)
    old = np.empty(int(labels.max()) + 1, dtype=int)
    old[labels] = taken.labels
    return replace(taken, labels=labels), old


def cluster_fit_without(
    cluster_fit: ClusterFit, staying: Array, partition: Partition, old: Array
) -> ClusterFit:
    """Return how those who stay stand towards the clusters that are left, as measured in the fit.

    Whoever is left alone in its cluster is predicted by nobody else there.
    """
    losses, fits = cluster_fit.losses[np.ix_(staying, old)], cluster_fit.fits[np.ix_(staying, old)]
    return ClusterFit.of(partition.learner_ids, partition.labels, losses, fits, cluster_fit.related[old])


def stability_without(stability: Stability, staying: Array, partition: Partition, old: Array) -> Stability:
    """Return the membership of those who stay in the clusters that are left, as measured in the fit."""
    membership = stability.membership[np.ix_(staying, old)]
    totals = membership.sum(axis=1, keepdims=True)
    own = np.eye(len(old))[partition.labels]
    shared = np.divide(membership, totals, out=own, where=totals > 0)
    return replace(stability, learner_ids=partition.learner_ids, membership=shared)


def admission_without(admission: Admission, staying: Array, old: Array) -> Admission | None:
    """Return the newcomers who stay, with the new numbers of the clusters that are left."""
    if not len(staying):
        return None
    taken = admission.take(staying)
    new = np.full(admission.similarities.shape[1], -1)
    new[old] = np.arange(len(old))
    orphans = taken.learner_ids[(taken.labels >= 0) & (new[taken.nearest] < 0)]
    if len(orphans):
        raise ValueError(
            f"Newcomer {listed(orphans)} would be left in a cluster without the learners that made it: "
            "remove it too, and admit it again."
        )
    similarities = taken.similarities[:, old]
    return replace(
        taken,
        labels=np.where(taken.labels < 0, -1, new[taken.labels]),
        nearest=similarities.argmax(axis=1),
        similarities=similarities,
        probabilities=taken.probabilities[:, old],
    )


def _few_remaining(fit: Fit, admission: Admission | None) -> FewRows | None:
    """Return the learners with few rows who stay, and their clusters."""
    if fit.few is None or admission is None:
        return None
    return FewRows(fit.few, admission.aligned_to(fit.few.ids).nearest)


def _collaborate_again(fit: Fit, few: FewRows | None) -> tuple[Fit, NestedResult | NestedClassResult | None]:
    """Return the fit with the collaboration of the learners that remain."""
    parts = fit.selection, fit.exchange, fit.partition, fit.learners
    results = collaborate_all(fit.options, fit.seed, *parts, few)
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
    were pooled with the others'.
    """
    staying = [new for new in fit.newcomers if new.learner_id not in leaving]
    if admission is None or fit.collaboration is before:
        return tuple(staying)
    clusters = dict(zip(admission.learner_ids.tolist(), admission.nearest.tolist(), strict=True))
    weight_rows = fit.collaboration.newcomer_weight_rows
    rows = {learner: int(weight_rows[cluster]) for learner, cluster in clusters.items()}
    if nested is not None and fit.few is not None:
        rows |= dict(zip(fit.few.ids.tolist(), nested.few_weight_rows.tolist(), strict=True))
    return tuple(replace(new, weight_row=rows[new.learner_id]) for new in staying)


def _judged_again(
    fit: Fit, admission: Admission | None, nested: NestedResult | NestedClassResult | None
) -> Fit:
    """Measure the gains of those whose rows are here; newcomers keep theirs, with new numbers."""
    before, fit = fit.gains, judged(fit)
    table = fit.gains
    if admission is None:
        return fit
    placed_late = [new.learner_id for new in fit.newcomers]
    if nested is not None and fit.few is not None:
        pooled = fit.few.ids.tolist()
        n = len(fit.learners)
        units = None if fit.units is None else fit.units.take(n + np.arange(len(pooled)))
        few = admission.aligned_to(fit.few.ids)
        residuals = nested.few_residuals, nested.few_all_residuals
        table = table.joined(few_gains(fit.few, few, residuals, units))
        placed_late = [learner for learner in placed_late if learner not in set(pooled)]
    if not placed_late:
        return replace(fit, gains=table)
    added = before.of(placed_late)
    placed = admission.aligned_to(added["learner"])
    added["cluster"], added["second_cluster"] = placed.labels, second_clusters(placed)
    return replace(fit, gains=table.joined(added))


def _without_notes(fit: Fit, leaving: set[Any]) -> Fit:
    """Take what notes say of wild cells of those who leave out of the notes."""
    before = fit.learners.wild
    remaining = tuple(cells for cells in before if cells.learner not in leaving)
    others = [note for note in fit.partition.notes if note not in notes_on(before)]
    partition = replace(fit.partition, notes=(*notes_on(remaining), *others))
    return replace(fit, learners=replace(fit.learners, wild=remaining), partition=partition)


def remove_learners(fit: Fit, leaving: set[Any]) -> Fit:
    """Return the fit without some learners; it needs its rows where one that shaped the clusters leaves."""
    whole, before, labels_before = fit, fit.collaboration, fit.partition.labels
    remaining_ids = [learner for learner in fit.learner_ids.tolist() if learner not in leaving]
    staying = positions_without(fit.selection.learner_ids, leaving)
    partition, old = partition_without(fit.partition, staying)
    admission = None
    if fit.admission is not None:
        those = positions_without(fit.admission.learner_ids, leaving)
        admission = admission_without(fit.admission, those, old)
    inside = positions_without(fit.learners.ids, leaving)
    units = fit.units
    if units is not None:
        first = len(fit.learners)
        new = [first + p for p, each in enumerate(fit.newcomers) if each.learner_id not in leaving]
        units = units.take(np.array([*inside.tolist(), *new], dtype=int))
    few, few_fewer = fit.few, False
    if few is not None:
        those = positions_without(few.ids, leaving)
        few_fewer = len(those) < len(few)
        few = few.take(those) if len(those) else None
    fit = replace(fit, units=units, few=few)
    gone = np.setdiff1d(np.arange(len(labels_before)), staying)
    if len(gone):
        stability = fit.stability
        fit = replace(
            fit,
            learners=fit.learners.take(inside),
            selection=fit.selection.take(staying),
            exchange=fit.exchange.take(staying),
            partition=partition,
            cluster_fit=cluster_fit_without(fit.cluster_fit, staying, partition, old),
            stability=None if stability is None else stability_without(stability, staying, partition, old),
        )
    nested: NestedResult | NestedClassResult | None = None
    if len(gone) or few_fewer:
        fit, nested = _collaborate_again(fit, _few_remaining(fit, admission))
    newcomers = _newcomers_without(fit, before, leaving, admission, nested)
    fit = replace(fit, newcomers=newcomers, admission=admission)
    fit = _judged_again(fit, admission, nested).in_order(remaining_ids)
    fit = intervals_without(whole, fit, nested, again=bool(len(gone) or few_fewer))
    return _without_notes(fit, leaving)
