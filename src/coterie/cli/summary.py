"""The answer in a few lines: how many coteries, who is in which, does it pay, who is out, why this K."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from coterie.cli.printing import cell, printable, shortened

# Learners of a coterie, and rows of a table, that are named before "and so many more".
_NAMED = 12
_WIDTH = 110
_LONGEST_NAME = 60


def named(learners: Sequence[Any], most: int = _NAMED) -> str:
    """Join names for a table's cell, the rest as a count."""
    rest = len(learners) - most
    names = ", ".join(shortened(str(name), _LONGEST_NAME) for name in learners[:most])
    return names + (f" and {rest} more" if rest > 0 else "")


def _number(value: Any) -> str:
    return "-" if value is None else f"{value:.4g}"


def _share(value: Any) -> str:
    return "-" if value is None else f"{value:+.0%}"


def _why(summary: Mapping[str, Any]) -> str:
    """Say why there are so many coteries."""
    rule, count = summary["rule"], summary["n_clusters"]
    others = {name: curve["chosen"] for name, curve in summary["rules"].items() if name != rule}
    beside = ", ".join(f"{name} {chosen}" for name, chosen in others.items())
    if rule == "given":
        return f"{count} were requested. By rule: {beside}."
    curve = summary["rules"][rule]
    values = dict(zip(curve["n_clusters"], curve["values"], strict=True))
    near = [k for k in sorted(values) if abs(k - curve["chosen"]) <= 2]
    shown = ", ".join(f"{k}: {_number(values[k])}" for k in near)
    return f"{rule}, {curve['criterion']}: {shown}. Other rules: {beside}."


def _console() -> Console:
    """Return a console that writes to stdout, as wide as the terminal, or as a file can take."""
    width = None if sys.stdout.isatty() else _WIDTH
    return Console(file=sys.stdout, width=width, highlight=False, markup=False)


def show_rows(names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    """Print a table: text to the left, numbers to the right and short."""
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in names:
        text = any(isinstance(row[name], str) for row in rows)
        grid.add_column(name, justify="left" if text else "right")
    for row in rows:
        cells = (row[name] for name in names)
        grid.add_row(*(_number(c) if isinstance(c, float) or c is None else cell(c) for c in cells))
    _console().print(grid)


def show_line(text: str, style: str | None = None) -> None:
    """Print a sentence."""
    console = _console()
    # A terminal breaks lines between words; in a file a sentence stays in one line.
    console.print(printable(text), style=style, soft_wrap=not console.is_terminal)


def _show_coteries(summary: Mapping[str, Any]) -> None:
    lines: list[dict[str, Any]] = []
    for coterie in summary["coteries"]:
        line = {"cluster": coterie["cluster"], "learners": named(coterie["learners"])}
        line["number"] = len(coterie["learners"])
        if summary["pays"]:
            # Of classes Brier scores, else root mean squared errors.
            unit = "error" if "scores" in summary else "rmse"
            line |= {"alone": coterie[f"{unit}_alone"], "with others": coterie[f"{unit}_with"]}
            line["typical gain"] = _share(coterie["median_gain"])
        lines.append(line)
    show_rows(list(lines[0]), lines)


def _show_outside(summary: Mapping[str, Any]) -> None:
    outside = summary["does_not_belong"]
    for entry in outside[:_NAMED]:
        show_line(f"  {entry['learner']}: {entry['reason']}")
    if len(outside) > _NAMED:
        show_line(f"  and {len(outside) - _NAMED} more, see gains.csv")


def show_summary(summary: Mapping[str, Any]) -> None:
    """Print what `coterie.summary.summarize` returned, as answers to the questions that one has."""
    first, *others = summary["answer"]
    show_line(first, style="bold")
    for sentence in others:
        show_line(sentence)
    if summary["pays"]:
        _show_outside(summary)
    if summary["clear"] or summary["n_clusters"] == 1:
        _show_coteries(summary)
    show_line(f"Why {summary['n_clusters']}? {_why(summary)}")
    for plan in summary.get("columns", ()):
        if plan["kind"] != "number" or "missing" in plan["remark"]:
            show_line(f"Column {plan['name']!r}: {plan['remark']}.")
    for note in summary["notes"]:
        show_line(f"Note: {note}")
