"""From the dict to one page that needs nothing but itself, with its rows of bars, one per learner.

Everything from the data passes through jinja2's autoescape or through JSON made safe for a script element. A
content security policy names our own scripts by their hashes: no other script runs, and nothing is fetched.
"""

from __future__ import annotations

import base64
import hashlib
import json
from importlib.resources import files
from typing import Any

from coterie._text import counted, number, percent, whole_percents
from coterie.report.charts import charts_of
from coterie.report.subject import full_name, full_names
from coterie.report.themes import THEMES, colour, grey

# More coteries than this are told apart by what stands beside the pointer.
MOST_IN_LEGEND = 12
# Parts of a bar that nobody can see are not in the legend.
VISIBLE = 0.005
NEEDS_EXTRA = "A report page needs jinja2: install coterie's extra 'report'."

Bars = dict[str, Any]


def _bars(learners: list[str], shares: list[list[float | None]], parts: list[tuple[str, str]]) -> Bars:
    """Return a stacked bar for each learner, as the page's template takes them, with a legend.

    ``shares`` has R shares for each learner (None counts as 0), ``parts`` the name and colour of each of the
    R. A text names a bar's two largest parts, for whoever cannot see it. With many parts (`MOST_IN_LEGEND`)
    the legend is empty.
    """
    rows = []
    for learner, row in zip(learners, shares, strict=True):
        percents = whole_percents(row)
        visible_parts: list[dict[str, Any]] = [
            {
                "width": round(100 * (share or 0.0), 2),
                "colour": part_colour,
                "said": f"{name}: {percent_of_part}%",
            }
            for share, (name, part_colour), percent_of_part in zip(row, parts, percents, strict=True)
            if share
        ]
        largest_parts = [part["said"] for part in sorted(visible_parts, key=lambda part: -part["width"])[:2]]
        rows.append({"name": learner, "parts": visible_parts, "said": ", ".join(largest_parts)})
    legend = [
        {"name": name, "colour": part_colour}
        for index, (name, part_colour) in enumerate(parts)
        if any((row[index] or 0.0) >= VISIBLE for row in shares)
    ]
    return {"legend": legend if len(parts) <= MOST_IN_LEGEND else [], "rows": rows}


def _several(predictor: str, data: Bars, predictor_index: int) -> Bars:
    """Return a predictor's row of bars: its share of the importance in each coterie, one below the other.

    ``predictor_index`` is the predictor's position, ``data`` what `importance_picture` returned. Widths are
    relative to the largest share of all predictors.
    """
    shares = [row[predictor_index] or 0.0 for row in data["shares"]]
    largest_share = max([share or 0.0 for row in data["shares"] for share in row]) or 1.0
    parts = [
        {"width": round(100 * share / largest_share, 2), "colour": colour(cluster), "said": f"{share:.0%}"}
        for cluster, share in zip(data["clusters"], shares, strict=True)
    ]
    shares_text = ", ".join(
        f"{cluster}: {share:.0%}" for cluster, share in zip(data["clusters"], shares, strict=True)
    )
    return {"name": predictor, "parts": parts, "said": shares_text, "stacked": True}


def bars_of(section: dict[str, Any]) -> Bars | None:
    """Return the bars of a section (membership, weights, importance, a site's sources), or None.

    Widths are percentages; the template draws them without a library. ``section`` has an ``id`` and the
    ``data`` of its picture.
    """
    data = section["data"]
    if data is None:
        return None
    match section["id"]:
        case "membership" if data["learners"]:
            count = len(data["membership"][0])
            parts = [(f"coterie {cluster}", colour(cluster)) for cluster in range(count)]
            return _bars(data["learners"], data["membership"], parts)
        # Where all learners take the same, a sentence says so.
        case "weights" if not data["alike"]:
            names = data["names"]
            parts = [(name, grey(index, len(names))) for index, name in enumerate(names)]
            return _bars(data["learners"], data["shares"], parts)
        case "importance":
            return {
                "legend": [
                    {"name": f"coterie {cluster}", "colour": colour(cluster)} for cluster in data["clusters"]
                ],
                "rows": [_several(name, data, index) for index, name in enumerate(data["predictors"])],
            }
        case "site" if data["sources"] is not None:
            sources = data["sources"]
            largest_weight = max(sources["weights"])
            rows = [
                {
                    "name": name,
                    "parts": [
                        {"width": round(100 * weight / largest_weight, 2), "colour": grey(1, 7), "said": ""}
                    ],
                    "said": percent(weight),
                }
                for name, weight in zip(sources["learners"], sources["weights"], strict=True)
            ]
            return {"legend": [], "rows": rows}
    return None


def _parts() -> tuple[Any, Any, Any]:
    """Import jinja2 and markupsafe, which the page needs, or say which extra has them."""
    try:
        import jinja2
        from jinja2.utils import htmlsafe_json_dumps
        from markupsafe import Markup
    except ImportError as error:
        raise ImportError(NEEDS_EXTRA) from error
    return jinja2, htmlsafe_json_dumps, Markup


def _asset(name: str) -> str:
    """Return the text of a file among the package's templates."""
    return (files("coterie.report") / "templates" / name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    """Return a script's SHA-256 as the content security policy wants it, which lets this script run."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def policy(scripts: list[str]) -> str:
    """Return the content security policy of a page: only these scripts run, and nothing is fetched.

    Names in the data come from anybody's table. Should one get past the escaping, the browser still does
    not run it.
    """
    rules = {
        "default-src": "'none'",
        "script-src": " ".join(_hash(script) for script in scripts),
        "style-src": "'unsafe-inline'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{rule} {value}" for rule, value in rules.items())


def _store(summary: dict[str, Any]) -> dict[str, Any]:
    """Return the data that the page's script reads: cards, members of coteries, and the heat map's cells.

    ``greys`` are the colours of the sources of a prediction; ``heat`` is None where there are no losses.
    """
    losses = next((part["data"] for part in summary["sections"] if part["id"] == "losses"), None)
    unit = {"noise": " times its noise"}
    return {
        "cards": {name: part for name, part in summary["cards"].items() if name not in ("shown", "ticks")},
        "members": [full_names(coterie["learners"]) for coterie in summary["coteries"]],
        "greys": [
            grey(index, len(summary["cards"]["takes"])) for index in range(len(summary["cards"]["takes"]))
        ],
        "heat": losses
        and {
            "learners": losses["learners"],
            "cells": losses["cells"],
            "unit": unit.get(losses["unit"], ""),
        },
    }


def page(summary: dict[str, Any]) -> str:
    """Return the page of a report's summary: one HTML document with its style, script and data inside.

    What comes from the data is escaped by jinja2's autoescape; ``unescaped`` marks our own files, which are
    inserted as they are.
    """
    jinja2, safe_json, unescaped = _parts()
    script = _asset("report.js")
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"number": number, "percent": percent, "name": full_name, "counted": counted}
    environment.filters["ours"] = unescaped
    environment.globals["colour"] = colour
    coteries, sections = summary["coteries"], {part["id"]: part for part in summary["sections"]}
    singles = [part["learners"][0] for part in coteries if len(part["learners"]) == 1 < summary["n_clusters"]]
    # NaN is not JSON: a number that slipped through must fail here, not in the reader's browser.
    dumped = safe_json(
        _store(summary), dumps=lambda value, **_: json.dumps(value, allow_nan=False, separators=(",", ":"))
    )
    rendered: str = environment.from_string(_asset("report.html.jinja")).render(
        summary=summary,
        drawn={name: {"charts": charts_of(part), "bars": bars_of(part)} for name, part in sections.items()},
        picture=sections.get("gains"),
        # Sections that stand open, above the evidence.
        above=("gains", "site", "against"),
        singles=singles,
        themes=THEMES,
        policy=policy([script]),
        style=unescaped(_asset("report.css")),
        script=unescaped(script),
        store=dumped,
    )
    return rendered
