"""The numbers behind each picture: which learners it shows, in which order, and how many are left out.

Each function takes the subject and returns a plain dict of lists, numbers and texts, as JSON knows them. What
a display shows, too, is computed and ordered by that display. The pictures stay legible and quick however
many learners there are: the heat map joins learners of a coterie into blocks, the others show those at both
ends and say how many they leave out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie.displays import LossHeatmapDisplay, MapDisplay, MembershipDisplay, WeightsDisplay
from coterie.displays.loss_heatmap import colour_limits
from coterie.report.subject import ReportSubject, finite_list, full_names

# Rows of the pictures that have a row per learner.
MOST_MEMBERS = 40
# Who is surer than this has a full bar, which tells nothing.
SURE = 0.995
TAKEN = {
    "alone": "its own model",
    "coterie": "its coterie",
    "all": "all learners",
    "all adapted": "all (adapted)",
}
# Of losses, which span decades.
DIGITS = 3


def _between(values: Array, labels: Array) -> dict[str, float | None]:
    """Return the median entry of a matrix (L, L) inside clusters, without the diagonal, and between them.

    The diagonal is each model on its own rows, which says nothing about others. None where there is no such
    entry. ``labels`` (L,) are clusters; the dict has ``inside`` and ``between``.
    """
    same_cluster = labels[:, None] == labels[None, :]
    off_diagonal = ~np.eye(len(labels), dtype=bool)
    medians = {}
    for name, cells in (("inside", same_cluster & off_diagonal), ("between", ~same_cluster)):
        finite_values = values[cells & np.isfinite(values)]
        medians[name] = float(f"{np.median(finite_values):.4g}") if len(finite_values) else None
    return medians


def losses_picture(subject: ReportSubject) -> dict[str, Any]:
    """Return the losses of every model on every learner's rows, as the heat map shows them, by cluster.

    Losses are in units of the learners' noise levels where a fitted model has measured them on held-out
    rows: 1 is the error of the learner's own model. Very many learners are sampled, or joined into blocks
    (``binned``). ``inside`` and ``between`` are the typical cells inside and between clusters.
    """
    partition, exchange = subject.partition, subject.exchange
    assert partition is not None
    # Noise levels of a bare matrix of losses come from its diagonal, perhaps errors on rows fitted on.
    has_noise = subject.model is not None and exchange is not None and bool((exchange.noise > 0).all())
    display = LossHeatmapDisplay.from_partition(partition, exchange, with_noise=has_noise)
    table = display.frame()
    unit = "noise" if has_noise else "dissimilarity" if exchange is None else "loss"
    n_cells = int(np.sqrt(len(table["model"])))
    cells = table["loss_per_noise" if has_noise else "loss"].reshape(n_cells, n_cells)
    limits = colour_limits(cells) or (1.0, 10.0)
    clusters = table["learner_cluster"][:n_cells]
    error_name = {"error": "Brier score"} if "scores" in subject.summary else {}
    return {
        **error_name,
        "unit": unit,
        "admitted": subject.summary["n_admitted"],
        "learners": full_names(table["learner"][:n_cells].tolist()),
        "clusters": clusters.tolist(),
        "binned": n_cells < len(display.labels),
        "limits": [float(f"{limit:.4g}") for limit in limits],
        "cells": [finite_list(row, DIGITS) for row in cells],
        **_between(cells, clusters),
    }


def map_picture(subject: ReportSubject) -> dict[str, Any]:
    """Return the learners' coordinates on the map, with names and coteries; near models lie near.

    ``admitted`` counts learners placed after the fit, who are not on the map.
    """
    assert subject.partition is not None
    table = MapDisplay.from_partition(subject.partition, subject.exchange).frame()
    return {
        "learners": full_names(table["learner"]),
        "clusters": table["cluster"].tolist(),
        "places": [finite_list(table["across"]), finite_list(table["up"])],
        "admitted": subject.summary["n_admitted"],
    }


def both_ends(count: int, most: int) -> list[int]:
    """Return positions of a sorted list, half from its beginning and half from its end, at most ``most``."""
    if count <= most:
        return list(range(count))
    return [*range(most - most // 2), *range(count - most // 2, count)]


def membership_picture(subject: ReportSubject) -> dict[str, Any] | None:
    """Return the probability of each cluster for the least sure learners, the least sure first.

    The probability is the share of draws with resampled rows (a bootstrap) in which the cluster predicted the
    learner best. Learners whose own cluster has `SURE` or more are left out, for their bars say nothing.
    None without a bootstrap.
    """
    stability, partition = subject.stability, subject.partition
    if stability is None or partition is None:
        return None
    label_of = dict(zip(partition.learner_ids.tolist(), partition.labels.tolist(), strict=True))
    labels = np.array([label_of[learner] for learner in stability.learner_ids.tolist()])
    display = MembershipDisplay(stability.membership, labels=labels, learner_ids=stability.learner_ids)
    n, n_clusters = display.membership.shape
    table = {name: column.reshape(n, n_clusters) for name, column in display.frame().items()}
    own_probability = table["probability"][np.arange(n), table["cluster"][:, 0]]
    count = min(int((own_probability < SURE).sum()), MOST_MEMBERS)
    order = np.argsort(own_probability, kind="stable")[:count]
    return {
        "learners": full_names(table["learner"][order, 0].tolist()),
        "clusters": table["cluster"][order, 0].tolist(),
        "own": finite_list(own_probability[order], 4),
        "membership": [finite_list(row, 4) for row in table["probability"][order]],
        "sure": int((own_probability >= 0.95).sum()),
        "n_learners": n,
        "n_replicates": int(stability.n_replicates),
        "left_out": n - len(order),
    }


def taken_name(source: str) -> str:
    """Return in words the source of a weight, from its column (``from_all``) or its name (``all``)."""
    name = source.removeprefix("from_").replace("_", " ")
    return TAKEN.get(name, name)


def own_coterie_is_itself(shares: Array, names: Sequence[str], lone: Sequence[bool]) -> Array:
    """Return shares (L, R) in which a learner alone in its coterie takes from itself, not from the coterie.

    The coterie's model is its own then, and the column ``coterie`` would mislead. ``lone`` tells for each
    learner whether it is alone.
    """
    sources = [name.removeprefix("from_") for name in names]
    if not {"alone", "coterie"} <= set(sources) or not any(lone):
        return shares
    moved_shares, lone_rows = shares.copy(), np.flatnonzero(lone)
    moved_shares[lone_rows, sources.index("alone")] += shares[lone_rows, sources.index("coterie")]
    moved_shares[lone_rows, sources.index("coterie")] = 0.0
    return moved_shares


def _lone_learners(subject: ReportSubject) -> Array:
    """Return the ids of the learners that are alone in their coterie."""
    partition = subject.partition
    assert partition is not None
    _, index, counts = np.unique(partition.labels, return_inverse=True, return_counts=True)
    lone: Array = partition.learner_ids[counts[index] == 1]
    return lone


def alike(shares: Array) -> bool:
    """Tell whether all learners have the same shares (L, R) to the percent: one sentence then says it."""
    return bool((np.round(shares, 2) == np.round(shares[0], 2)).all())


def weights_picture(subject: ReportSubject) -> dict[str, Any] | None:
    """Return what each learner's predictions are made of, those that take most from themselves first.

    Shares come from the weights of models in a learner's predictions, and sum to one. Of many learners both
    ends of that order are shown. None for a model without such weights.
    """
    form: Any = None if subject.model is None else subject.model.collaboration_
    names = getattr(form, "share_names", None)
    if not names:
        return None
    lone = np.isin(form.learner_ids, _lone_learners(subject)).tolist()
    moved_shares = own_coterie_is_itself(form.shares, names, lone)
    table = WeightsDisplay(form.learner_ids, moved_shares, names).frame()
    learners = table.pop("learner")
    shares = np.column_stack(list(table.values()))
    positions = both_ends(len(shares), MOST_MEMBERS)
    return {
        "learners": full_names(learners[positions]),
        "names": [taken_name(name) for name in names],
        "shares": [finite_list(row, 4) for row in shares[positions]],
        "mean": finite_list(shares.mean(axis=0), 4),
        "alike": alike(shares),
        "left_out": len(shares) - len(positions),
    }
