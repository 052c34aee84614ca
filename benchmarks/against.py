"""Compare this state of the library with the frozen answers, paired, draw by draw.

    python benchmarks/against.py [--only SOURCE ...] [--draws N] [--text TEXT] [--jobs N]
    python benchmarks/against.py --journal FILE         compare answers that were made before

Asks this state what was asked for ``benchmarks/frozen`` (see ``benchmarks/freeze.py``). Prints what improved,
what fell, and by how many standard errors of the paired difference. Without ``--draws`` everything is asked,
which takes about three hours of one core. Exit status 1 means that something fell.
"""

from __future__ import annotations

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import argparse
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from answering.paired import KEYS, differences, mean_and_error, same, verdict
from answering.run import SOURCES, asked, journal_lines, machine, orders_of
from freeze import FROZEN

MEASURES = ("agreement", "exact", "errors", "own_errors")
SHARES = ("labels", "n_clusters", "clear", "verdicts", "gains")


def read_frozen(folder: Path, sources: list[str]) -> pd.DataFrame:
    """Return the frozen answers of some sources."""
    parts = [
        pd.read_parquet(folder / f"{source}.parquet").assign(source=source)
        for source in sources
        if (folder / f"{source}.parquet").is_file()
    ]
    if not parts:
        sys.exit(f"{folder} has no answers: `python benchmarks/freeze.py` makes them.")
    return pd.concat(parts, ignore_index=True)


def _cell(name: str, values: pd.Series) -> str:
    mean, error = mean_and_error(values)
    if not np.isfinite(mean):
        return "-"
    sign = verdict(name, mean, error)
    shown = f"{np.exp(mean):.4f}" if "errors" in name else f"{mean:+.4f}"
    return f"{shown} ± {error:.4f}{f' **{sign}**' if sign else ''}"


def table(rows: pd.DataFrame, by: list[str]) -> list[str]:
    """Return a line for each setting in which anything differs."""
    measures = [name for name in MEASURES if name in rows]
    shares = [name for name in SHARES if name in rows]
    heads = [*by, "draws", *measures, *(f"{name} changed" for name in shares)]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for key, part in rows.groupby(by, sort=False):
        if part["same"].all():
            continue
        names = key if isinstance(key, tuple) else (key,)
        cells = [_cell(name, part[name]) for name in measures]
        cells += [f"{part[name].mean():.3f}" if part[name].notna().any() else "-" for name in shares]
        lines.append(f"| {' | '.join(map(str, names))} | {len(part)} | {' | '.join(cells)} |")
    return lines


def report(rows: pd.DataFrame, units: float) -> tuple[str, bool]:
    """Return the comparison as Markdown, and whether anything fell."""
    rows["same"] = rows.apply(same, axis=1)
    settings, sources = ["source", "setting", "variant"], ["source"]
    lines = [
        f"{len(rows)} answers to the same questions; {int(rows['same'].sum())} are the same.",
        "Differences are means over draws ± standard error; errors are the ratio of now to frozen.",
        "",
    ]
    fallen = False
    if not rows["same"].all():
        for by in (sources, settings):
            lines += [*table(rows, by), ""]
            for _, part in rows.groupby(by, sort=False):
                for name in ("agreement", "exact", "errors"):
                    if name in part:
                        fallen |= verdict(name, *mean_and_error(part[name])) == "worse"
    for source, part in rows.groupby("source", sort=False):
        if "seconds" in part and part["seconds"].notna().any():
            ratio = np.exp(part["seconds"].mean()) / units
            lines.append(f"{source}: {ratio:.2f} times the processor time, in units of the machine's speed.")
    if rows["same"].all():
        lines.append("No difference.")
    return "\n".join(lines), fallen


def main() -> None:
    """Ask, compare and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", choices=list(SOURCES), default=list(SOURCES))
    parser.add_argument("--text", default="", help="settings or variants that have this text")
    parser.add_argument("--draws", type=int, help="first draws of each setting; all where not given")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--frozen", type=Path, default=FROZEN)
    parser.add_argument("--journal", type=Path, help="answers of this state; asked where they are missing")
    parser.add_argument("--as-it-is", action="store_true", help="ask nothing: compare what the journal has")
    parser.add_argument("--out", type=Path, help="write the report here, too")
    chosen = parser.parse_args()
    made = machine()
    with tempfile.TemporaryDirectory() as folder:
        journal = chosen.journal or Path(folder) / "now.jsonl"
        if not chosen.as_it_is:
            asked(orders_of(chosen.only, chosen.draws, chosen.text), journal, chosen.jobs)
        rows = [answer for line in journal_lines(journal) for answer in line["answers"]]
        known = journal.with_suffix(".machine.json")
        made = json.loads(known.read_text()) if known.is_file() else made
    if not rows:
        sys.exit("Nothing was asked: --text, --only and --draws leave no draw.")
    old, now = read_frozen(chosen.frozen, chosen.only), pd.DataFrame(rows)
    before = json.loads((chosen.frozen / "machine.json").read_text())
    compared = differences(old[[*KEYS, *(c for c in old if c not in KEYS)]], now)
    text, fallen = report(compared, made["unit_seconds"] / before["unit_seconds"])
    print(text)
    if chosen.out:
        chosen.out.write_text(text + "\n")
    sys.exit(int(fallen))


if __name__ == "__main__":
    main()
