"""Where the learners lie."""

from __future__ import annotations

from typing import Any

from coterie.report.figures.look import MOST_LEGEND, Figure, axis, colour, figure, headed, hover_names, symbol


def _points(data: dict[str, Any], places: list[list[float | None]]) -> list[dict[str, Any]]:
    traces, texts = [], hover_names(data["learners"])
    for cluster in sorted(set(data["clusters"])):
        mine = [p for p, other in enumerate(data["clusters"]) if other == cluster]
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": f"coterie {cluster} ({len(mine)})",
                "x": [places[0][p] for p in mine],
                "y": [places[1][p] for p in mine],
                "text": [texts[p] for p in mine],
                "hovertemplate": f"<b>%{{text}}</b><br>coterie {cluster}<extra></extra>",
                "showlegend": cluster < MOST_LEGEND,
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
            **headed(head, 400, up=0.98),
            "showlegend": True,
            "legend": {"orientation": "h", "yanchor": "top", "y": -0.03, "x": 0, "font": {"size": 11}},
        }
        label = f"Map of the learners, {head}"
        figures.append(figure(f"map-{name}", label, _points(data, data[name]), layout))
    return figures
