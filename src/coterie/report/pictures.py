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
    """Return the median inside the clusters, without the diagonal, and between them."""
    same = labels[:, None] == labels[None, :]
    away = ~np.eye(len(labels), dtype=bool)
    medians = {}
    for name, cells in (("inside", same & away), ("between", ~same)):
        result = values[cells & np.isfinite(values)]
        medians[name] = float(f"{np.median(result):.4g}") if len(result) else None
    return medians


def losses_picture(subject: ReportSubject) -> dict[str, Any]:
    """Return everybody's model on everybody's rows, ordered by cluster; of very many learners a sample's."""
    partition, exchange = subject.partition, subject.exchange
    assert partition is not None
    # A matrix of losses alone has no honest noise levels.
    honest = subject.model is not None and exchange is not None and bool((exchange.noise > 0).all())
    display = LossHeatmapDisplay.from_partition(partition, exchange, with_noise=honest)
    table = display.frame()
    unit = "noise" if honest else "dissimilarity" if exchange is None else "loss"
    n = int(np.sqrt(len(table["model"])))
    cells = table["loss_per_noise" if honest else "loss"].reshape(n, n)
    limits = colour_limits(cells) or (1.0, 10.0)
    clusters = table["learner_cluster"][:n]
    of_classes = {"error": "Brier score"} if "scores" in subject.summary else {}
    return {
        **of_classes,
        "unit": unit,
        "admitted": subject.summary["n_admitted"],
        "learners": full_names(table["learner"][:n].tolist()),
        "clusters": clusters.tolist(),
        "binned": n < len(display.labels),
        "limits": [float(f"{limit:.4g}") for limit in limits],
        "cells": [finite_list(row, DIGITS) for row in cells],
        **_between(cells, clusters),
    }


def map_picture(subject: ReportSubject) -> dict[str, Any]:
    """Return where the learners lie by the distances of their models."""
    assert subject.partition is not None
    table = MapDisplay.from_partition(subject.partition, subject.exchange).frame()
    return {
        "learners": full_names(table["learner"]),
        "clusters": table["cluster"].tolist(),
        "places": [finite_list(table["across"]), finite_list(table["up"])],
        "admitted": subject.summary["n_admitted"],
    }


def both_ends(count: int, most: int) -> list[int]:
    """Return positions from both ends of a sorted list, at most so many; all where they are few."""
    if count <= most:
        return list(range(count))
    return [*range(most - most // 2), *range(count - most // 2, count)]


def membership_picture(subject: ReportSubject) -> dict[str, Any] | None:
    """Return how often each learner falls into each cluster, the least sure first."""
    stability, partition = subject.stability, subject.partition
    if stability is None or partition is None:
        return None
    label = dict(zip(partition.learner_ids.tolist(), partition.labels.tolist(), strict=True))
    labels = np.array([label[learner] for learner in stability.learner_ids.tolist()])
    display = MembershipDisplay(stability.membership, labels=labels, learner_ids=stability.learner_ids)
    n, n_clusters = display.membership.shape
    table = {name: column.reshape(n, n_clusters) for name, column in display.frame().items()}
    own = table["probability"][np.arange(n), table["cluster"][:, 0]]
    count = min(int((own < SURE).sum()), MOST_MEMBERS)
    order = np.argsort(own, kind="stable")[:count]
    return {
        "learners": full_names(table["learner"][order, 0].tolist()),
        "clusters": table["cluster"][order, 0].tolist(),
        "own": finite_list(own[order], 4),
        "membership": [finite_list(row, 4) for row in table["probability"][order]],
        "sure": int((own >= 0.95).sum()),
        "n_learners": n,
        "n_replicates": int(stability.n_replicates),
        "left_out": n - len(order),
    }


def taken_name(source: str) -> str:
    """Return whom a weight belongs to, by its column or by its name in a collaboration."""
    name = source.removeprefix("from_").replace("_", " ")
    return TAKEN.get(name, name)


def own_coterie_is_itself(shares: Array, names: Sequence[str], lone: Sequence[bool]) -> Array:
    """Return shares with what a learner in a coterie of its own takes from it counted as its own model's."""
    kinds = [name.removeprefix("from_") for name in names]
    if not {"alone", "coterie"} <= set(kinds) or not any(lone):
        return shares
    once, rows = shares.copy(), np.flatnonzero(lone)
    once[rows, kinds.index("alone")] += shares[rows, kinds.index("coterie")]
    once[rows, kinds.index("coterie")] = 0.0
    return once


def _lone_learners(subject: ReportSubject) -> Array:
    """Return the learners in a coterie of their own."""
    partition = subject.partition
    assert partition is not None
    _, index, counts = np.unique(partition.labels, return_inverse=True, return_counts=True)
    lone: Array = partition.learner_ids[counts[index] == 1]
    return lone


def alike(shares: Array) -> bool:
    """Tell whether all learners take the same, to the percent."""
    return bool((np.round(shares, 2) == np.round(shares[0], 2)).all())


def weights_picture(subject: ReportSubject) -> dict[str, Any] | None:
    """Return what each learner's predictions are made of, those that take most from themselves first."""
    nested: Any = None if subject.model is None else subject.model.collaboration_
    names = getattr(nested, "share_names", None)
    if not names:
        return None
    lone = np.isin(nested.learner_ids, _lone_learners(subject)).tolist()
    once = own_coterie_is_itself(nested.shares, names, lone)
    table = WeightsDisplay(nested.learner_ids, once, names).frame()
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
