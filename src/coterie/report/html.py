"""From the dict and its figures to one page that needs nothing but itself.

Everything from the data passes through jinja2's autoescape or through JSON made safe for a script element. A
content security policy names our own scripts by their hashes: no other script runs, and nothing is fetched.
"""

from __future__ import annotations

import base64
import hashlib
import json
from importlib.resources import files
from typing import Any

from coterie._text import NOTHING, number, percent
from coterie.report.figures import draw
from coterie.report.figures.look import THEMES, colour
from coterie.report.subject import full_name

NEEDS_EXTRA = 'A report page needs plotly and jinja2: pip install "coterie[report]".'

# Columns of the table of learners: key, heading, kind, and the key of what stands beside it in small print.
COLUMNS = (
    ("learner", "Learner", "text", ""),
    ("cluster", "Coterie", "cluster", ""),
    ("verdict", "Verdict", "verdict", "reason"),
    ("gain", "Expected gain", "percent", "gain_se"),
    ("error_alone", "Error alone", "number", "error_alone_se"),
    ("error_with", "With others", "number", "error_with_se"),
    ("error_all", "With all", "number", "error_all_se"),
    ("membership", "Sure", "percent", ""),
    ("second_cluster", "Next", "cluster", ""),
    ("model", "Model", "text", ""),
    ("n_rows", "Rows", "count", ""),
)


def _parts() -> tuple[Any, Any, Any, str]:
    """Import what a page is made with, or say how to install it."""
    try:
        import jinja2
        from jinja2.utils import htmlsafe_json_dumps
        from markupsafe import Markup
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise ImportError(NEEDS_EXTRA) from error
    return jinja2, htmlsafe_json_dumps, Markup, get_plotlyjs()


def _asset(name: str) -> str:
    return (files("coterie.report") / "templates" / name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def policy(scripts: list[str]) -> str:
    """Return the content security policy of a page with these scripts: no other runs, nothing is fetched."""
    rules = {
        "default-src": "'none'",
        "script-src": " ".join(_hash(script) for script in scripts),
        # plotly.js writes style elements; pictures are saved through data and blob addresses.
        "style-src": "'unsafe-inline'",
        "img-src": "data: blob:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{rule} {value}" for rule, value in rules.items())


def _cell(kind: str, value: Any, spread: Any) -> dict[str, Any]:
    """Return a cell: what is shown, the small print beside it, and what it is sorted by."""
    if kind == "cluster":
        known = value is not None and value >= 0
        return {"text": str(value) if known else NOTHING, "sort": value if known else None, "note": ""}
    if kind in ("text", "verdict"):
        text = full_name(value)
        return {"text": text, "sort": text, "note": full_name(spread or "")}
    if kind == "count":
        return {"text": f"{value:,}", "sort": value, "note": ""}
    say = percent if kind == "percent" else number
    note = "" if spread is None else f"\N{PLUS-MINUS SIGN}{say(spread)}"
    return {"text": say(value), "sort": None if value is None else float(f"{value:.6g}"), "note": note}


def table_of(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the table of learners as it is shown: ``heads``, of the columns that there are, and ``rows``."""
    shown = [column for column in COLUMNS if column[0] in rows[0]]
    return {
        "heads": [{"key": key, "heading": heading, "kind": kind} for key, heading, kind, _ in shown],
        "rows": [[_cell(kind, row[key], row.get(beside)) for key, _, kind, beside in shown] for row in rows],
    }


def page(summary: dict[str, Any]) -> str:
    """Return the page of a report's summary: HTML with its style, its scripts and its data inside."""
    jinja2, safe_json, ours, plotly = _parts()
    figures = draw(summary)
    drawn = [figure for section in figures.values() for figure in section]
    script = _asset("report.js")
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"number": number, "percent": percent, "name": full_name}
    environment.globals["colour"] = lambda cluster: colour(cluster)[1:]
    store = {"themes": THEMES, "figures": drawn}
    # NaN is not JSON: a number that slipped through must fail here, not in the reader's browser.
    dumped = safe_json(
        store, dumps=lambda value, **_: json.dumps(value, allow_nan=False, separators=(",", ":"))
    )
    rendered: str = environment.from_string(_asset("report.html.jinja")).render(
        summary=summary,
        figures=figures,
        table=table_of(summary["gains"]),
        themes=THEMES,
        policy=policy([plotly, script]),
        style=ours(_asset("report.css")),
        plotly=ours(plotly),
        script=ours(script),
        store=dumped,
    )
    return rendered
