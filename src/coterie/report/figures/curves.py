"""Why this many coteries: a small picture for each rule."""

from __future__ import annotations

from typing import Any

from coterie.displays._look import WIDE
from coterie.report.figures.look import Figure, axis, figure


def curves_figures(data: dict[str, Any]) -> list[Figure]:
    """Draw every rule's curve with its answer marked."""
    figures = []
    for curve in data["curves"]:
        counts, values = curve["n_clusters"], curve["values"]
        positive = [value for value in values if value is not None and value > 0]
        losses = curve["rule"] in ("held-out", "cv") and len(positive) == sum(v is not None for v in values)
        wide = bool(losses and positive and max(positive) > WIDE * min(positive))
        spread = None
        if curve["spread"] is not None:
            spread = {"type": "data", "array": curve["spread"], "color": "@quiet", "thickness": 1, "width": 2}
        line = {
            "type": "scatter",
            "mode": "lines+markers",
            "x": counts,
            "y": values,
            "error_y": spread or {"visible": False},
            "line": {"color": "@quiet", "width": 1.5},
            "marker": {"color": "@quiet", "size": 5},
            "hovertemplate": "%{x} coteries: %{y:.4~g}<extra></extra>",
        }
        chosen = {
            "type": "scatter",
            "mode": "markers",
            "x": [curve["chosen"]],
            "y": [dict(zip(counts, values, strict=True)).get(curve["chosen"])],
            "marker": {"color": "@c0" if curve["decided"] else "@ink", "size": 12},
            "hovertemplate": f"answer of {curve['rule']}: %{{x}}<extra></extra>",
        }
        head = f"<b>{curve['rule']}: {curve['chosen']}</b>" + (" (decided)" if curve["decided"] else "")
        layout = {
            "xaxis": axis(title="number of coteries", dtick=1 if len(counts) <= 12 else 2, showgrid=False),
            "yaxis": axis(nticks=5, **({"type": "log", "dtick": 1} if wide else {})),
            "title": {"text": head, "font": {"size": 13}, "x": 0, "xref": "paper", "y": 0.97},
            "margin": {"l": 8, "r": 8, "t": 34, "b": 8},
            "height": 230,
            "hovermode": "closest",
        }
        label = f"Curve of the rule {curve['rule']}, whose answer is {curve['chosen']}"
        figures.append(
            figure(f"why-{curve['rule']}", label, [line, chosen], layout, caption=curve["criterion"])
        )
    return figures
