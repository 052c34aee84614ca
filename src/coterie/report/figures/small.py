"""Small pictures side by side: maps of the learners, a rule's curve each, the differences of pairs."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie._text import number, percent
from coterie.displays.cluster_count import on_log_scale
from coterie.report.figures import look
from coterie.report.figures.look import Figure, axis
from coterie.report.subject import finite_list
from coterie.report.words import region_words


def _points(data: dict[str, Any], places: list[list[float | None]]) -> list[dict[str, Any]]:
    traces, texts = [], look.hover_names(data["learners"])
    for cluster in sorted(set(data["clusters"])):
        mine = [p for p, other in enumerate(data["clusters"]) if other == cluster]
        x, y = ([along[p] for p in mine] for along in places)
        traces.append(
            look.scatter("markers", x, y, f"<b>%{{text}}</b><br>coterie {cluster}")
            | {
                "name": f"coterie {cluster} ({len(mine)})",
                "text": [texts[p] for p in mine],
                "showlegend": cluster < look.MOST_LEGEND,
                "marker": {
                    "color": look.colour(cluster),
                    "symbol": look.symbol(cluster),
                    "size": 11 if len(data["clusters"]) <= 200 else 7,
                    "opacity": 0.75,
                    "line": {"color": "@paper", "width": 1},
                },
            }
        )
    return traces


def map_figures(data: dict[str, Any]) -> list[Figure]:
    """Draw the map of the learners."""
    bare = {"showticklabels": False, "ticks": ""}
    layout = {
        "xaxis": axis(**bare),
        "yaxis": axis(**bare, scaleanchor="x"),
        "height": 420,
        **look.legend_below(-0.03, font={"size": 11}),
    }
    label = "Map of the learners, by the distance of their models"
    return [look.figure("map", label, _points(data, data["places"]), layout)]


def _curve(name: str, curve: dict[str, Any], decided: bool) -> Figure:
    counts, chosen = curve["n_clusters"], curve["chosen"]
    # None becomes NaN, which is left out.
    numbers = np.array(curve["values"], dtype=float)
    values = [value if value is None else float(f"{value:.6g}") for value in curve["values"]]
    wide = {"type": "log", "dtick": 1} if on_log_scale(name, numbers) else {}
    spread = None if curve["spread"] is None else finite_list(np.array(curve["spread"], dtype=float))
    line = look.scatter("lines+markers", counts, values, "%{x} coteries: %{y:.4~g}")
    line |= {"error_y": look.error_bars(spread, 2), "line": {"color": "@quiet", "width": 1.5}}
    line |= {"marker": {"color": "@quiet", "size": 5}}
    answer = [dict(zip(counts, values, strict=True)).get(chosen)]
    point = look.scatter("markers", [chosen], answer, f"answer of {name}: %{{x}}")
    point |= {"marker": {"color": "@c0" if decided else "@ink", "size": 12}}
    layout = {
        "xaxis": axis(title="number of coteries", dtick=1 if len(counts) <= 12 else 2, showgrid=False),
        "yaxis": axis(nticks=5, **wide),
        **look.headed(f"<b>{name}: {chosen}</b>" + (" (decided)" if decided else ""), 230),
    }
    label = f"Curve of the rule {name}, whose answer is {chosen}"
    return look.figure(f"why-{name}", label, [line, point], layout, caption=curve["criterion"])


def curves_figures(data: dict[str, Any]) -> list[Figure]:
    """Draw every rule's curve with its answer marked."""
    return [_curve(name, curve, name == data["rule"]) for name, curve in data["rules"].items()]


def _caption(pair: dict[str, Any]) -> str:
    shares = [
        f"{predictor['name']} {percent(predictor['importance'])}"
        for predictor in pair["predictors"]
        if round(100 * predictor["importance"])
    ]
    named = "" if pair["label"] is None else f"Probability of {pair['label']!r}. "
    depends = f"The difference goes with {', '.join(shares)}. " if shares else ""
    return f"{named}{depends}{region_words(pair)}"


def _steps(profile: dict[str, list[Any]], name: str) -> dict[str, Any]:
    """Return a line that is level over each bin."""
    across: list[Any] = []
    up: list[Any] = []
    texts: list[str] = []
    bins = zip(profile["from"], profile["to"], profile["values"], profile["rows"], strict=True)
    for low, high, value, rows in bins:
        across += [low, high]
        up += [value, value]
        texts += 2 * [f"{number(low)} to {number(high)}: {number(value)} ({rows} rows)"]
    line = {"text": texts, "line": {"color": "@ink", "width": 2.5}}
    return look.scatter("lines", across, up, f"{name} %{{text}}") | line


def differences_figures(data: dict[str, Any]) -> list[Figure]:
    """Draw the difference of two coteries' predictions, along the predictor that tells them apart best."""
    figures = []
    for pair in data["pairs"]:
        first, second = pair["clusters"]
        (name,) = look.short_names([pair["predictors"][0]["name"]])
        # Differences inside the band are no larger than the noise of single rows.
        band = {"type": "rect", "xref": "paper", "x0": 0, "x1": 1, "y0": -pair["noise"], "y1": pair["noise"]}
        band |= {"fillcolor": "@faint", "opacity": 0.55, "line": {"width": 0}, "layer": "below"}
        layout = {
            "xaxis": axis(title=name, showgrid=False, nticks=6),
            "yaxis": axis(nticks=5, zeroline=True, zerolinecolor="@quiet"),
            "shapes": [band],
            **look.headed(f"<b>coterie {first} minus coterie {second}</b>", 240),
        }
        what = "Prediction" if pair["label"] is None else f"Probability of {pair['label']!r}"
        label = f"{what} of coterie {first} minus that of coterie {second}"
        drawn = [_steps(pair["profile"], name)]
        caption = _caption(pair)
        figures.append(look.figure(f"differences-{first}-{second}", label, drawn, layout, caption=caption))
    return figures
