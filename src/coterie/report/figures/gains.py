"""Does it pay: errors with the coterie and with all against the error alone."""

from __future__ import annotations

from typing import Any

from coterie._text import number, percent
from coterie.report.figures.look import (
    ROW_HEIGHT,
    Figure,
    axis,
    colour,
    decade_ticks,
    figure,
    hover_names,
    name_axis,
    symbol,
)

# Ticks on a log scale: the first of these that gives few enough to stand side by side on a phone.
SHARE_STEPS = ((1, 2, 5), (1, 5), (1, 3), (1,))
MOST_SHARE_TICKS = 5


def _share_ticks(low: float, high: float) -> list[float]:
    ticks = [1.0]
    for steps in SHARE_STEPS:
        ticks = decade_ticks(low / 1.1, high * 1.1, steps)
        if len(ticks) <= MOST_SHARE_TICKS:
            break
    return ticks[:: -(-len(ticks) // MOST_SHARE_TICKS)]


def _coterie(cluster: int) -> str:
    return "no coterie" if cluster < 0 else f"coterie {cluster}:"


def gains_figures(data: dict[str, Any]) -> list[Figure]:
    """Draw the errors with the coterie and with all as shares of the error alone."""
    n = len(data["learners"])
    if not n:
        return []
    rows = list(range(n))
    coterie = [value if value is None or value > 0 else None for value in data["coterie"]]
    shares = [value for value in (*coterie, *data["all"]) if value is not None and value > 0]
    wide = bool(shares) and max(*shares, 1.0) > 5 * min(*shares, 1.0)
    links: dict[str, list[Any]] = {"x": [], "y": []}
    for row, value in enumerate(coterie):
        links["x"] += [1, value, None]
        links["y"] += [row, row, None]
    errors = data["errors"]
    texts = [
        f"<b>{name}</b><br>alone {number(errors['error_alone'][p])}<br>"
        f"with {_coterie(data['clusters'][p])} {number(errors['error_with'][p])}<br>"
        f"with all {number(errors['error_all'][p])}<br>"
        f"saved {percent(1 - (data['coterie'][p] or 0), sign=True)}"
        for p, name in enumerate(hover_names(data["learners"]))
    ]
    spread: dict[str, Any] = {"visible": False}
    if data["spread"] is not None:
        spread = {"type": "data", "array": data["spread"], "color": "@quiet", "thickness": 1, "width": 0}
    shared = {"type": "scatter", "text": texts, "hovertemplate": "%{text}<extra></extra>", "y": rows}
    traces: list[dict[str, Any]] = [
        {
            **links,
            "type": "scatter",
            "mode": "lines",
            "hoverinfo": "skip",
            "line": {"color": "@faint", "width": 5},
        },
        {
            **shared,
            "mode": "markers",
            "x": data["all"],
            "marker": {"symbol": "x-thin-open", "color": "@quiet", "size": 7, "line": {"width": 1.5}},
        },
        {
            **shared,
            "mode": "markers",
            "x": coterie,
            "error_x": spread,
            "marker": {
                "color": [colour(cluster) for cluster in data["clusters"]],
                "symbol": [symbol(cluster) for cluster in data["clusters"]],
                "size": 10,
            },
        },
    ]
    shares_axis: dict[str, Any] = {
        "side": "top",
        "tickangle": 0,
        "tickformat": ".0%",
        "nticks": 6,
        "title": "error as a share of the error alone",
    }
    if wide:
        ticks = _share_ticks(min(*shares, 1.0), max(*shares, 1.0))
        shares_axis |= {"type": "log", "tickmode": "array", "tickvals": ticks}
        shares_axis |= {"ticktext": [f"{tick:,.0%}" if tick >= 0.01 else f"{tick:.3%}" for tick in ticks]}
    alone = {"color": "@ink", "width": 1.5}
    gap = []
    if data["left_out"]:
        middle = n - n // 2 - 0.5
        line = {"color": "@quiet", "width": 1, "dash": "dot"}
        gap = [{"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": middle, "y1": middle, "line": line}]
    layout = {
        "xaxis": axis(**shares_axis),
        "yaxis": name_axis(data["learners"]),
        "shapes": [
            {"type": "line", "x0": 1, "x1": 1, "yref": "paper", "y0": 0, "y1": 1, "line": alone},
            *gap,
        ],
        "height": 90 + ROW_HEIGHT * n,
    }
    return [
        figure("gains", "Error with the coterie and with all as a share of the error alone", traces, layout)
    ]
