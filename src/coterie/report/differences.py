"""How the coteries differ: for some pairs, the predictors and the regions in which their models disagree."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.report.subject import Subject, finite_list, full_name
from coterie.verdicts import Differences, compare_clusters

Array = NDArray[Any]

# Comparing all pairs is slow and unreadable when there are many.
MOST_PAIRS = 6
MOST_PREDICTORS = 3


def _between(subject: Subject) -> Array:
    """Return the mean similarity of each pair of clusters."""
    members = np.eye(subject.partition.n_clusters)[subject.partition.labels]
    similarity = subject.partition.similarity
    products = similarity @ members if isinstance(similarity, np.ndarray) else similarity.times(members)
    sums = members.T @ products
    sizes = members.sum(axis=0)
    mean: Array = sums / np.outer(sizes, sizes)
    return mean


def chosen_pairs(subject: Subject) -> list[tuple[int, int]]:
    """Choose the pairs of clusters to compare.

    Parameters
    ----------
    subject : Subject
        What the report is about.

    Returns
    -------
    list of tuple of int
        All pairs where they are few, else every cluster with its nearest, the largest clusters first.
    """
    every = list(combinations(range(subject.partition.n_clusters), 2))
    if len(every) <= MOST_PAIRS:
        return every
    near = _between(subject)
    np.fill_diagonal(near, -np.inf)
    nearest = [tuple(sorted((cluster, int(near[cluster].argmax())))) for cluster in range(len(near))]
    return [(first, second) for first, second in dict.fromkeys(nearest)][:MOST_PAIRS]


def _profile(found: Differences, position: int) -> dict[str, list[Any]]:
    """Return how the difference runs along a predictor, over the bins that have rows."""
    filled = found.counts[position] > 0
    edges = found.edges[position]
    return {
        "from": finite_list(edges[:-1][filled]),
        "to": finite_list(edges[1:][filled]),
        "values": finite_list(found.profile[position][filled]),
        "rows": found.counts[position][filled].astype(int).tolist(),
    }


def _pair(found: Differences) -> dict[str, Any]:
    order = np.argsort(-found.importance, kind="stable")[:MOST_PREDICTORS]
    predictors = [
        {
            "name": full_name(found.predictors[p]),
            "importance": round(float(found.importance[p]), 4),
            "trend": float(f"{found.trend[p]:.6g}"),
        }
        for p in order.tolist()
    ]
    regions = [
        {"where": full_name(region.where), "share": round(region.share, 4)}
        | {"difference": float(f"{region.difference:.6g}")}
        for region in found.regions
    ]
    first, second = found.clusters
    return {
        "clusters": [int(first), int(second)],
        "disagreement": float(f"{found.disagreement:.6g}"),
        "offset": float(f"{found.offset:.6g}"),
        "noise": float(f"{found.noise:.6g}"),
        "predictors": predictors,
        "profile": _profile(found, int(order[0])),
        "regions": regions,
    }


def differences_picture(subject: Subject) -> dict[str, Any] | str:
    """Return how pairs of coteries differ, or the sentence that says why that is not known.

    Parameters
    ----------
    subject : Subject
        What the report is about.

    Returns
    -------
    dict or str
        ``pairs``, the furthest apart first, and how many there are in all.
    """
    model, count = subject.model, subject.partition.n_clusters
    if model is None:
        return subject.why_no_rows("The coteries' models and where they disagree")
    if count < 2:
        return "There is one coterie, so that there is nothing to compare."
    if not model.record_.has_rows:
        return "The model was saved without its rows, on which coteries are compared: save it with rows=True."
    pairs = []
    for first, second in chosen_pairs(subject):
        try:
            pairs.append(_pair(compare_clusters(model, first, second)))
        except ValueError:
            # A model without one finite prediction, such as an attacker's, has no differences to show.
            continue
    if not pairs:
        return "No two coteries have models that could be compared on their learners' rows."
    pairs.sort(key=lambda pair: -pair["disagreement"])
    return {"pairs": pairs, "n_pairs": count * (count - 1) // 2}
