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
    """Return the mean similarity of each pair of clusters, shape (K, K), over pairs of their members.

    Of very many learners the similarities are no matrix but an object that multiplies with one.
    """
    members = np.eye(partition.n_clusters)[partition.labels]
    similarity = partition.similarity
    similarity_to_clusters = (
        similarity @ members if isinstance(similarity, np.ndarray) else similarity.times(members)
    )
    sizes = members.sum(axis=0)
    mean: Array = members.T @ similarity_to_clusters / np.outer(sizes, sizes)
    return mean


def chosen_pairs(partition: Partition) -> list[tuple[int, int]]:
    """Choose the pairs of clusters to compare.

    All pairs where they are few (`MOST_PAIRS`), else every cluster with the most similar one, the largest
    clusters first.
    """
    all_pairs = list(combinations(range(partition.n_clusters), 2))
    if len(all_pairs) <= MOST_PAIRS:
        return all_pairs
    mean_similarity = _between(partition)
    np.fill_diagonal(mean_similarity, -np.inf)
    pairs_with_nearest = [
        tuple(sorted((cluster, int(mean_similarity[cluster].argmax()))))
        for cluster in range(len(mean_similarity))
    ]
    return [(first, second) for first, second in dict.fromkeys(pairs_with_nearest)][:MOST_PAIRS]


def _profile(differences: Differences) -> dict[str, list[Any]]:
    """Return the difference along the most important predictor, by bin: its ends, mean difference, rows.

    Bins without rows are left out.
    """
    n_bins = differences.profile.shape[1]
    table = {name: column[:n_bins] for name, column in DifferencesDisplay(differences).frame().items()}
    has_rows = table["rows"] > 0
    column_of_key = {"from": "from", "to": "to", "values": "difference", "rows": "rows"}
    return {
        key: finite_list(table[name][has_rows])
        if key != "rows"
        else table[name][has_rows].astype(int).tolist()
        for key, name in column_of_key.items()
    }


def _short(value: float) -> float:
    """Return a number rounded to six significant digits, for JSON."""
    return float(f"{value:.6g}")


def _pair(differences: Differences) -> dict[str, Any]:
    """Return how two coteries' predictions differ, as plain values for JSON.

    These are the predictors on which the difference depends most, its profile along the first, and the
    regions where it is largest. ``noise`` is the noise of single rows, to compare with; ``disagreement`` is
    the root mean square difference, ``offset`` the mean one, and ``label`` the class, None for numbers.
    """
    table = differences.frame()
    columns = (table[name][:MOST_PREDICTORS].tolist() for name in ("predictor", "importance", "trend"))
    first, second = differences.clusters
    return {
        "clusters": [int(first), int(second)],
        "label": None if differences.label is None else full_name(str(differences.label)),
        "disagreement": _short(differences.disagreement),
        "offset": _short(differences.offset),
        "noise": _short(differences.noise),
        "predictors": [
            {"name": full_name(name), "importance": round(importance, 4), "trend": _short(trend)}
            for name, importance, trend in zip(*columns, strict=True)
        ],
        "profile": _profile(differences),
        "regions": [
            {
                "where": full_name(region.where),
                "share": round(region.share, 4),
                "difference": _short(region.difference),
            }
            for region in differences.regions
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
