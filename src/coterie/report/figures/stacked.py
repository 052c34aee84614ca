"""Shares that add up to one, a bar per learner."""

from __future__ import annotations

from typing import Any

from coterie.report.figures.look import (
    MOST_LEGEND,
    ROW_HEIGHT,
    Figure,
    axis,
    colour,
    figure,
    grey,
    hover_names,
    name_axis,
    plotly_text,
)


def _stacked(
    name: str, label: str, names: list[str], shares: list[list[float | None]], parts: list[tuple[str, str]]
) -> list[Figure]:
    rows = list(range(len(names)))
    full = hover_names(names)
    traces = [
        {
            "type": "bar",
            "orientation": "h",
            "name": plotly_text(part),
            "y": rows,
            "x": [share[place] for share in shares],
            "text": full,
            "textposition": "none",
            "marker": {"color": fill, "line": {"width": 0}},
            "hovertemplate": f"<b>%{{text}}</b><br>{plotly_text(part)}: %{{x:.0%}}<extra></extra>",
            "showlegend": place < MOST_LEGEND,
        }
        for place, (part, fill) in enumerate(parts)
    ]
    layout = {
        "barmode": "stack",
        "bargap": 0.25,
        "xaxis": axis(side="top", tickformat=".0%", range=[0, 1]),
        "yaxis": name_axis(names),
        "height": 110 + ROW_HEIGHT * len(names),
        "showlegend": True,
        "margin": {"l": 8, "r": 24, "t": 8, "b": 8},
        "legend": {"orientation": "h", "yanchor": "top", "y": -0.02, "x": 0, "traceorder": "normal"},
    }
    return [figure(name, label, traces, layout)]


def membership_figures(data: dict[str, Any]) -> list[Figure]:
    """Draw how often each learner falls into each coterie."""
    width = len(data["membership"][0]) if data["membership"] else 0
    parts = [(f"coterie {cluster}", colour(cluster)) for cluster in range(width)]
    label = "How often each learner falls into each coterie when its rows are drawn again"
    return _stacked("membership", label, data["learners"], data["membership"], parts)


def weights_figures(data: dict[str, Any]) -> list[Figure]:
    """Draw what each learner's predictions are made of."""
    count = len(data["names"])
    parts = [(name, grey(place, count)) for place, name in enumerate(data["names"])]
    label = "Weights of the learner itself, of its coteries and of all learners in its predictions"
    return _stacked("weights", label, data["learners"], data["shares"], parts)
