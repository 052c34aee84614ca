"""What does each part of the search buy? Each is switched off in turn, everything else as it is.

    python benchmarks/quality/ablation/run.py [--draws 16] [--parts NAME ...] [--only TEXT] [--out FOLDER]

Learners of all simulated settings of ``how_many``, ``peers`` and ``one_truth`` are clustered, with linear and
with the default candidates, and two quadratic settings with a candidate of the user's own. Draws are kept in
``--keep`` and are not made again. ``--constants`` halves and doubles the method's numbers instead. Writes
``results.csv`` or ``constants.csv``, and ``README.md``. ``tables.py`` does the same on real tables, and
``deleted.csv`` has what was measured of parts that are gone.
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from itertools import product
from pathlib import Path

from constants import VARIED
from joblib import Parallel, delayed
from page import COLUMNS, aggregated, changed, written
from parts import PARTS
from search import one_draw
from settings import settings

from coterie.datasets import data_home

HERE = Path(__file__).parent
BATCH = 20


def read(path: Path) -> list[dict]:
    """Return the rows of a table; none where there is none."""
    if not path.is_file():
        return []
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def write(path: Path, rows: list[dict], columns: tuple[str, ...] = ()) -> None:
    """Write rows as a table."""
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, columns or list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    """Run what is missing, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--draws", type=int, default=16)
    parser.add_argument("--constants", action="store_true", help="halve and double numbers instead")
    parser.add_argument("--parts", nargs="*", choices=[part.name for part in (*PARTS, *VARIED)])
    parser.add_argument("--only", default="", help="settings whose name or candidates have this text")
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--keep", type=Path, default=data_home() / "ablation")
    parser.add_argument("--jobs", type=int, default=2)
    chosen = parser.parse_args()
    for folder in (chosen.keep, chosen.out):
        folder.mkdir(parents=True, exist_ok=True)
    switched = VARIED if chosen.constants else PARTS
    names = chosen.parts or [part.name for part in switched]
    path = chosen.keep / ("constants.csv" if chosen.constants else "draws.csv")
    rows = read(path)
    made = defaultdict(set)
    for row in rows:
        made[row["benchmark"], row["setting"], row["candidates"], int(row["seed"])].add(row["without"])
    jobs = []
    # Linear candidates first: they are quick, and show most of it.
    everything = product(range(chosen.draws), settings())
    for seed, setting in sorted(everything, key=lambda job: job[1][2] == "default"):
        missing = tuple(name for name in names if name not in made[*setting, seed])
        if missing and (chosen.only in setting[1] or chosen.only == setting[2]):
            jobs.append((*setting, seed, missing))
    workers = Parallel(n_jobs=chosen.jobs, return_as="generator_unordered")
    for done, found in enumerate(workers(delayed(one_draw)(*job) for job in jobs), 1):
        known = made[tuple(found[0][name] for name in ("benchmark", "setting", "candidates", "seed"))]
        rows += [row for row in found if row["without"] not in known]
        # Written again and again, so that an interrupted run keeps what it has measured.
        if done % BATCH == 0 or done == len(jobs):
            write(path, rows)
            print(f"{done} of {len(jobs)} draws", flush=True)
    order = {part.name: place for place, part in enumerate(switched)}
    rows = [row for row in rows if row["without"] in order or row["without"] == "the whole"]
    rows.sort(key=lambda row: order.get(row["without"], -1))
    name = "constants.csv" if chosen.constants else "results.csv"
    write(chosen.out / name, changed(aggregated(rows)), COLUMNS)
    tables = (read(chosen.out / name) for name in ("results.csv", "constants.csv"))
    (chosen.out / "README.md").write_text(written(*tables, read(HERE / "deleted.csv")))


if __name__ == "__main__":
    main()
