"""Pictures with a row per learner: does it pay, how sure are the coteries, what predictions are made of."""

from __future__ import annotations

from typing import Any

from coterie._text import number, percent
from coterie.report.figures import look
from coterie.report.figures.look import ROW_HEIGHT, Figure, axis, plotly_text

# Ticks on a log scale: the first of these that gives few enough to stand side by side on a phone.
SHARE_STEPS = ((1, 2, 5), (1, 5), (1, 3), (1,))
MOST_SHARE_TICKS = 5


def _share_ticks(low: float, high: float) -> list[float]:
    ticks = [1.0]
    for steps in SHARE_STEPS:
        ticks = look.decade_ticks(low / 1.1, high * 1.1, steps)
        if len(ticks) <= MOST_SHARE_TICKS:
            break
    return ticks[:: -(-len(ticks) // MOST_SHARE_TICKS)]


def _share_axis(shares: list[float]) -> dict[str, Any]:
    """Return an axis of errors as shares of the error alone, on a log scale where they span much."""
    scale: dict[str, Any] = {}
    low, high = min([*shares, 1.0]), max([*shares, 1.0])
    if high > 5 * low:
        ticks = _share_ticks(low, high)
        texts = [f"{tick:,.0%}" if tick >= 0.01 else f"{tick:.3%}" for tick in ticks]
        scale = {"type": "log", "tickmode": "array", "tickvals": ticks, "ticktext": texts}
    title = "error as a share of the error alone"
    return axis(side="top", tickangle=0, tickformat=".0%", nticks=6, title=title, **scale)


def _gains_texts(data: dict[str, Any]) -> list[str]:
    """Return what stands beside the pointer, for each learner."""
    texts = []
    for p, name in enumerate(look.hover_names(data["learners"])):
        alone, coterie, everybody = (number(column[p]) for column in data["errors"].values())
        cluster = data["clusters"][p]
        whom = "no coterie" if cluster < 0 else f"coterie {cluster}:"
        saved = percent(1 - (data["coterie"][p] or 0), sign=True)
        parts = [f"<b>{name}</b>", f"alone {alone}", f"with {whom} {coterie}", f"with all {everybody}"]
        texts.append("<br>".join([*parts, f"saved {saved}"]))
    return texts


def gains_figures(data: dict[str, Any]) -> list[Figure]:
    """Draw the errors with the coterie and with all as shares of the error alone."""
    n = len(data["learners"])
    if not n:
        return []
    coterie = [value if value is None or value > 0 else None for value in data["coterie"]]
    shares = [value for value in (*coterie, *data["all"]) if value is not None and value > 0]
    links: dict[str, list[Any]] = {"x": [], "y": []}
    for row, value in enumerate(coterie):
        links["x"] += [1, value, None]
        links["y"] += [row, row, None]
    link = {"type": "scatter", "mode": "lines", "hoverinfo": "skip", "line": {"color": "@faint", "width": 5}}
    texts = {"text": _gains_texts(data)}
    everybody = look.scatter("markers", data["all"], list(range(n)), "%{text}") | texts
    everybody["marker"] = {"symbol": "x-thin-open", "color": "@quiet", "size": 7, "line": {"width": 1.5}}
    together = look.scatter("markers", coterie, list(range(n)), "%{text}") | texts
    together["error_x"] = look.error_bars(data["spread"], 0)
    together["marker"] = {
        "color": [look.colour(cluster) for cluster in data["clusters"]],
        "symbol": [look.symbol(cluster) for cluster in data["clusters"]],
        "size": 10,
    }
    shapes = [look.rule("x", 1, {"color": "@ink", "width": 1.5})]
    if data["left_out"]:
        shapes.append(look.rule("y", n - n // 2 - 0.5, {"color": "@quiet", "width": 1, "dash": "dot"}))
    layout = {
        "xaxis": _share_axis(shares),
        "yaxis": look.name_axis(data["learners"]),
        "shapes": shapes,
        "height": 90 + ROW_HEIGHT * n,
    }
    label = "Error with the coterie and with all as a share of the error alone"
    return [look.figure("gains", label, [links | link, everybody, together], layout)]


def _stacked(
    name: str, label: str, names: list[str], shares: list[list[float | None]], parts: list[tuple[str, str]]
) -> list[Figure]:
    """Draw shares that add up to one, a bar per learner; each part has a name and a colour."""
    traces = [
        {
            "type": "bar",
            "orientation": "h",
            "name": plotly_text(part),
            "y": list(range(len(names))),
            "x": [share[place] for share in shares],
            "text": look.hover_names(names),
            "textposition": "none",
            "marker": {"color": fill, "line": {"width": 0}},
            "hovertemplate": f"<b>%{{text}}</b><br>{plotly_text(part)}: %{{x:.0%}}<extra></extra>",
            "showlegend": place < look.MOST_LEGEND,
        }
        for place, (part, fill) in enumerate(parts)
    ]
    layout = {
        "barmode": "stack",
        "bargap": 0.25,
        "xaxis": axis(side="top", tickformat=".0%", range=[0, 1]),
        "yaxis": look.name_axis(names),
        "height": 110 + ROW_HEIGHT * len(names),
        "margin": {"l": 8, "r": 24, "t": 8, "b": 8},
        **look.legend_below(-0.02, traceorder="normal"),
    }
    return [look.figure(name, label, traces, layout)]


def membership_figures(data: dict[str, Any]) -> list[Figure]:
    """Draw how often each learner falls into each coterie."""
    width = len(data["membership"][0]) if data["membership"] else 0
    parts = [(f"coterie {cluster}", look.colour(cluster)) for cluster in range(width)]
    label = "How often each learner falls into each coterie when its rows are drawn again"
    return _stacked("membership", label, data["learners"], data["membership"], parts)


def weights_figures(data: dict[str, Any]) -> list[Figure]:
    """Draw what each learner's predictions are made of."""
    count = len(data["names"])
    parts = [(name, look.grey(place, count)) for place, name in enumerate(data["names"])]
    label = "Weights of the learner itself, of its coteries and of all learners in its predictions"
    return _stacked("weights", label, data["learners"], data["shares"], parts)


def site_figures(data: dict[str, Any]) -> list[Figure]:
    """Draw what one site takes from whom."""
    sources = data["sources"]
    if sources is None:
        return []
    names = sources["learners"]
    bars = {
        "type": "bar",
        "orientation": "h",
        "y": list(range(len(names))),
        "x": sources["weights"],
        "text": look.hover_names(names),
        "textposition": "none",
        "marker": {"color": [look.colour(cluster) for cluster in sources["clusters"]]},
        "hovertemplate": "<b>%{text}</b><br>%{x:.1%} of the prediction<extra></extra>",
    }
    layout = {
        "xaxis": axis(side="top", tickformat=".0%", rangemode="tozero", title="weight of the site's model"),
        "yaxis": look.name_axis(names),
        "height": 90 + ROW_HEIGHT * len(names),
    }
    return [look.figure("site", "Weights of sites' models in the predictions", [bars], layout)]
