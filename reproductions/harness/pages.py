"""What a person reads: a table as text or as Markdown, and an experiment's README of fixed headings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from reproductions.harness.experiment import HEADINGS, Experiment, Table

# What a person has written; `README.md` is made of it and of the numbers.
TEXT = "README.text.md"
# How an experiment is run, before its name.
COMMAND = "python -m reproductions"


def table_as_text(table: Table) -> str:
    """Return a table in aligned columns, as it is printed."""
    lines = [table.columns, *table.rows]
    widths = [max(len(line[place]) for line in lines) for place in range(len(table.columns))]

    def aligned(cells: Sequence[str]) -> str:
        first = cells[0].ljust(widths[0])
        rest = [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True)]
        return "  ".join([first, *rest]).rstrip()

    rule = "  ".join("-" * width for width in widths)
    shown = [table.title, "", aligned(table.columns), rule, *(aligned(row) for row in table.rows)]
    return "\n".join([*shown, *([""] if table.notes else []), *table.notes])


def table_as_markdown(table: Table) -> str:
    """Return a table as Markdown, its title above and its notes below."""

    def row(cells: Iterable[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    lines = [row(table.columns), row("---" for _ in table.columns), *(row(cells) for cells in table.rows)]
    notes = [part for note in table.notes for part in ("", note)]
    return "\n".join([f"**{table.title}**", "", *lines, *notes])


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _times(seconds: Sequence[float]) -> str:
    known = [value for value in seconds if value == value]
    if not known:
        return "The times of these replications were not kept."
    return (
        f"A replication took {_duration(median(known))} of processor time (median), "
        f"the {len(known)} together {_duration(sum(known))}."
    )


def _settings_list(settings: Mapping[str, Any]) -> str:
    return "\n".join(f"- `{name}`: {json.dumps(value)}" for name, value in settings.items())


def written_readme(folder: Path) -> dict[str, str]:
    """Read an experiment's prose.

    Parameters
    ----------
    folder : Path
        Of the experiment. Its ``README.text.md`` has the fixed headings.

    Returns
    -------
    dict of str to str
        The text under each heading.
    """
    page = (folder / TEXT).read_text(encoding="utf-8")
    sections = [section.partition("\n") for section in page.split("## ")[1:]]
    return {heading.strip(): text.strip() for heading, _, text in sections}


def _picture(path: Path) -> str:
    return f"![{path.stem.replace('_', ' ')}]({path.name})"


def _options(experiment: Experiment, stamp: Mapping[str, Any], count: int) -> str:
    """Return the options of the command that makes a run, each with a space before it."""
    quick = experiment.settings != stamp["settings"]
    usual = experiment.quick_replications if quick else experiment.replications
    return "".join(
        [
            " --quick" if quick else "",
            f" --seed {stamp['seed']}" if stamp["seed"] else "",
            f" --replications {count}" if count != usual else "",
        ]
    )


def readme_text(
    experiment: Experiment,
    stamp: Mapping[str, Any],
    tables: Sequence[Table],
    figures: Sequence[Path],
    seconds: Sequence[float],
) -> str:
    """Return the README of a run.

    Parameters
    ----------
    experiment : Experiment
        Its title and its text under each heading.
    stamp : mapping
        Settings, seed and version, as in ``settings.json``.
    tables : sequence of Table
        What was measured.
    figures : sequence of Path
        Of the figures' files only the PNGs are shown.
    seconds : sequence of float
        Processor time of each replication.

    Returns
    -------
    str
        Markdown.
    """
    missing = [heading for heading in HEADINGS[:-1] if not experiment.readme.get(heading)]
    if missing:
        raise ValueError(f"The experiment {experiment.name!r} has no text under {missing[0]!r}: write it.")
    counted = f"{len(seconds)} replication{'' if len(seconds) == 1 else 's'}"
    options = _options(experiment, stamp, len(seconds))
    parts = [
        f"# {experiment.title}",
        f"Made by `{COMMAND} {experiment.name}{options}`, version {stamp['version']}, from the seed "
        f"{stamp['seed']} with {counted}. The numbers are in `results.csv`; this page is written from them.",
        *(table_as_markdown(table) for table in tables),
        *(_picture(path) for path in figures if path.suffix == ".png"),
    ]
    measured = {"Settings": _settings_list(stamp["settings"]), "How long it takes": _times(seconds)}
    if options:
        measured["How our numbers differ and why"] = (
            f"This is written about `{COMMAND} {experiment.name}`, with its "
            f"{experiment.replications} replications; the numbers above are of another run."
        )
    for heading in HEADINGS:
        written = experiment.readme.get(heading, "").strip(), measured.get(heading, "")
        parts += [f"## {heading}", *filter(None, written)]
    return "\n\n".join(parts) + "\n"
