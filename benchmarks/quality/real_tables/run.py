"""Does it pay on real tables? coterie as it comes beside what else a user could do.

    COTERIE_DATA=FOLDER python benchmarks/quality/real_tables/run.py [--tables ...] [--methods ...]

One protocol for all tables: learners with at least 40 rows, the first 80; at most 300 rows each, half to
learn from, half to be scored on. The table wages comes with five folds of its own, which are its seeds. A run
of a table, seed and method that is in ``results.csv`` is not run again, so that an interrupted run continues
where it stopped. Writes ``results.csv``, ``learners.csv``, ``README.md`` and ``figure.png``.
"""

from __future__ import annotations

import argparse
import contextlib
import platform
import re
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ledger import Ledger
from measure import measure_within
from methods import METHODS
from more_tables import N_OFFICIAL, NAMES, OFFICIAL, split
from tables import TABLES
from untouched import NAMES as OF_R
from untouched import untouched_tables

from coterie.datasets import data_home

HERE = Path(__file__).parent
# Squared errors of single test rows, kept between runs.
KEPT = data_home() / "real_tables"


def _machine() -> str:
    """Return a sentence about the machine and the versions."""
    info = Path("/proc/cpuinfo")
    names = re.findall(r"model name\s*: (.*)", info.read_text()) if info.is_file() else []
    packages = ("coterie", "scikit-learn", "lightgbm", "catboost", "gpboost", "merf", "scikit-lego")
    versions = []
    for package in packages:
        with contextlib.suppress(PackageNotFoundError):
            versions.append(f"{package} {version(package)}")
    processor = names[0] if names else platform.machine()
    return f"Made with one thread on {processor}, Python {platform.python_version()}, {', '.join(versions)}."


def available(methods: list[str]) -> list[str]:
    """Return the methods that are installed, and name the others."""
    found = []
    for name in methods:
        why = METHODS[name].missing()
        if why is None:
            found.append(name)
        else:
            print(f"{name} is left out: {why}.", flush=True)
    return found


def _runs(tables: list[str], method: str, seeds: int) -> list[tuple[str, int, str]]:
    """Return the runs of one method, seed by seed."""
    ordinary = [(table, seed, method) for seed in range(seeds) for table in tables if table != OFFICIAL]
    official = OFFICIAL in tables and METHODS[method].unseen
    return ordinary + [(OFFICIAL, fold, method) for fold in range(N_OFFICIAL) if official]


def main() -> None:
    """Run what has not been run, and write the results and the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", nargs="*", choices=list(NAMES), default=list(NAMES))
    parser.add_argument("--methods", nargs="*", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--limit", type=int, default=300, help="seconds of processor for one run")
    parser.add_argument("--minutes", type=float, default=None, help="start no run after so many minutes")
    parser.add_argument("--keep", type=Path, default=KEPT, help="folder of single rows' errors")
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--again", action="store_true", help="run again what has been run")
    arguments = parser.parse_args()
    if any(table in OF_R for table in arguments.tables):
        TABLES.update(untouched_tables())
    ledger, start = Ledger(arguments.out, arguments.keep), time.monotonic()
    absent: set[str] = set()
    for method in available(arguments.methods):
        for key in _runs(arguments.tables, method, arguments.seeds):
            late = arguments.minutes is not None and time.monotonic() - start > 60 * arguments.minutes
            if late or key[0] in absent or (key in ledger.lines and not arguments.again):
                continue
            try:
                data = split(*key[:2])
            except (KeyError, SystemExit) as why:
                absent.add(key[0])
                print(f"{key[0]} is left out: {why}", flush=True)
                continue
            (arguments.out / "machine.txt").write_text(_machine() + "\n")
            line = ledger.add(key, data, measure_within(arguments.limit, method, data))
            said = f"{line['error']:.4g}  {line['cpu_fit']:.1f} s" if "error" in line else line["note"]
            print(f"{key[0]} {key[1]} {method}: {said}", flush=True)
    # Here, so that what draws is not loaded where time is measured.
    from page import write_page

    write_page(HERE / "README.head.md", arguments.out)


if __name__ == "__main__":
    main()
