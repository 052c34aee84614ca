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

from coterie.report.figures import Figure, draw
from coterie.report.figures.look import THEMES, colour
from coterie.report.words import number, percent

NEEDS_EXTRA = 'A report page needs plotly and jinja2: pip install "coterie[report]".'

# Columns of the table of learners: key, heading, kind, and the key of the standard error beside it.
COLUMNS = (
    ("learner", "Learner", "text", None),
    ("cluster", "Coterie", "cluster", None),
    ("verdict", "Verdict", "verdict", None),
    ("gain", "Saved", "percent", "gain_se"),
    ("error_alone", "Error alone", "number", "error_alone_se"),
    ("error_with", "With coterie", "number", "error_with_se"),
    ("error_all", "With all", "number", "error_all_se"),
    ("membership", "Sure", "percent", None),
    ("second_cluster", "Next", "cluster", None),
    ("model", "Model", "text", None),
    ("n_rows", "Rows", "count", None),
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
    """Return the content security policy of a page with these scripts.

    Parameters
    ----------
    scripts : list of str
        The scripts that may run, letter by letter.

    Returns
    -------
    str
        Nothing else may run, and nothing may be fetched.
    """
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
        return {"text": str(value) if known else "\N{EN DASH}", "sort": value if known else None, "note": ""}
    if kind in ("text", "verdict"):
        return {"text": value, "sort": value, "note": ""}
    if kind == "count":
        return {"text": f"{value:,}", "sort": value, "note": ""}
    say = percent if kind == "percent" else number
    note = "" if spread is None else f"\N{PLUS-MINUS SIGN}{say(spread)}"
    return {"text": say(value), "sort": value, "note": note}


def table_of(columns: dict[str, list[Any]]) -> dict[str, Any]:
    """Return the table of learners as it is shown.

    Parameters
    ----------
    columns : dict of str to list
        The columns that there are.

    Returns
    -------
    dict
        ``heads`` and ``rows`` of cells.
    """
    shown = [column for column in COLUMNS if column[0] in columns]
    nothing = [None] * len(columns["learner"])
    cells = []
    for key, _, kind, spread in shown:
        spreads = columns.get(spread, nothing) if spread else nothing
        cells.append(
            [_cell(kind, value, beside) for value, beside in zip(columns[key], spreads, strict=True)]
        )
    heads = [{"key": key, "heading": heading, "kind": kind} for key, heading, kind, _ in shown]
    return {"heads": heads, "rows": [list(row) for row in zip(*cells, strict=True)]}


def _with_reasons(table: dict[str, Any], columns: dict[str, list[Any]]) -> dict[str, Any]:
    """Put the reason of a verdict beside it."""
    keys = [head["key"] for head in table["heads"]]
    if "verdict" in keys and "reason" in columns:
        place = keys.index("verdict")
        for row, reason in zip(table["rows"], columns["reason"], strict=True):
            row[place]["note"] = reason
    return table


def page(summary: dict[str, Any]) -> str:
    """Return the page.

    Parameters
    ----------
    summary : dict
        What `summarize` returned.

    Returns
    -------
    str
        HTML with its style, its scripts and its data inside.
    """
    jinja2, safe_json, ours, plotly = _parts()
    figures: dict[str, list[Figure]] = draw(summary)
    drawn = [figure for section in figures.values() for figure in section]
    script = _asset("report.js")
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["number"], environment.filters["percent"] = number, percent
    environment.globals["colour"] = lambda cluster: colour(cluster)[1:]
    store = {"themes": THEMES, "figures": drawn}
    # NaN is not JSON: a number that slipped through must fail here, not in the reader's browser.
    dumped = safe_json(
        store, dumps=lambda value, **_: json.dumps(value, allow_nan=False, separators=(",", ":"))
    )
    rendered: str = environment.from_string(_asset("report.html.jinja")).render(
        summary=summary,
        figures=figures,
        table=_with_reasons(table_of(summary["table"]), summary["table"]),
        themes=THEMES,
        policy=policy([plotly, script]),
        style=ours(_asset("report.css")),
        plotly=ours(plotly),
        script=ours(script),
        store=dumped,
    )
    return rendered
