"""How all figures look: themes, axes, names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

from coterie._text import shown_name
from coterie.displays._look import FAINT, INK, MARKERS, PALETTE

# The palette again, lighter, for a dark page.
DARK_PALETTE = ("#4EA3DC", "#F0834A", "#2FC49A", "#E3A0C8", "#F2B84B", "#A5DBF8", "#D0749E", "#9C8CE4")
# From the smallest loss to the largest: coteries stand out from the page, the rest recedes into it.
SHADES = ("#08306B", "#1F66AD", "#66A6D2", "#BCD7EC", "#F1F5FA")
DARK_SHADES = ("#CFE8FA", "#74B7E6", "#3A7DB8", "#274B70", "#232A34")
# Colours mean clusters; resolutions are greys, from alone, which stands out, to all.
GREYS = ("#262626", "#454545", "#646464", "#838383", "#A2A2A2", "#C1C1C1", "#E0E0E0")
DARK_GREYS = ("#F2F2F2", "#D2D2D3", "#B2B3B5", "#929397", "#727479", "#53555B", "#33363D")


def _theme(palette: tuple[str, ...], shades: tuple[str, ...], greys: tuple[str, ...]) -> dict[str, str]:
    """Return the colours that figures ask for by a letter and a place."""
    lists = {"h": shades, "c": palette, "g": greys}
    return {f"{letter}{place}": found for letter, each in lists.items() for place, found in enumerate(each)}


THEMES = {
    "light": {
        "ink": INK,
        "quiet": "#767676",
        "faint": FAINT,
        "paper": "#FFFFFF",
        **_theme(PALETTE, SHADES, GREYS),
    },
    "dark": {
        "ink": "#E8E8E6",
        "quiet": "#9A9DA3",
        "faint": "#343840",
        "paper": "#1B1E24",
        **_theme(DARK_PALETTE, DARK_SHADES, DARK_GREYS),
    },
}
# The names that plotly has for matplotlib's markers.
SYMBOLS = {
    "o": "circle",
    "s": "square",
    "^": "triangle-up",
    "D": "diamond",
    "v": "triangle-down",
    "P": "cross",
    "X": "x",
}
FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'
# Names along an axis are legible up to so many.
MOST_NAMES = 40
MOST_LEGEND = 24
ROW_HEIGHT = 19

Figure = dict[str, Any]


def plotly_text(text: str) -> str:
    """Return a text that plotly.js shows as it is."""
    return escape(text, quote=False)


def short_names(names: list[str]) -> list[str]:
    """Return names for an axis."""
    return [plotly_text(shown_name(name)) for name in names]


def hover_names(names: list[str]) -> list[str]:
    """Return names for the text beside the pointer."""
    return [plotly_text(shown_name(name, 60)) for name in names]


def colour(cluster: int) -> str:
    """Return the name of a cluster's colour in the themes; who has no cluster has no colour."""
    if cluster < 0:
        return "@quiet"
    return f"@c{cluster % len(PALETTE)}"


def symbol(cluster: int) -> str:
    """Return the shape of a cluster's points."""
    return SYMBOLS[MARKERS[cluster // len(PALETTE) % len(MARKERS)]]


def grey(place: int, count: int) -> str:
    """Return the name of one of so many greys, from the one that stands out to the faintest."""
    return f"@g{round(place * (len(GREYS) - 1) / max(count - 1, 1))}"


def axis(**changes: Any) -> dict[str, Any]:
    """Return an axis in the common look."""
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


def decade_ticks(low: float, high: float, steps: Sequence[float]) -> list[float]:
    """Return the ticks of a log scale: the steps of every decade that lie between two numbers."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = (step * 10.0**decade for decade in decades for step in steps)
    return [tick for tick in ticks if low <= tick <= high]


def scatter(mode: str, x: list[Any], y: list[Any], hover: str) -> dict[str, Any]:
    """Return points or a line, and what stands beside the pointer."""
    return {"type": "scatter", "mode": mode, "x": x, "y": y, "hovertemplate": f"{hover}<extra></extra>"}


def error_bars(spread: list[float | None] | None, width: int) -> dict[str, Any]:
    """Return the bars around points; None: there are none."""
    if spread is None:
        return {"visible": False}
    return {"type": "data", "array": spread, "color": "@quiet", "thickness": 1, "width": width}


def rule(along: str, place: float, line: dict[str, Any]) -> dict[str, Any]:
    """Return a line across the whole picture, at a place of the axis x or y."""
    other = "y" if along == "x" else "x"
    ends = {f"{along}0": place, f"{along}1": place, f"{other}ref": "paper", f"{other}0": 0, f"{other}1": 1}
    return {"type": "line", "line": line, **ends}


def legend_below(up: float, **look: Any) -> dict[str, Any]:
    """Return a layout's legend below the picture."""
    return {"showlegend": True, "legend": {"orientation": "h", "yanchor": "top", "y": up, "x": 0, **look}}


def headed(text: str, height: int, up: float = 0.97) -> dict[str, Any]:
    """Return the layout of a small picture with a heading of its own."""
    return {
        "title": {"text": text, "font": {"size": 13}, "x": 0, "xref": "paper", "y": up},
        "margin": {"l": 8, "r": 8, "t": 34, "b": 8},
        "height": height,
    }


def figure(
    name: str, label: str, data: list[Any], layout: dict[str, Any], *, square: bool = False, caption: str = ""
) -> Figure:
    """Return a figure in the common look.

    ``name`` is its id on the page, ``label`` says what it is to whoever cannot see it, and ``caption`` is
    small print below it. A ``square`` one is as high as it is wide. ``data`` and ``layout`` are plotly's.
    """
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
        "hovermode": "closest",
    }
    about = {"name": name, "label": label, "square": square, "caption": caption}
    return {**about, "data": data, "layout": {**common, **layout}}


def name_axis(names: list[str]) -> dict[str, Any]:
    """Return an axis of learners, the first at the top."""
    n = len(names)
    return axis(
        tickmode="array",
        tickvals=list(range(n)),
        ticktext=short_names(names),
        range=[n - 0.4, -0.6],
        showgrid=False,
        ticks="",
        tickfont={"color": "@ink", "size": 11},
    )
