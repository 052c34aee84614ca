"""How all figures look: themes, axes, names."""

from __future__ import annotations

from html import escape
from typing import Any

from coterie.displays._look import MARKERS, PALETTE, shown_name

# The palette again, lighter, for a dark page.
DARK_PALETTE = ("#4EA3DC", "#F0834A", "#2FC49A", "#E3A0C8", "#F2B84B", "#A5DBF8", "#D0749E", "#9C8CE4")
# From the smallest loss to the largest: coteries stand out from the page, the rest recedes into it.
SHADES = ("#08306B", "#1F66AD", "#66A6D2", "#BCD7EC", "#F1F5FA")
DARK_SHADES = ("#CFE8FA", "#74B7E6", "#3A7DB8", "#274B70", "#232A34")
THEMES = {
    "light": {
        "ink": "#222222",
        "quiet": "#767676",
        "faint": "#E3E3E3",
        "paper": "#FFFFFF",
        **{f"h{place}": shade for place, shade in enumerate(SHADES)},
        **{f"c{place}": colour for place, colour in enumerate(PALETTE)},
    },
    "dark": {
        "ink": "#E8E8E6",
        "quiet": "#9A9DA3",
        "faint": "#343840",
        "paper": "#1B1E24",
        **{f"h{place}": shade for place, shade in enumerate(DARK_SHADES)},
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

Figure = dict[str, Any]


def plotly_text(text: str) -> str:
    """Return a text that plotly.js shows as it is."""
    return escape(text, quote=False)


def short_names(names: list[str]) -> list[str]:
    """Return names for an axis."""
    return [plotly_text(shown_name(name)) for name in names]


def colour(cluster: int) -> str:
    """Return the name of a cluster's colour in the themes; who has no cluster has no colour."""
    if cluster < 0:
        return "@quiet"
    return f"@c{cluster % len(PALETTE)}"


def symbol(cluster: int) -> str:
    """Return the shape of a cluster's points."""
    return SYMBOLS[MARKERS[cluster // len(PALETTE) % len(MARKERS)]]


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


def figure(
    name: str,
    label: str,
    data: list[Any],
    layout: dict[str, Any],
    *,
    square: bool = False,
    caption: str = "",
) -> Figure:
    """Return a figure in the common look.

    Parameters
    ----------
    name : str
        Its id on the page.
    label : str
        What it is, for whoever cannot see it.
    data : list of dict
        Traces.
    layout : dict
        What differs from the common layout.
    square : bool, default=False
        The page gives it as much height as width.
    caption : str, default=""
        Small print below it.

    Returns
    -------
    dict
        ``data`` and ``layout`` for plotly.js, beside the above.
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
    }
    return {
        "name": name,
        "label": label,
        "square": square,
        "caption": caption,
        "data": data,
        "layout": {**common, **layout},
    }


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
