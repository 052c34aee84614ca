"""Who predicts whom, as a heat map."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from coterie.report.figures import look
from coterie.report.figures.look import SHADES, Figure, axis


def _log_ticks(low: float, high: float) -> dict[str, Any]:
    """Return ticks at plain numbers for a scale in powers of ten."""
    steps = (
        (1,) if high - low > 3 else (1, 2, 5) if high - low > 0.7 else (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)
    )
    ticks = look.decade_ticks(10.0**low, 10.0**high, steps)
    return {"tickvals": [math.log10(tick) for tick in ticks], "ticktext": [f"{tick:g}" for tick in ticks]}


def _shades() -> list[list[Any]]:
    """Return a colour scale on which learners who are near each other stand out."""
    last = len(SHADES) - 1
    return [[place / last, f"@h{place}"] for place in range(last + 1)]


def losses_figures(data: dict[str, Any]) -> list[Figure]:
    """Draw everybody's model on everybody's rows."""
    n, clusters = len(data["learners"]), data["clusters"]
    places = list(range(n))
    # Hover shows a tick's text, also where the axis has no room for it.
    names = look.hover_names(data["learners"]) if data["binned"] else look.short_names(data["learners"])
    ticks = {"tickmode": "array", "tickvals": places, "ticktext": names, "showgrid": False}
    ticks |= {"showticklabels": n <= look.MOST_NAMES, "ticks": "", "range": [-0.5, n - 0.5]}
    low, high = (math.log10(limit) for limit in data["limits"])
    units = {"dissimilarity": "dissimilarity", "noise": "error / noise", "loss": "mean squared error"}
    bar: dict[str, Any] = {"title": {"text": units[data["unit"]], "side": "right"}, "thickness": 12}
    bar |= {"outlinewidth": 0, "tickfont": {"color": "@quiet"}, "len": 0.9}
    bar |= _log_ticks(low, high)
    unit = " times its noise" if data["unit"] == "noise" else ""
    whose = "model of <b>%{y}</b><br>on the rows of <b>%{x}</b>"
    hover = f"{whose}<br>error %{{customdata:.3~g}}{unit}<extra></extra>"
    trace = {
        "type": "heatmap",
        "x": places,
        "y": places,
        "z": [
            [None if cell is None else math.log10(max(cell, data["limits"][0])) for cell in row]
            for row in data["cells"]
        ],
        "customdata": data["cells"],
        "zmin": low,
        "zmax": high,
        "colorscale": _shades(),
        "colorbar": bar,
        "hovertemplate": hover,
    }
    starts = [p for p in places if p == 0 or clusters[p] != clusters[p - 1]]
    shapes: list[dict[str, Any]] = []
    notes: list[dict[str, Any]] = []
    for start, end in pairwise([*starts, n]):
        fill = {"type": "rect", "fillcolor": look.colour(clusters[start]), "line": {"width": 0}}
        span = {"x0": start - 0.5, "x1": end - 0.5}
        shapes.append({**fill, **span, "xref": "x", "yref": "paper", "y0": 1.008, "y1": 1.028})
        if start:
            shapes += [look.rule(along, start - 0.5, {"color": "@paper", "width": 1.5}) for along in "xy"]
        if (end - start) / n >= 0.035:
            text = f"coterie {clusters[start]}" if (end - start) / n >= 0.2 else str(clusters[start])
            notes.append(
                {"x": (start + end - 1) / 2, "y": 1.03, "yref": "paper", "yanchor": "bottom", "text": text}
                | {"showarrow": False, "font": {"color": "@ink"}}
            )
    layout = {
        "xaxis": axis(title="on the rows of", tickangle=-90, **ticks),
        "yaxis": axis(title="model of", **ticks | {"range": [n - 0.5, -0.5]}),
        "shapes": shapes,
        "annotations": notes,
        "margin": {"l": 8, "r": 8, "t": 34, "b": 8},
        # What is not finite has no colour of the scale.
        "plot_bgcolor": "@quiet",
    }
    label = "Heat map of losses, learners ordered by coterie"
    return [look.figure("losses", label, [trace], layout, square=True)]
