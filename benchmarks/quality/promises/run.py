"""Does coterie keep what it promises? Verdicts and gains beside what is true of simulated and real learners.

    python benchmarks/quality/promises/run.py            everything, with the numbers of the page
    python benchmarks/quality/promises/run.py simulated [--only KIND ...] [--forms ...] [--draws 24]
    python benchmarks/quality/promises/run.py tables [--only TABLE ...] [--forms ...] [--seeds 3]
    python benchmarks/quality/promises/run.py page

A federation, or a split of a table, that is in the results is not run again, so that an interrupted run
continues where it stopped; `--again` forgets the results of what is asked for. Writes `simulated.csv` or
`tables.csv` and `README.md`; `--out` names another folder for all of them.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import on_tables
from cells import read
from federations import KINDS
from joblib import Parallel, delayed
from page import write_page
from promised import FORMS
from simulated import LEARNER_COLUMNS, one_federation

from coterie.datasets import data_home

HERE = Path(__file__).parent
CANDIDATES = ("linear", "default")
KEYS = {"simulated": ("kind", "form", "candidates", "draw"), "tables": ("table", "seed", "form")}

# What is run where no part is named: 1,000 federations with linear candidates, 100 with the default ones.
EVERYTHING = (
    {"part": "simulated", "candidates": "linear"},
    {"part": "simulated", "candidates": "default", "draws": 3},
    {"part": "tables"},
)


def _write(path: Path, lines: list[dict[str, Any]]) -> None:
    draft = path.with_suffix(".draft")
    with open(draft, "w", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)
    os.replace(draft, path)


def _append(path: Path, lines: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    new = not path.is_file()
    with open(path, "a", newline="") as file:
        writer = csv.DictWriter(file, LEARNER_COLUMNS, lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerows(lines)


def _orders(arguments: argparse.Namespace) -> Iterator[tuple[Any, ...]]:
    """Give out the keys of all runs that are asked for, draw by draw so that all kinds grow together."""
    if arguments.part == "simulated":
        for draw in range(arguments.first, arguments.first + arguments.draws):
            for kind in arguments.only or KINDS:
                yield from ((kind, form, arguments.candidates, draw) for form in arguments.forms)
        return
    tables = on_tables.tables_here(arguments.only or list(on_tables.EVERY_TABLE))
    for seed in range(arguments.seeds):
        for table in tables:
            yield from ((table, seed, form) for form in arguments.forms)


def _one(part: str, order: tuple[Any, ...]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    if part == "simulated":
        return one_federation(*order)
    if order[0] in on_tables.OF_R:
        on_tables.tables_here([order[0]])
    return on_tables.one_table(*order), []


def _done(orders: Iterable[tuple[Any, ...]], part: str, jobs: int) -> Iterator[Any]:
    """Run orders, several at a time where that is asked for; give out results as they come."""
    if jobs == 1:
        yield from (_one(part, order) for order in orders)
        return
    work = (delayed(_one)(part, order) for order in orders)
    yield from Parallel(n_jobs=jobs, return_as="generator_unordered")(work)


def _within(orders: list[tuple[Any, ...]], minutes: float | None) -> Iterator[tuple[Any, ...]]:
    start = time.monotonic()
    for order in orders:
        if minutes is not None and time.monotonic() - start > 60 * minutes:
            return
        yield order


def run(arguments: argparse.Namespace, keep: Callable[[list[dict[str, Any]]], None]) -> None:
    """Run what the results lack."""
    names, path = KEYS[arguments.part], arguments.out / f"{arguments.part}.csv"

    def key(line: dict[str, Any]) -> tuple[str, ...]:
        return tuple(str(line[name]) for name in names)

    lines = {key(line): line for line in read(path)}
    orders = list(_orders(arguments))
    if arguments.again:
        for order in orders:
            lines.pop(tuple(map(str, order)), None)
    orders = [order for order in orders if tuple(map(str, order)) not in lines]
    for line, learners in _done(_within(orders, arguments.minutes), arguments.part, arguments.jobs):
        lines[key(line)] = line
        _write(path, [lines[each] for each in sorted(lines)])
        keep(learners)
        print("  ".join(key(line)), f" {line['seconds']} s", flush=True)


def main() -> None:
    """Run a part, and write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", nargs="?", choices=("all", "simulated", "tables", "page"), default="all")
    parser.add_argument("--only", nargs="*", help="kinds or tables")
    parser.add_argument("--forms", nargs="*", choices=list(FORMS), default=list(FORMS))
    parser.add_argument("--candidates", choices=CANDIDATES, default="linear", help="of simulated learners")
    parser.add_argument("--draws", type=int, default=24)
    parser.add_argument("--first", type=int, default=0, help="first draw")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=None, help="start no run after so many minutes")
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--again", action="store_true", help="run again what has been run")
    parser.add_argument("--learners", type=Path, default=data_home() / "promises" / "learners.csv")
    arguments = parser.parse_args()
    known = {"simulated": list(KINDS), "tables": list(on_tables.EVERY_TABLE)}.get(arguments.part, [])
    unknown = sorted(set(arguments.only or []) - set(known))
    if unknown:
        sys.exit(f"{unknown[0]} is not known: choose from {', '.join(known)}.")
    arguments.out.mkdir(parents=True, exist_ok=True)
    wanted = {"all": EVERYTHING, "page": ()}.get(arguments.part, ({"part": arguments.part},))
    for more in wanted:
        each = argparse.Namespace(**{**vars(arguments), **more})
        run(each, lambda learners: _append(arguments.learners, learners) if learners else None)
    write_page(HERE / "README.head.md", arguments.out)


if __name__ == "__main__":
    main()
