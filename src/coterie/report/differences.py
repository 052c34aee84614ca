"""How the coteries differ: for some pairs, the predictors and the regions in which their models disagree."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie.displays import DifferencesDisplay
from coterie.records import Partition
from coterie.report.subject import ReportSubject, finite_list, full_name
from coterie.verdicts import Differences, compare_clusters

# Comparing all pairs is slow and unreadable when there are many.
MOST_PAIRS = 6
MOST_PREDICTORS = 3


def _between(partition: Partition) -> Array:
    """Return the mean similarity of each pair of clusters, of shape (K, K)."""
    members = np.eye(partition.n_clusters)[partition.labels]
    similarity = partition.similarity
    products = similarity @ members if isinstance(similarity, np.ndarray) else similarity.times(members)
    sizes = members.sum(axis=0)
    mean: Array = members.T @ products / np.outer(sizes, sizes)
    return mean


def chosen_pairs(partition: Partition) -> list[tuple[int, int]]:
    """Choose the pairs of clusters to compare.

    All pairs where they are few, else every cluster with its nearest, the largest clusters first.
    """
    every = list(combinations(range(partition.n_clusters), 2))
    if len(every) <= MOST_PAIRS:
        return every
    near = _between(partition)
    np.fill_diagonal(near, -np.inf)
    nearest = [tuple(sorted((cluster, int(near[cluster].argmax())))) for cluster in range(len(near))]
    return [(first, second) for first, second in dict.fromkeys(nearest)][:MOST_PAIRS]


def _profile(found: Differences) -> dict[str, list[Any]]:
    """Return how the difference runs along the most important predictor, over the bins that have rows."""
    n_bins = found.profile.shape[1]
    table = {name: column[:n_bins] for name, column in DifferencesDisplay(found).frame().items()}
    filled = table["rows"] > 0
    columns = {"from": "from", "to": "to", "values": "difference", "rows": "rows"}
    return {
        key: finite_list(table[name][filled]) if key != "rows" else table[name][filled].astype(int).tolist()
        for key, name in columns.items()
    }


def _short(value: float) -> float:
    return float(f"{value:.6g}")


def _pair(found: Differences) -> dict[str, Any]:
    """Return how two coteries differ, as the page shows it."""
    table = found.frame()
    columns = (table[name][:MOST_PREDICTORS].tolist() for name in ("predictor", "importance", "trend"))
    first, second = found.clusters
    return {
        "clusters": [int(first), int(second)],
        "label": None if found.label is None else full_name(str(found.label)),
        "disagreement": _short(found.disagreement),
        "offset": _short(found.offset),
        "noise": _short(found.noise),
        "predictors": [
            {"name": full_name(name), "importance": round(importance, 4), "trend": _short(trend)}
            for name, importance, trend in zip(*columns, strict=True)
        ],
        "profile": _profile(found),
        "regions": [
            {
                "where": full_name(region.where),
                "share": round(region.share, 4),
                "difference": _short(region.difference),
            }
            for region in found.regions
        ],
    }


def differences_picture(subject: ReportSubject) -> dict[str, Any] | str:
    """Return how pairs of coteries differ, or the sentence that says why that is not known.

    The dict has ``pairs``, the furthest apart first, and how many there are in all.
    """
    model, partition = subject.model, subject.partition
    if model is None or partition is None:
        return subject.why_missing("The coteries' models and where they disagree")
    count = partition.n_clusters
    if count < 2:
        return "There is one coterie, so that there is nothing to compare."
    if not model.record_.has_rows:
        return "The model was saved without its rows, on which coteries are compared: save it with rows=True."
    pairs = []
    for first, second in chosen_pairs(partition):
        try:
            pairs.append(_pair(compare_clusters(model, first, second)))
        except ValueError:
            # A model without one finite prediction, such as an attacker's, has no differences to show.
            continue
    if not pairs:
        return "No two coteries have models that could be compared on their learners' rows."
    pairs.sort(key=lambda pair: -pair["disagreement"])
    return {"pairs": pairs, "n_pairs": count * (count - 1) // 2}
