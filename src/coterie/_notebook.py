"""What a notebook shows of a fitted model above scikit-learn's diagram: the answer in a few lines."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from coterie._text import counted, percent

# Sizes of the coteries that are listed.
MOST_SIZES = 12

# No colours of its own: the lines stand on a notebook's light or dark ground alike.
_BOX = "border-left:4px solid #0072B2;padding:.2em .9em;margin:.3em 0 .7em;line-height:1.5"


def _coteries(summary: Mapping[str, Any]) -> str:
    sizes = [coterie["n_learners"] for coterie in summary["coteries"]]
    shown = ", ".join(map(str, sizes[:MOST_SIZES])) + (", ..." if len(sizes) > MOST_SIZES else "")
    members = "member" if sizes == [1] else "members"
    learners, coteries = counted(summary["n_learners"], "learner"), counted(len(sizes), "coterie")
    return f"{learners} in {coteries} of {shown} {members}"


def summary_html(summary: Mapping[str, Any]) -> str:
    """Return the answer of a fitted model (see `coterie.summary`) as an element that needs no style sheet."""
    rule, pays = summary["rule"], summary["pays"]
    how = "as requested" if rule == "given" else f"by the rule {rule}"
    lines = [f"<strong>{escape(_coteries(summary))}</strong>, {escape(how)}"]
    if pays["n_measured"]:
        lines.append(
            f"the coterie predicts {pays['n_better']} of {pays['n_measured']} better than they do alone "
            f"(typical saving {escape(percent(pays['median_gain']))} of the error)"
        )
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in pays["verdicts"].items() if count)
    lines.append(escape(verdicts))
    lines.append("<code>coterie.Report(model)</code> shows why")
    return f'<div style="{_BOX}">{"<br>".join(lines)}</div>'
