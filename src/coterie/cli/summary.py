"""The answer in a few lines: does it pay, for whom, who learns with whom, and why."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from coterie._text import counted, joined, number, percent
from coterie.cli.printing import cell, printable, shortened

# Learners of a group, and rows of a table, that are named before "and so many more".
_MAX_NAMED = 8
_WIDTH_OF_FILES = 110
_LETTERS_OF_NAME = 60


def named(learners: Sequence[Any], most: int = _MAX_NAMED) -> str:
    """Join names for a table's cell, the rest as a count."""
    rest = len(learners) - most
    names = ", ".join(shortened(str(name), _LETTERS_OF_NAME) for name in learners[:most])
    return names + (f" and {rest} more" if rest > 0 else "")


def _number(value: Any) -> str:
    """Return a cell of a table: fractions with four digits, a dash for None, all else as text."""
    return number(value, 4) if isinstance(value, float) or value is None else str(value)


def _why(summary: Mapping[str, Any], *, verbose: bool) -> str:
    """Say which rule chose the number of coteries, and what others would; ``verbose``: with its values.

    ``summary`` has the curve of each rule: its criterion by number of clusters, and the number it would
    choose. The rule "given" means that the user requested the number.
    """
    rule = summary["rule"]
    choice_by_rule = {name: curve["chosen"] for name, curve in summary["rules"].items() if name != rule}
    other_choices = ", ".join(f"{name} {chosen}" for name, chosen in choice_by_rule.items())
    if rule == "given":
        return f"It was requested. By rule: {other_choices}."
    curve = summary["rules"][rule]
    if not verbose:
        explanation = f"The rule {rule} says so."
        if rule == "held-out" and curve.get("one_truth_z") is None:
            explanation = (
                "It is the smallest number whose coteries predict rows not seen as well as the best number "
                f"does, within two standard errors (rule {rule})."
            )
        return f"{explanation} Other rules: {other_choices}." if choice_by_rule else explanation
    value_of = dict(zip(curve["n_clusters"], curve["values"], strict=True))
    nearby_counts = [k for k in sorted(value_of) if abs(k - curve["chosen"]) <= 2]
    values_near = ", ".join(f"{k}: {_number(value_of[k])}" for k in nearby_counts)
    return f"{rule}, {curve['criterion']}: {values_near}. Other rules: {other_choices}."


def _console() -> Console:
    """Return a console that writes to stdout, as wide as the terminal, or as a file can take."""
    width = None if sys.stdout.isatty() else _WIDTH_OF_FILES
    return Console(file=sys.stdout, width=width, highlight=False, markup=False)


def show_rows(names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    """Print a table of the columns ``names``: text to the left, numbers to the right and short."""
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in names:
        text = any(isinstance(row[name], str) for row in rows)
        grid.add_column(name, justify="left" if text else "right", no_wrap=name == names[0])
    for row in rows:
        cells = (row[name] for name in names)
        grid.add_row(*(_number(c) if isinstance(c, float) or c is None else cell(c) for c in cells))
    _console().print(grid)


def show_line(text: str, style: str | None = None) -> None:
    """Print a sentence."""
    console = _console()
    # A terminal breaks lines between words; in a file a sentence stays in one line.
    console.print(printable(text), style=style, soft_wrap=not console.is_terminal)


def _errors_of(group: Mapping[str, Any], summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return a group's median gain and mean errors as cells: Brier scores of classes, else RMSE."""
    unit = "error" if "scores" in summary else "rmse"
    return {
        "gain": percent(group["median_gain"], sign=True),
        "error alone": group[f"{unit}_alone"],
        "with others": group[f"{unit}_with"],
    }


def _show_groups(summary: Mapping[str, Any], groups: Sequence[Mapping[str, Any]], by: str) -> None:
    """Print a row for each group of learners (by verdict or cluster), with its errors and members.

    Coteries of one are named in a line below, for they are many sometimes. ``by`` is the key that names a
    group.
    """
    singles = [group["learners"][0] for group in groups if by == "cluster" and len(group["learners"]) == 1]
    groups = [group for group in groups if by != "cluster" or len(group["learners"]) > 1]
    lines = []
    for group in groups[:_MAX_NAMED]:
        line = {by: group[by], "learners": len(group["learners"])}
        if summary["pays"]:
            line |= _errors_of(group, summary)
        lines.append(line | {"who": named(group["learners"])})
    if lines:
        show_rows(list(lines[0]), lines)
    if len(groups) > _MAX_NAMED:
        show_line(f"  and {len(groups) - _MAX_NAMED} more, see labels.csv")
    if singles:
        show_line(f"In a coterie of {'its' if len(singles) == 1 else 'their'} own: {named(singles)}.")


def _columns(plans: Sequence[Mapping[str, Any]]) -> str:
    """Say how many columns became how many predictors, which have gaps, and which were left out."""
    left_out = [plan["name"] for plan in plans if plan["kind"] == "left out"]
    n_with_gaps = sum("missing" in plan["remark"] for plan in plans)
    n_predictors = sum(len(plan["features"]) for plan in plans)
    text = f"{counted(len(plans) - len(left_out), 'column')} became {counted(n_predictors, 'predictor')}"
    text += f", {n_with_gaps} with gaps that were filled" if n_with_gaps else ""
    text += f"; left out: {joined(left_out, 6)}" if left_out else ""
    return f"{text}. --verbose lists them."


def _show_details(summary: Mapping[str, Any]) -> None:
    """Print, for --verbose, which learners fit no coterie, and what became of each column."""
    for entry in summary["does_not_belong"]:
        show_line(f"  {entry['learner']}: {entry['reason']}")
    for plan in summary.get("columns", ()):
        show_line(f"Column {plan['name']!r}: {plan['remark']}.")


def show_summary(summary: Mapping[str, Any], *, verbose: bool = False) -> None:
    """Print what `coterie.summary.summarize` returned: the answer first, in one screen.

    Then groups by verdict, coteries, why there are that many, what became of the columns, and notes.
    """
    first, *others = summary["answer"]
    show_line(first, style="bold")
    for sentence in others:
        show_line(sentence)
    nothing_to_learn = summary.get("nothing_to_learn")
    if summary["pays"] and not nothing_to_learn:
        _show_groups(summary, summary["by_verdict"], "verdict")
        if summary["source"] == "model" and summary["n_learners"] > 1:
            show_line("`predict` uses others, except for learners told to stay alone.")
    if summary["n_clusters"] > 1 and summary["clear"] and not nothing_to_learn:
        _show_groups(summary, summary["coteries"], "cluster")
    if not nothing_to_learn and (verbose or summary["clear"] or summary["n_clusters"] == 1):
        show_line(f"Why {counted(summary['n_clusters'], 'coterie')}? {_why(summary, verbose=verbose)}")
    plans = summary.get("columns", ())
    if verbose:
        _show_details(summary)
    elif any(plan["kind"] != "number" or "missing" in plan["remark"] for plan in plans):
        show_line(_columns(plans))
    for note in summary["notes"]:
        if note == nothing_to_learn:
            continue
        show_line(f"Note: {note}")
