"""What a notebook shows of a fitted model above scikit-learn's diagram: the answer in a few lines."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

# No colours of its own: the lines stand on a notebook's light or dark ground alike.
_BOX = "border-left:4px solid #0072B2;padding:.2em .9em;margin:.3em 0 .7em;line-height:1.5"


def summary_html(summary: Mapping[str, Any]) -> str:
    """Return the answer of a fitted model (see `coterie.summary`) as an element that needs no style sheet."""
    first, *others = (escape(sentence) for sentence in summary["answer"])
    lines = [f"<strong>{first}</strong>", *others, "<code>coterie.Report(model)</code> shows why"]
    return f'<div style="{_BOX}">{"<br>".join(lines)}</div>'
