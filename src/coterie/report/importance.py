"""What matters in each coterie: the numbers behind the bars and lines, and the sentences about them."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie._text import joined
from coterie.displays import ImportanceDisplay
from coterie.report.subject import ReportSubject, finite_list, full_name, full_names
from coterie.verdicts import Shape

# Coteries, the largest first, and predictors that are shown.
MOST_COTERIES = 6
MOST_PREDICTORS = 8
# A line that goes this share of its way in one direction rises or falls.
SHARE_OF_MONOTONE = 0.6


def _shape(shape: Shape) -> dict[str, Any]:
    """Return mean predictions along one predictor as plain lists: its values, and a line for each coterie."""
    numeric = shape.values.dtype.kind in "if"
    return {
        "predictor": full_name(shape.predictor),
        "numeric": numeric,
        "values": finite_list(shape.values) if numeric else full_names(shape.values),
        "predictions": [finite_list(line) for line in shape.predictions],
    }


def importance_picture(subject: ReportSubject) -> dict[str, Any] | str:
    """Return shares of the predictors' importance in the largest coteries, or why they are not known.

    Importance is the rise of the error on held-out rows when a predictor is shuffled. Also returned are
    the lines of mean predictions along the most important ones (``shapes``); ``left_out`` counts the coteries
    that are not shown. All of it is computed here from the model's rows, which takes time.
    """
    model = subject.model
    if model is None:
        return subject.why_missing("The predictors that matter")
    if not model.record_.has_rows:
        return "The model was saved without its rows, on which predictors are judged: save it with rows=True."
    try:
        display = ImportanceDisplay.from_estimator(model, range(min(model.n_clusters_, MOST_COTERIES)))
    except ValueError as error:
        return str(error)
    table, importance = display.frame(), display.importance
    n_coteries = len(importance.clusters)
    shares = table["share"].reshape(-1, n_coteries)[:MOST_PREDICTORS]
    label = None if importance.label is None else full_name(importance.label)
    return {
        "label": label,
        "clusters": importance.clusters.tolist(),
        "predictors": full_names(table["predictor"][::n_coteries][:MOST_PREDICTORS]),
        "shares": [finite_list(shares_in_coterie, 4) for shares_in_coterie in shares.T],
        "models": list(importance.models),
        "n_rows": importance.n_rows.tolist(),
        "shapes": [_shape(shape) for shape in importance.shapes],
        "left_out": model.n_clusters_ - n_coteries,
    }


def _direction(line: Array) -> str:
    """Say whether a line rises or falls from its first value to its last; empty if it does neither.

    It rises if its ends differ by more than `SHARE_OF_MONOTONE` of its total variation, the sum of all its
    ups and downs.
    """
    steps = np.diff(line)
    total_variation = np.abs(steps).sum()
    net_share = steps.sum() / total_variation if total_variation > 0 else 0.0
    return "rise" if net_share > SHARE_OF_MONOTONE else "fall" if net_share < -SHARE_OF_MONOTONE else ""


def _where(clusters: list[str], count: int) -> str:
    """Name some coteries, or say that they are all ``count`` of them."""
    if len(clusters) == count > 1:
        return "in all coteries"
    return f"in {'coterie' if len(clusters) == 1 else 'coteries'} {joined(clusters, MOST_COTERIES)}"


def _how(shape: dict[str, Any], clusters: list[int]) -> str:
    """Say in which coteries predictions rise or fall with a numeric predictor; empty where in none.

    ``shape`` has the predictor's name and, for each of the ``clusters``, the mean predictions along its
    values.
    """
    lines = np.array(shape["predictions"], dtype=float)
    by_direction: dict[str, list[str]] = {"rise": [], "fall": []}
    for cluster, line in zip(clusters, lines, strict=True):
        if direction := _direction(line):
            by_direction[direction].append(str(cluster))
    parts = [f"{direction} {_where(who, len(clusters))}" for direction, who in by_direction.items() if who]
    return f"With higher {shape['predictor']} predictions {' and '.join(parts)}." if parts else ""


def importance_words(data: dict[str, Any]) -> list[str]:
    """Return two paragraphs: which predictors matter in each coterie, and how predictions depend on them."""
    importance_text = (
        "A predictor matters if the error on rows not seen rises when its entries are shuffled. Bars are "
        "shares of that rise: all predictors of a coterie sum to 100%. Predictors that carry the same "
        "information share it, or may all look important."
    )
    for cluster, shares in list(zip(data["clusters"], data["shares"], strict=True))[:3]:
        three_largest = sorted(range(len(shares)), key=lambda index: -(shares[index] or 0.0))[:3]
        names = [
            data["predictors"][index] for index in three_largest if shares[index] and shares[index] >= 0.01
        ]
        if names:
            importance_text += f" In coterie {cluster} the most important are {joined(names)}."
    directions = [_how(shape, data["clusters"]) for shape in data["shapes"] if shape["numeric"]]
    quantity = "predictions" if data["label"] is None else f"probabilities of {data['label']!r}"
    lines_text = (
        f"Lines are mean {quantity} when a predictor is set to one value in all rows. {' '.join(directions)}"
    )
    n_left_out = data["left_out"]
    left_out_text = f" The {len(data['clusters'])} largest coteries are shown." if n_left_out else ""
    return [importance_text, lines_text.strip() + left_out_text]
