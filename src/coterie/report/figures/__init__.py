"""From the dict to plotly figures, as plotly.js takes them: dicts of ``data`` and ``layout``.

A colour that begins with @ is a name that the page looks up in its light or dark theme, so that a picture
follows the page. Texts from the data are escaped: plotly.js reads a little HTML in them.
"""

from __future__ import annotations

from typing import Any

from coterie.report.figures.look import Figure
from coterie.report.figures.losses import losses_figures
from coterie.report.figures.rows import gains_figures, membership_figures, site_figures, weights_figures
from coterie.report.figures.small import curves_figures, differences_figures, map_figures

__all__ = ["Figure", "draw"]

DRAWN = {
    "site": site_figures,
    "losses": losses_figures,
    "map": map_figures,
    "why": curves_figures,
    "gains": gains_figures,
    "membership": membership_figures,
    "differences": differences_figures,
    "weights": weights_figures,
}


def draw(summary: dict[str, Any]) -> dict[str, list[Figure]]:
    """Draw all sections that have something to draw: figures by the id of their section."""
    return {
        section["id"]: DRAWN[section["id"]](section["data"])
        for section in summary["sections"]
        if section["data"] is not None and section["id"] in DRAWN
    }
