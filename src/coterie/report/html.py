"""From the dict to one page that needs nothing but itself.

Everything from the data passes through jinja2's autoescape or through JSON made safe for a script element. A
content security policy names our own scripts by their hashes: no other script runs, and nothing is fetched.
"""

from __future__ import annotations

import base64
import hashlib
import json
from importlib.resources import files
from typing import Any

from coterie._text import counted, number, percent
from coterie.report.bars import bars_of
from coterie.report.charts import charts_of
from coterie.report.subject import full_name, full_names
from coterie.report.themes import THEMES, colour, grey

NEEDS_EXTRA = "A report page needs jinja2: install coterie's extra 'report'."


def _parts() -> tuple[Any, Any, Any]:
    """Import what a page is made with, or say how to install it."""
    try:
        import jinja2
        from jinja2.utils import htmlsafe_json_dumps
        from markupsafe import Markup
    except ImportError as error:
        raise ImportError(NEEDS_EXTRA) from error
    return jinja2, htmlsafe_json_dumps, Markup


def _asset(name: str) -> str:
    return (files("coterie.report") / "templates" / name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    """Return a script's hash for the page's content security policy."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def policy(scripts: list[str]) -> str:
    """Return the content security policy of a page with these scripts: no other runs, nothing is fetched."""
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
    """Return what the page's script makes cards, the table and the text of cells from."""
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
    """Return the page of a report's summary: HTML with its style, its script and its data inside."""
    jinja2, safe_json, ours = _parts()
    script = _asset("report.js")
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"number": number, "percent": percent, "name": full_name, "counted": counted}
    environment.filters["ours"] = ours
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
        style=ours(_asset("report.css")),
        script=ours(script),
        store=dumped,
    )
    return rendered
