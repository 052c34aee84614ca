"""Freeze what the library answers today, so that later states can be compared with it, draw by draw.

    python benchmarks/freeze.py [--only SOURCE ...] [--draws N] [--jobs N] [--out FOLDER]

Asks every draw and table of ``how_many``, ``given``, ``peers``, ``one_truth``, ``ablation``, ``attacks``,
``truths``, ``promises``, ``real_tables``, ``classes`` and ``federated/pays``, on all cores: labels, K,
whether the answer is clear, errors by learner, verdicts, gains, seconds of processor. Answers go to a journal
first; an interrupted run goes on where it stopped. Writes a Parquet file for each source, and
``machine.json``. Real tables need COTERIE_DATA; those of R's packages need R, or an earlier export.
"""

from __future__ import annotations

import os

# One thread for each process: small matrices only wait for more.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import argparse
import json
from pathlib import Path

from answering.rows import BENCHMARKS, LETTERS
from answering.run import SOURCES, asked, journal_lines, machine, orders_of
from coterie.datasets import data_home

FROZEN = BENCHMARKS / "frozen"


def packed(journal: Path, out: Path) -> dict[str, int]:
    """Write the answers of a journal as one Parquet file for each source; return how many there are."""
    import numpy as np
    import pandas as pd

    rows = [answer for line in journal_lines(journal) for answer in line["answers"]]
    table = pd.DataFrame(rows).sort_values(["source", "setting", "variant", "seed"])
    for column, kind in (
        ("labels", "int16"),
        ("errors", "float32"),
        ("own_errors", "float32"),
        ("gains", "float32"),
    ):
        table[column] = [None if cell is None else np.asarray(cell, dtype=kind) for cell in table[column]]
    table = table.astype(
        {"n_clusters": "Int16", "clear": "boolean", "exact": "boolean", "seconds": "float32"}
    )
    out.mkdir(parents=True, exist_ok=True)
    for source, part in table.groupby("source"):
        part.dropna(axis="columns", how="all").drop(columns="source").to_parquet(
            out / f"{source}.parquet", index=False, compression="zstd", compression_level=19
        )
    return table["source"].value_counts().to_dict()


def main() -> None:
    """Ask what is missing, and write the files."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", choices=list(SOURCES), default=list(SOURCES))
    parser.add_argument("--text", default="", help="settings or variants that have this text")
    parser.add_argument("--draws", type=int, help="first draws of each setting; all where not given")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--minutes", type=float, help="stop after so many minutes")
    parser.add_argument("--journal", type=Path, default=data_home() / "answers" / "frozen.jsonl")
    parser.add_argument("--journal-only", action="store_true", help="write no Parquet files")
    parser.add_argument("--out", type=Path, default=FROZEN)
    chosen = parser.parse_args()
    made = machine()
    asked(orders_of(chosen.only, chosen.draws, chosen.text), chosen.journal, chosen.jobs, chosen.minutes)
    chosen.journal.with_suffix(".machine.json").write_text(json.dumps(made, indent=1) + "\n")
    if not chosen.journal_only:
        for source, count in packed(chosen.journal, chosen.out).items():
            print(f"{source}: {count} answers")
        (chosen.out / "machine.json").write_text(json.dumps({**made, "verdicts": LETTERS}, indent=1) + "\n")


if __name__ == "__main__":
    main()
