"""Rows of bars, one per learner: how sure coteries are, and what predictions are made of."""

from __future__ import annotations

from typing import Any

from coterie._text import percent, whole_percents
from coterie.report.themes import colour, grey

# More coteries than this are told apart by what stands beside the pointer.
MOST_IN_LEGEND = 12
# Parts of a bar that nobody can see are not in the legend.
VISIBLE = 0.005

Bars = dict[str, Any]


def _bars(learners: list[str], shares: list[list[float | None]], parts: list[tuple[str, str]]) -> Bars:
    """Return a bar for each learner, cut into parts that have names and colours."""
    rows = []
    for learner, row in zip(learners, shares, strict=True):
        wholes = whole_percents(row)
        cut: list[dict[str, Any]] = [
            {"width": round(100 * (share or 0.0), 2), "colour": fill, "said": f"{name}: {whole}%"}
            for share, (name, fill), whole in zip(row, parts, wholes, strict=True)
            if share
        ]
        said = [part["said"] for part in sorted(cut, key=lambda part: -part["width"])[:2]]
        rows.append({"name": learner, "parts": cut, "said": ", ".join(said)})
    legend = [
        {"name": name, "colour": fill}
        for index, (name, fill) in enumerate(parts)
        if any((row[index] or 0.0) >= VISIBLE for row in shares)
    ]
    return {"legend": legend if len(parts) <= MOST_IN_LEGEND else [], "rows": rows}


def _several(predictor: str, data: Bars, place: int) -> Bars:
    """Return a predictor's row: a bar for each coterie, one below the other."""
    shares = [row[place] or 0.0 for row in data["shares"]]
    most = max([share or 0.0 for row in data["shares"] for share in row]) or 1.0
    parts = [
        {"width": round(100 * share / most, 2), "colour": colour(cluster), "said": f"{share:.0%}"}
        for cluster, share in zip(data["clusters"], shares, strict=True)
    ]
    said = ", ".join(
        f"{cluster}: {share:.0%}" for cluster, share in zip(data["clusters"], shares, strict=True)
    )
    return {"name": predictor, "parts": parts, "said": said, "stacked": True}


def bars_of(section: dict[str, Any]) -> Bars | None:
    """Return the bars of a section of the evidence, None where it has none."""
    data = section["data"]
    if data is None:
        return None
    match section["id"]:
        case "membership" if data["learners"]:
            count = len(data["membership"][0])
            parts = [(f"coterie {cluster}", colour(cluster)) for cluster in range(count)]
            return _bars(data["learners"], data["membership"], parts)
        # Where all learners take the same, a sentence says so.
        case "weights" if not data["alike"]:
            names = data["names"]
            parts = [(name, grey(index, len(names))) for index, name in enumerate(names)]
            return _bars(data["learners"], data["shares"], parts)
        case "importance":
            return {
                "legend": [
                    {"name": f"coterie {cluster}", "colour": colour(cluster)} for cluster in data["clusters"]
                ],
                "rows": [_several(name, data, index) for index, name in enumerate(data["predictors"])],
            }
        case "site" if data["sources"] is not None:
            sources = data["sources"]
            most = max(sources["weights"])
            rows = [
                {
                    "name": name,
                    "parts": [{"width": round(100 * weight / most, 2), "colour": grey(1, 7), "said": ""}],
                    "said": percent(weight),
                }
                for name, weight in zip(sources["learners"], sources["weights"], strict=True)
            ]
            return {"legend": [], "rows": rows}
    return None
