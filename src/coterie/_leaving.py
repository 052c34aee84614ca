"""Learners leave a fitted model: their rows, losses and models go, and what was fitted on their rows.

Nothing is selected, exchanged or clustered again. Where rows are pooled, the models of the clusters that lost
a member and the model of all rows are refitted; averages of models are weighted anew.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie._options import listed
from coterie._rows import Learners, Standardization
from coterie._wild import notes_on
from coterie.records import Collaboration, Partition, Selection
from coterie.stages import collaborate
from coterie.stages.cluster import tidy_labels
from coterie.verdicts import Admission, Gains, Stability, Standing, second_clusters

Array = NDArray[Any]


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


def standing_without(standing: Standing, staying: Array, partition: Partition, old: Array) -> Standing:
    """Return how those who stay stand towards the clusters that are left, as measured in the fit.

    Whoever is left alone in its cluster is predicted by nobody else there.
    """
    losses, fits = standing.losses[np.ix_(staying, old)], standing.fits[np.ix_(staying, old)]
    labels, everybody = partition.labels, np.arange(len(staying))
    alone = np.bincount(labels)[labels] == 1
    losses[everybody[alone], labels[alone]] = np.inf
    fits[everybody[alone], labels[alone]] = False
    others = losses.copy()
    others[everybody, labels] = np.inf
    nearest = np.where(np.isfinite(others).any(axis=1), others.argmin(axis=1), -1)
    return Standing(partition.learner_ids, losses, fits, nearest, standing.related[old])


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


def units_without(units: Standardization, staying: Array) -> Standardization:
    """Return the units of those who stay."""
    return Standardization(*(getattr(units, name)[staying] for name in units.__dataclass_fields__))


def pooled_without(
    before: Collaboration,
    old: Array,
    touched: Array,
    selection: Selection,
    partition: Partition,
    shaping: Learners,
    settings: dict[str, Any],
) -> Collaboration:
    """Return the pooled models of the clusters that are left; those that lost a member are refitted.

    Parameters
    ----------
    before : Collaboration
        By pooled models, before anybody left.
    old : ndarray of shape (K,)
        The old number of each cluster that is left.
    touched : ndarray of int
        The new numbers of the clusters that lost a member.
    selection : Selection
        Of those who stay.
    partition : Partition
        Of those who stay.
    shaping : Learners
        Their rows.
    settings : dict
        For `collaborate`.

    Returns
    -------
    Collaboration
        Of those who stay.
    """
    models = [before.models[k] for k in old]
    names = [before.names[k] for k in old]
    residuals = dict(zip(before.learner_ids.tolist(), before.residuals, strict=True))
    for k in touched.tolist():
        members = np.flatnonzero(partition.labels == k)
        one = replace(partition.take(members), labels=np.zeros(len(members), dtype=int))
        place = {learner: p for p, learner in enumerate(shaping.ids.tolist())}
        theirs = sorted(place[learner] for learner in one.learner_ids.tolist())
        refitted = collaborate(
            selection, one, shaping.take(np.array(theirs, dtype=int)), method="pooled", **settings
        )
        models[k], names[k] = refitted.models[0], refitted.names[0]
        residuals.update(zip(refitted.learner_ids.tolist(), refitted.residuals, strict=True))
    return Collaboration(
        learner_ids=partition.learner_ids,
        method="pooled",
        models=tuple(models),
        names=tuple(names),
        weights=np.eye(len(models)),
        ways=partition.labels,
        newcomer_ways=np.arange(len(models)),
        residuals=tuple(residuals[learner] for learner in partition.learner_ids.tolist()),
    )


def _collaborate_again(model: Any, before: Collaboration, old: Array, touched: Array) -> None:
    settings = {
        "random_state": model._entropy,
        "engine": model.engine,
        "n_jobs": model.n_jobs,
        "candidates": model.candidates,
    }
    parts = model.selection_, model.partition_, model._shaping
    if before.method == "pooled" and model.n_clusters_ > 1:
        model.collaboration_ = pooled_without(before, old, touched, *parts, settings)
        model._everybody = collaborate(*parts, method="global", **settings)
    else:
        again = model._collaborate(model.selection_, model.exchange_, *parts[1:], settings)
        model.collaboration_, model._everybody = again


def _keep_newcomers(
    model: Any, before: Collaboration, staying: list[Any], admission: Admission | None
) -> None:
    """Give the newcomers who stay their ways of predicting among those that are left.

    Where models were fitted anew they predict as their cluster does: their own rows are not kept.
    """
    loners, ways = model._loners, {learner: way for learner, (way, _) in model._admitted.items()}
    same = model.collaboration_ is before
    model._loners, model._admitted = (), {}
    homes = {}
    if admission is not None:
        homes = dict(zip(admission.learner_ids.tolist(), admission.nearest.tolist(), strict=True))
    for place, learner in enumerate(staying):
        if ways[learner] < 0:
            model._loners = (*model._loners, loners[-ways[learner] - 1])
            way = -len(model._loners)
        elif same:
            way = ways[learner]
        else:
            way = int(model.collaboration_.newcomer_ways[homes[learner]])
        model._admitted[learner] = way, len(model._shaping) + place


def _table_without(model: Any, newcomers: list[Any], admission: Admission | None) -> Gains:
    """Measure the gains of those who shaped the clusters; newcomers keep theirs, with new numbers."""
    table: Gains = model._measure_gains()
    if admission is None:
        return table
    place = {learner: p for p, learner in enumerate(model.gains_["learner"].tolist())}
    rows = np.array([place[learner] for learner in newcomers], dtype=int)
    added = Gains({name: column[rows] for name, column in model.gains_.items()})
    order = [admission.learner_ids.tolist().index(learner) for learner in newcomers]
    placed = admission.take(np.array(order, dtype=int))
    added["cluster"], added["second_cluster"] = placed.labels, second_clusters(placed)
    return table.joined(added)


def _forget_cells(model: Any, leaving: set[Any]) -> None:
    """Take what notes say of wild cells of those who leave out of the notes."""
    before = model._shaping.wild
    left = tuple(cells for cells in before if cells.learner not in leaving)
    others = [note for note in model.partition_.notes if note not in notes_on(before)]
    model._shaping = replace(model._shaping, wild=left)
    model.partition_ = replace(model.partition_, notes=(*notes_on(left), *others))


def remove_learners(model: Any, leaving: set[Any], staying: Array) -> None:
    """Take learners out of a fitted model.

    Parameters
    ----------
    model : CoterieRegressor
        Fitted, with its rows where one of the learners of ``fit`` leaves. It is changed.
    leaving : set
        Ids of those who leave; all are in the model.
    staying : ndarray of int
        Positions in ``model.selection_`` of those who stay, at least one.
    """
    before, labels_before = model.collaboration_, model.partition_.labels
    partition, old = partition_without(model.partition_, staying)
    admission = None
    if model.admission_ is not None:
        those = positions_without(model.admission_.learner_ids, leaving)
        # Refuses before anything is changed.
        admission = admission_without(model.admission_, those, old)
    newcomers = [learner for learner in model._admitted if learner not in leaving]
    inside = positions_without(model._shaping.ids, leaving)
    if model._units is not None:
        kept = [*inside.tolist(), *(model._admitted[learner][1] for learner in newcomers)]
        model._units = units_without(model._units, np.array(kept, dtype=int))
    gone = np.setdiff1d(np.arange(len(labels_before)), staying)
    if len(gone):
        touched = np.flatnonzero(np.isin(old, labels_before[gone]))
        model._shaping = model._shaping.take(inside)
        model.selection_, model.exchange_ = model.selection_.take(staying), model.exchange_.take(staying)
        model.standing_ = standing_without(model.standing_, staying, partition, old)
        if model.stability_ is not None:
            model.stability_ = stability_without(model.stability_, staying, partition, old)
        model.partition_, model.n_clusters_ = partition, partition.n_clusters
        _collaborate_again(model, before, old, touched)
    _keep_newcomers(model, before, newcomers, admission)
    shown = [learner for learner in model.learner_ids_.tolist() if learner not in leaving]
    model.gains_, model.admission_ = _table_without(model, newcomers, admission), admission
    model._show_in_order(shown)
    _forget_cells(model, leaving)
