"""What an experiment is: settings, a replication, a table and figures; one folder an experiment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# One measured line: scalars by name. A replication returns several of them.
Record = Mapping[str, Any]

# Every experiment's README has these, in this order; `Experiment.readme` holds the text under each.
HEADINGS = (
    "What is reproduced",
    "Settings",
    "Where the paper is silent and what we chose",
    "How our numbers differ and why",
    "How long it takes",
)


@dataclass(frozen=True)
class Table:
    """What an experiment prints: published, paper's settings (ours), coterie's defaults (ours).

    Parameters
    ----------
    title : str
        One line above the table.
    columns : tuple of str
        Heads of the columns.
    rows : tuple of tuple of str
        Cells, formatted; standard errors stand in parentheses.
    notes : tuple of str, default=()
        Sentences below the table: p-values, what was left out.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Experiment:
    """One of the paper's experiments.

    Parameters
    ----------
    name : str
        As on the command line.
    title : str
        As in the paper.
    settings : mapping
        What is run: scalars, strings and lists, as they are written to JSON beside the results.
    quick_settings : mapping
        What ``--quick`` changes in them.
    replications : int
        How many are run and committed.
    quick_replications : int
        How many ``--quick`` runs.
    replicate : callable
        ``replicate(seed, settings)`` runs one replication and returns its records; a module-level function,
        so that processes can run it. Same seed and settings, same records.
    tabulate : callable
        ``tabulate(records, settings)`` returns the tables. Each record has its ``"replication"`` added.
    draw : callable
        ``draw(records, settings, folder)`` writes the figures as PNG and SVG and returns their paths.
    readme : mapping
        The text under each of `HEADINGS` in the experiment's README; what is measured is added to it. Only
        the last, how long it takes, needs no text.
    check_data : callable or None, default=None
        Raises an error that says how to get the data where they are missing.
    check_earlier : callable or None, default=None
        ``check_earlier(records, settings)`` raises an error where records of an interrupted run must not be
        mixed with those that are still missing.
    """

    name: str
    title: str
    settings: Mapping[str, Any]
    quick_settings: Mapping[str, Any]
    replications: int
    quick_replications: int
    replicate: Callable[[int, Mapping[str, Any]], list[Record]]
    tabulate: Callable[[Sequence[Record], Mapping[str, Any]], list[Table]]
    draw: Callable[[Sequence[Record], Mapping[str, Any], Path], list[Path]]
    readme: Mapping[str, str] = field(default_factory=dict)
    check_data: Callable[[], None] | None = None
    check_earlier: Callable[[Sequence[Record], Mapping[str, Any]], None] | None = None
