"""Why this many coteries: a small picture for each rule."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.displays.cluster_count import on_log_scale
from coterie.report.figures.look import Figure, axis, figure, headed
from coterie.report.subject import finite_list


def _curve(name: str, curve: dict[str, Any], decided: bool) -> Figure:
    counts = curve["n_clusters"]
    # None becomes NaN, which is left out.
    numbers = np.array(curve["values"], dtype=float)
    values = [value if value is None else float(f"{value:.6g}") for value in curve["values"]]
    wide = {"type": "log", "dtick": 1} if on_log_scale(name, numbers) else {}
    spread: dict[str, Any] = {"visible": False}
    if curve["spread"] is not None:
        errors = finite_list(np.array(curve["spread"], dtype=float))
        spread = {"type": "data", "array": errors, "color": "@quiet", "thickness": 1, "width": 2}
    line = {
        "type": "scatter",
        "mode": "lines+markers",
        "x": counts,
        "y": values,
        "error_y": spread,
        "line": {"color": "@quiet", "width": 1.5},
        "marker": {"color": "@quiet", "size": 5},
        "hovertemplate": "%{x} coteries: %{y:.4~g}<extra></extra>",
    }
    chosen = {
        "type": "scatter",
        "mode": "markers",
        "x": [curve["chosen"]],
        "y": [dict(zip(counts, values, strict=True)).get(curve["chosen"])],
        "marker": {"color": "@c0" if decided else "@ink", "size": 12},
        "hovertemplate": f"answer of {name}: %{{x}}<extra></extra>",
    }
    layout = {
        "xaxis": axis(title="number of coteries", dtick=1 if len(counts) <= 12 else 2, showgrid=False),
        "yaxis": axis(nticks=5, **wide),
        **headed(f"<b>{name}: {curve['chosen']}</b>" + (" (decided)" if decided else ""), 230),
    }
    label = f"Curve of the rule {name}, whose answer is {curve['chosen']}"
    return figure(f"why-{name}", label, [line, chosen], layout, caption=curve["criterion"])


def curves_figures(data: dict[str, Any]) -> list[Figure]:
    """Draw every rule's curve with its answer marked."""
    return [_curve(name, curve, name == data["rule"]) for name, curve in data["rules"].items()]
