"""Where the learners lie."""

from __future__ import annotations

from typing import Any

from coterie.displays._look import shown_name
from coterie.report.figures.look import MOST_LEGEND, Figure, axis, colour, figure, plotly_text, symbol


def _points(data: dict[str, Any], places: list[list[float | None]], legend: bool) -> list[dict[str, Any]]:
    traces = []
    for cluster in sorted(set(data["clusters"])):
        mine = [p for p, other in enumerate(data["clusters"]) if other == cluster]
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": f"coterie {cluster} ({len(mine)})",
                "x": [places[0][p] for p in mine],
                "y": [places[1][p] for p in mine],
                "text": [plotly_text(shown_name(data["learners"][p], 60)) for p in mine],
                "hovertemplate": f"<b>%{{text}}</b><br>coterie {cluster}<extra></extra>",
                "showlegend": legend and cluster < MOST_LEGEND,
                "marker": {
                    "color": colour(cluster),
                    "symbol": symbol(cluster),
                    "size": 11 if len(data["clusters"]) <= 200 else 7,
                    "opacity": 0.75,
                    "line": {"color": "@paper", "width": 1},
                },
            }
        )
    return traces


def map_figures(data: dict[str, Any]) -> list[Figure]:
    """Draw the two maps of the learners."""
    bare = {"showticklabels": False, "ticks": ""}
    figures = []
    heads = {"distances": "by the distance of their models", "embedding": "where they were clustered"}
    for name, head in heads.items():
        layout = {
            "xaxis": axis(**bare),
            "yaxis": axis(**bare, scaleanchor="x"),
            "title": {"text": head, "font": {"size": 13}, "x": 0, "xref": "paper", "y": 0.98},
            "margin": {"l": 8, "r": 8, "t": 34, "b": 8},
            "height": 400,
            "showlegend": True,
            "legend": {"orientation": "h", "yanchor": "top", "y": -0.03, "x": 0, "font": {"size": 11}},
            "hovermode": "closest",
        }
        label = f"Map of the learners, {head}"
        figures.append(figure(f"map-{name}", label, _points(data, data[name], True), layout))
    return figures
