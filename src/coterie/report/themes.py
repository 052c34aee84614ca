"""The colours of the page, in light and in dark: those of the displays, and a few of its own."""

from __future__ import annotations

from coterie.displays._look import FAINT, INK, MARKERS, NEAR, PALETTE

# The palette again, lighter, for a dark page.
DARK_PALETTE = ("#4EA3DC", "#F0834A", "#2FC49A", "#E3A0C8", "#F2B84B", "#A5DBF8", "#D0749E", "#9C8CE4")
# Colours mean coteries; sources of a prediction are greys, from alone, which stands out, to all.
GREYS = ("#262626", "#454545", "#646464", "#838383", "#A2A2A2", "#C1C1C1", "#E0E0E0")
DARK_GREYS = ("#F2F2F2", "#D2D2D3", "#B2B3B5", "#929397", "#727479", "#53555B", "#33363D")


def _theme(palette: tuple[str, ...], greys: tuple[str, ...]) -> dict[str, str]:
    """Return the colours of coteries (c0, ...) and sources (g0, ...) by their names in the style sheet."""
    colours_of = {"c": palette, "g": greys}
    return {
        f"{letter}{index}": value
        for letter, colours in colours_of.items()
        for index, value in enumerate(colours)
    }


THEMES = {
    "light": {
        "ink": INK,
        "quiet": "#626262",
        "faint": FAINT,
        "paper": "#FFFFFF",
        "card": "#F7F7F5",
        "near": NEAR,
        "gain": "#0B6B45",
        "lose": "#B3261E",
        **_theme(PALETTE, GREYS),
    },
    "dark": {
        "ink": "#E8E8E6",
        "quiet": "#A9ACB2",
        "faint": "#3A3F48",
        "paper": "#16181D",
        "card": "#1F2229",
        "near": NEAR,
        "gain": "#5FD3A4",
        "lose": "#FF8A80",
        **_theme(DARK_PALETTE, DARK_GREYS),
    },
}


def colour(cluster: int) -> str:
    """Return the colour of a coterie as the page's style knows it; who has none is grey."""
    return "var(--quiet)" if cluster < 0 else f"var(--c{cluster % len(PALETTE)})"


def marker(cluster: int) -> str:
    """Return the shape of a coterie's points, by matplotlib's letter."""
    return MARKERS[max(cluster, 0) // len(PALETTE) % len(MARKERS)]


def grey(place: int, count: int) -> str:
    """Return the grey of source ``place`` of ``count``, from the one that stands out to the faintest."""
    return f"var(--g{round(place * (len(GREYS) - 1) / max(count - 1, 1))})"
