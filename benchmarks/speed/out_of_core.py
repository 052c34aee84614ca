"""A fit of more rows than the memory holds: learners are read one by one from Parquet.

    python benchmarks/speed/out_of_core.py [--gigabytes 20] [--memory 2GiB] [--learners 1000] [--folder TMP]

Writes learners of five planted truths, 20 predictors, a folder each (``site=...``), into a temporary folder,
runs ``coterie fit --memory`` on it in a process of its own, and reports the seconds, the peak of its memory
and whether every label is right. The folder is removed at the end. Each run adds a row to
``benchmarks/speed/out_of_core.csv``.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl
from sklearn.metrics import adjusted_rand_score

from rows import add_row, this_machine

HERE = Path(__file__).parent
TRUTHS, PREDICTORS = 5, 20


def write_learners(folder: Path, n_learners: int, n_rows: int) -> dict[str, int]:
    """Write the learners, and return the truth of each."""
    rng = np.random.default_rng(0)
    slopes = rng.normal(size=(TRUTHS, PREDICTORS))
    truths = {}
    for number in range(n_learners):
        name, truth = f"{number:06}", int(rng.integers(TRUTHS))
        X = rng.normal(size=(n_rows, PREDICTORS))
        y = X @ slopes[truth] + np.sqrt(PREDICTORS / 16) * rng.normal(size=n_rows)
        table = pl.DataFrame(X, schema=[f"x{i}" for i in range(PREDICTORS)]).with_columns(y=pl.Series(y))
        (folder / f"site={name}").mkdir()
        table.write_parquet(folder / f"site={name}" / "0.parquet", compression="uncompressed")
        truths[name] = truth
    return truths


def size_of(folder: Path) -> float:
    """Return the size of the files in a folder, in gigabytes."""
    return sum(path.stat().st_size for path in folder.rglob("*.parquet")) / 1e9


def main() -> None:
    """Write, fit, and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=20)
    parser.add_argument("--memory", default="2GiB")
    parser.add_argument("--learners", type=int, default=1_000)
    parser.add_argument("--candidates", default="lr")
    parser.add_argument("--folder", type=Path, default=None, help="where to write the rows")
    parser.add_argument("--out", type=Path, default=HERE / "out_of_core.csv")
    options = parser.parse_args()
    n_rows = int(options.gigabytes * 1e9 / (8 * (PREDICTORS + 1)) / options.learners)
    with tempfile.TemporaryDirectory(dir=options.folder) as place:
        data, out = Path(place) / "data", Path(place) / "out"
        data.mkdir()
        truths = write_learners(data, options.learners, n_rows)
        gigabytes = size_of(data)
        print(f"{gigabytes:.1f} GB of {options.learners} learners are written.", flush=True)
        command = [sys.executable, "-m", "coterie.cli", "fit", str(data), "--target", "y", "--group", "site"]
        command += ["--candidates", options.candidates, "--memory", options.memory, "--out", str(out)]
        start = time.perf_counter()
        subprocess.run([*command, "--no-report"], check=True)
        seconds = time.perf_counter() - start
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        labels = pl.read_csv(out / "labels.csv", schema_overrides={"learner": pl.String})
        notes = json.loads((out / "summary.json").read_text())["notes"]
    right = adjusted_rand_score([truths[name] for name in labels["learner"]], labels["cluster"])
    row = {
        "gigabytes": round(gigabytes, 1),
        "learners": options.learners,
        "rows": options.learners * n_rows,
        "memory_given": options.memory,
        "memory_taken_gibibytes": round(usage.ru_maxrss / 2**20, 2),
        "seconds": round(seconds, 1),
        "processor_seconds": round(usage.ru_utime + usage.ru_stime, 1),
        "clusters": int(labels["cluster"].n_unique()),
        "ari": right,
        "machine": this_machine(),
    }
    print(row, *notes, sep="\n")
    add_row(options.out, row)


if __name__ == "__main__":
    main()
