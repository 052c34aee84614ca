"""From a file to an answer: what does `coterie fit` cost beside reading the file and fitting the models once?

    python benchmarks/speed/fit_table.py [--learners 1000] [--rows 1000] [--predictors 20] [--quick]

A Parquet table of linear learners is written to a temporary folder. The baseline reads it and fits every
candidate of the preset "linear" once to every learner's rows; `coterie fit` does all that it does, from the
file to the report. Both are processes of their own, one after the other in one run, on the same number of
threads. The claim for a million rows: at most three times the baseline, and less than 4 GiB of memory.
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl
import sklearn

from coterie.datasets import make_linear_learners

HERE = Path(__file__).parent
BASELINE = """
import sys
import polars as pl
from sklearn.base import clone
from coterie.candidates import make_candidates
from coterie.method.fitting import quiet_fits

table = pl.read_parquet(sys.argv[1])
candidates = make_candidates("linear")
with quiet_fits():
    for _, rows in table.group_by("learner"):
        X, y = rows.drop("learner", "y").to_numpy(), rows["y"].to_numpy()
        for candidate in candidates.values():
            clone(candidate).fit(X, y)
"""


def write_table(path: Path, n_learners: int, n_rows: int, n_features: int) -> None:
    """Write the rows of learners of five linear truths."""
    data = make_linear_learners(
        n_learners=n_learners, n_truths=5, n_rows=n_rows, n_features=n_features, random_state=0
    )
    frame = pl.DataFrame(data.X, schema=[f"x{k}" for k in range(n_features)])
    frame.with_columns(y=pl.Series(data.y), learner=pl.Series(data.groups)).write_parquet(path)


def measured(command: list[str]) -> tuple[float, float, float]:
    """Run a command; return its seconds, its seconds of processor and its peak memory in GiB."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status):
        raise SystemExit(f"{command[:4]} failed")
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 2**20


def main() -> None:
    """Write a table, run both, print and keep the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--learners", type=int, default=1_000)
    parser.add_argument("--rows", type=int, default=1_000, help="of each learner")
    parser.add_argument("--predictors", type=int, default=20)
    parser.add_argument("--quick", action="store_true", help="30 learners of 200 rows, nothing written")
    options = parser.parse_args()
    if options.quick:
        options.learners, options.rows = 30, 200
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.parquet"
        write_table(table, options.learners, options.rows, options.predictors)
        baseline, baseline_processor, baseline_memory = measured([sys.executable, "-c", BASELINE, str(table)])
        fit = [sys.executable, "-m", "coterie.cli", "fit", str(table), "--target", "y", "--group", "learner"]
        fit += ["--candidates", "linear", "--out", str(Path(folder) / "out")]
        seconds, processor, memory = measured(fit)
    result = {
        "learners": options.learners,
        "rows": options.learners * options.rows,
        "predictors": options.predictors,
        "fit_seconds": round(seconds, 1),
        "baseline_seconds": round(baseline, 1),
        "ratio": round(seconds / baseline, 2),
        "fit_processor_seconds": round(processor, 1),
        "baseline_processor_seconds": round(baseline_processor, 1),
        "processor_ratio": round(processor / baseline_processor, 2),
        "fit_gibibytes": round(memory, 2),
        "baseline_gibibytes": round(baseline_memory, 2),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, "
        f"numpy {np.__version__}, scikit-learn {sklearn.__version__}, polars {pl.__version__}",
    }
    for name, value in result.items():
        print(f"{name:<20} {value}")
    if not options.quick:
        with open(HERE / "fit_table.csv", "w", newline="") as file:
            writer = csv.DictWriter(file, list(result))
            writer.writeheader()
            writer.writerow(result)


if __name__ == "__main__":
    main()
