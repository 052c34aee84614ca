"""From the dict to plotly figures, as plotly.js takes them: dicts of ``data`` and ``layout``.

A colour that begins with @ is a name that the page looks up in its light or dark theme, so that a picture
follows the page. Texts from the data are escaped: plotly.js reads a little HTML in them.
"""

from __future__ import annotations

import math
from html import escape
from typing import Any

from coterie.displays._look import MARKERS, PALETTE, WIDE, shown_name
from coterie.report.words import number, percent

# The palette again, lighter, for a dark page.
DARK_PALETTE = ("#4EA3DC", "#F0834A", "#2FC49A", "#E3A0C8", "#F2B84B", "#A5DBF8", "#D0749E", "#9C8CE4")
THEMES = {
    "light": {
        "ink": "#222222",
        "quiet": "#767676",
        "faint": "#E3E3E3",
        "paper": "#FFFFFF",
        **{f"c{place}": colour for place, colour in enumerate(PALETTE)},
    },
    "dark": {
        "ink": "#E8E8E6",
        "quiet": "#9A9DA3",
        "faint": "#343840",
        "paper": "#1B1E24",
        **{f"c{place}": colour for place, colour in enumerate(DARK_PALETTE)},
    },
}
SYMBOLS = dict(
    zip(
        ("o", "s", "^", "D", "v", "P", "X"),
        ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "x"),
        strict=True,
    )
)
FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'
# Names along an axis are legible up to so many.
MOST_NAMES = 40
MOST_LEGEND = 24
ROW_HEIGHT = 19
SHARE_TICKS = (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 1000, 10_000)

Figure = dict[str, Any]


def plotly_text(text: str) -> str:
    """Return a text that plotly.js shows as it is."""
    return escape(text, quote=False)


def _short(names: list[str]) -> list[str]:
    return [plotly_text(shown_name(name)) for name in names]


def colour(cluster: int) -> str:
    """Return the name of a cluster's colour in the themes."""
    return f"@c{cluster % len(PALETTE)}"


def symbol(cluster: int) -> str:
    """Return the shape of a cluster's points."""
    return SYMBOLS[MARKERS[cluster // len(PALETTE) % len(MARKERS)]]


def _axis(**changes: Any) -> dict[str, Any]:
    look = {
        "gridcolor": "@faint",
        "linecolor": "@quiet",
        "zeroline": False,
        "automargin": True,
        "tickfont": {"color": "@quiet"},
        "title": {"font": {"color": "@quiet"}},
        "fixedrange": False,
    }
    title = changes.pop("title", None)
    if title is not None:
        look["title"] = {"text": title, "font": {"color": "@quiet", "size": 12}, "standoff": 8}
    return {**look, **changes}


def _figure(name: str, label: str, data: list[Any], layout: dict[str, Any], *, square: bool = False) -> Figure:
    common = {
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": FONT, "size": 12, "color": "@ink"},
        "hoverlabel": {
            "bgcolor": "@paper",
            "bordercolor": "@quiet",
            "font": {"family": FONT, "color": "@ink", "size": 13},
            "align": "left",
        },
        "margin": {"l": 8, "r": 8, "t": 8, "b": 8},
        "showlegend": False,
        "autosize": True,
    }
    return {
        "name": name,
        "label": label,
        "square": square,
        "data": data,
        "layout": {**common, **layout},
    }


def _log_ticks(low: float, high: float) -> dict[str, Any]:
    """Return ticks at plain numbers for a scale in powers of ten."""
    steps = (1,) if high - low > 3 else (1, 2, 5) if high - low > 0.7 else (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)
    decades = range(math.floor(low), math.ceil(high) + 1)
    ticks = [step * 10.0**decade for decade in decades for step in steps]
    ticks = [tick for tick in ticks if low <= math.log10(tick) <= high]
    return {"tickvals": [math.log10(tick) for tick in ticks], "ticktext": [f"{tick:g}" for tick in ticks]}


def losses_figure(data: dict[str, Any]) -> list[Figure]:
    """Draw everybody's model on everybody's rows."""
    n, clusters = len(data["learners"]), data["clusters"]
    places = list(range(n))
    # Hover shows a tick's text, also where the axis has no room for it.
    names = _short(data["learners"])
    long = [plotly_text(shown_name(name, 60)) for name in data["learners"]] if data["binned"] else names
    ticks = {"tickmode": "array", "tickvals": places, "ticktext": long, "showgrid": False}
    ticks |= {"showticklabels": n <= MOST_NAMES, "ticks": "", "range": [-0.5, n - 0.5]}
    known = [cell for row in data["cells"] for cell in row if cell is not None]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    units = {"similarity": "similarity", "noise": "error / noise", "loss": "mean squared error"}
    bar: dict[str, Any] = {"title": {"text": units[data["unit"]], "side": "right"}, "thickness": 12, "outlinewidth": 0}
    bar |= {"tickfont": {"color": "@quiet"}, "len": 0.9}
    if data["logarithmic"]:
        bar |= _log_ticks(low, high)
        unit = " times its noise" if data["unit"] == "noise" else ""
        hover = f"model of <b>%{{y}}</b><br>on the rows of <b>%{{x}}</b><br>error %{{customdata:.3~g}}{unit}<extra></extra>"
    else:
        hover = "<b>%{y}</b><br><b>%{x}</b><br>similarity %{z:.2f}<extra></extra>"
    trace = {
        "type": "heatmap",
        "x": places,
        "y": places,
        "z": data["cells"],
        "zmin": low,
        "zmax": high if high > low else low + 1,
        "colorscale": "Cividis",
        "colorbar": bar,
        "hovertemplate": hover,
        "meta": {"exponentiate": data["logarithmic"]},
    }
    starts = [p for p in places if p == 0 or clusters[p] != clusters[p - 1]]
    ends = [*starts[1:], n]
    shapes: list[dict[str, Any]] = []
    notes: list[dict[str, Any]] = []
    for start, end in zip(starts, ends, strict=True):
        fill = {"type": "rect", "fillcolor": colour(clusters[start]), "line": {"width": 0}}
        span = {"x0": start - 0.5, "x1": end - 0.5}
        shapes.append({**fill, **span, "xref": "x", "yref": "paper", "y0": 1.008, "y1": 1.028})
        if start:
            line = {"type": "line", "line": {"color": "@paper", "width": 1.5}}
            shapes.append({**line, "x0": start - 0.5, "x1": start - 0.5, "yref": "paper", "y0": 0, "y1": 1})
            shapes.append({**line, "y0": start - 0.5, "y1": start - 0.5, "xref": "paper", "x0": 0, "x1": 1})
        if (end - start) / n >= 0.035:
            text = f"coterie {clusters[start]}" if (end - start) / n >= 0.2 else str(clusters[start])
            notes.append(
                {"x": (start + end - 1) / 2, "y": 1.03, "yref": "paper", "yanchor": "bottom", "text": text}
                | {"showarrow": False, "font": {"color": "@ink"}}
            )
    layout = {
        "xaxis": _axis(title="on the rows of", tickangle=-90, **ticks),
        "yaxis": _axis(title="model of", **ticks | {"range": [n - 0.5, -0.5]}),
        "shapes": shapes,
        "annotations": notes,
        "margin": {"l": 8, "r": 8, "t": 34, "b": 8},
    }
    return [_figure("losses", "Heat map of losses, learners ordered by coterie", [trace], layout, square=True)]


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
    heads = {"embedding": "where they were clustered", "distances": "by the distance of their models"}
    for name, head in heads.items():
        layout = {
            "xaxis": _axis(**bare),
            "yaxis": _axis(**bare, scaleanchor="x"),
            "title": {"text": head, "font": {"size": 13}, "x": 0, "xref": "paper", "y": 0.98},
            "margin": {"l": 8, "r": 8, "t": 34, "b": 8},
            "height": 400,
            "showlegend": True,
            "legend": {"orientation": "h", "yanchor": "top", "y": -0.03, "x": 0, "font": {"size": 11}},
            "hovermode": "closest",
        }
        label = f"Map of the learners, {head}"
        figures.append(_figure(f"map-{name}", label, _points(data, data[name], True), layout))
    return figures


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
            "xaxis": _axis(title="number of coteries", dtick=1 if len(counts) <= 12 else 2, showgrid=False),
            "yaxis": _axis(nticks=5, **({"type": "log", "dtick": 1} if wide else {})),
            "title": {"text": head, "font": {"size": 13}, "x": 0, "xref": "paper", "y": 0.97},
            "margin": {"l": 8, "r": 8, "t": 34, "b": 8},
            "height": 230,
            "hovermode": "closest",
        }
        label = f"Curve of the rule {curve['rule']}, whose answer is {curve['chosen']}"
        figures.append(
            {**_figure(f"why-{curve['rule']}", label, [line, chosen], layout), "caption": curve["criterion"]}
        )
    return figures


def _name_axis(names: list[str]) -> dict[str, Any]:
    n = len(names)
    return _axis(
        tickmode="array",
        tickvals=list(range(n)),
        ticktext=_short(names),
        range=[n - 0.4, -0.6],
        showgrid=False,
        ticks="",
        tickfont={"color": "@ink", "size": 11},
    )


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
        f"<b>{plotly_text(shown_name(name, 60))}</b><br>alone {number(errors['alone'][p])}<br>"
        f"with coterie {data['clusters'][p]}: {number(errors['coterie'][p])}<br>"
        f"with all {number(errors['all'][p])}<br>saved {percent(1 - (data['coterie'][p] or 0), sign=True)}"
        for p, name in enumerate(data["learners"])
    ]
    spread = {"visible": False}
    if data["spread"] is not None:
        spread = {"type": "data", "array": data["spread"], "color": "@quiet", "thickness": 1, "width": 0}
    shared = {"type": "scatter", "text": texts, "hovertemplate": "%{text}<extra></extra>", "y": rows}
    traces: list[dict[str, Any]] = [
        {**links, "type": "scatter", "mode": "lines", "hoverinfo": "skip", "line": {"color": "@quiet", "width": 1.5}},
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
    axis: dict[str, Any] = {"side": "top", "tickformat": ".0%", "title": "error as a share of the error alone"}
    if wide:
        ticks = [tick for tick in SHARE_TICKS if min(shares) / 1.5 <= tick <= max(*shares, 1.0) * 1.5]
        axis |= {"type": "log", "tickmode": "array", "tickvals": ticks, "ticktext": [f"{t:.0%}" for t in ticks]}
    gap = []
    if data["left_out"]:
        middle = n - n // 2 - 0.5
        line = {"color": "@quiet", "width": 1, "dash": "dot"}
        gap = [{"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": middle, "y1": middle, "line": line}]
    layout = {
        "xaxis": _axis(**axis),
        "yaxis": _name_axis(data["learners"]),
        "shapes": [
            {"type": "line", "x0": 1, "x1": 1, "yref": "paper", "y0": 0, "y1": 1, "line": {"color": "@ink", "width": 1.5}},
            *gap,
        ],
        "height": 90 + ROW_HEIGHT * n,
        "hovermode": "closest",
    }
    return [_figure("gains", "Error with the coterie and with all as a share of the error alone", traces, layout)]


def _stacked(
    name: str, label: str, names: list[str], shares: list[list[float | None]], parts: list[tuple[str, str]]
) -> list[Figure]:
    rows = list(range(len(names)))
    full = [plotly_text(shown_name(learner, 60)) for learner in names]
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
        "xaxis": _axis(side="top", tickformat=".0%", range=[0, 1]),
        "yaxis": _name_axis(names),
        "height": 110 + ROW_HEIGHT * len(names),
        "showlegend": True,
        "legend": {"orientation": "h", "yanchor": "top", "y": -0.02, "x": 0, "traceorder": "normal"},
        "hovermode": "closest",
    }
    return [_figure(name, label, traces, layout)]


def membership_figures(data: dict[str, Any]) -> list[Figure]:
    """Draw how often each learner falls into each coterie."""
    width = len(data["membership"][0]) if data["membership"] else 0
    parts = [(f"coterie {cluster}", colour(cluster)) for cluster in range(width)]
    label = "How often each learner falls into each coterie when its rows are drawn again"
    return _stacked("membership", label, data["learners"], data["membership"], parts)


def weights_figures(data: dict[str, Any]) -> list[Figure]:
    """Draw what each learner's predictions are made of."""
    parts = [(name, colour(place)) for place, name in enumerate(data["names"])]
    label = "Weights of the learner itself, of its coteries and of all learners in its predictions"
    return _stacked("weights", label, data["learners"], data["shares"], parts)


DRAWN = {
    "losses": losses_figure,
    "map": map_figures,
    "why": curves_figures,
    "gains": gains_figures,
    "membership": membership_figures,
    "weights": weights_figures,
}


def draw(summary: dict[str, Any]) -> dict[str, list[Figure]]:
    """Draw all sections that have something to draw.

    Parameters
    ----------
    summary : dict
        What `summarize` returned.

    Returns
    -------
    dict of str to list of dict
        Figures by the id of their section.
    """
    return {
        section["id"]: DRAWN[section["id"]](section["data"])
        for section in summary["sections"]
        if section["data"] is not None and section["id"] in DRAWN
    }
