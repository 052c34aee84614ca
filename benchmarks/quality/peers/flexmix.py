"""R's flexmix, ``y ~ x | learner``: a mixture of regressions by EM, K by BIC. Run as a program."""

from __future__ import annotations

import csv
import shutil
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path

import numpy as np
from problem import Answer, Problem

HERE = Path(__file__).parent
RESTARTS = 10


@cache
def missing() -> str | None:
    """Return why flexmix cannot be run here, or None."""
    if shutil.which("Rscript") is None:
        return "Rscript is not installed: flexmix is left out (Debian: r-base-core, r-cran-flexmix)."
    found = subprocess.run(["Rscript", "-e", "library(flexmix)"], capture_output=True, check=False)
    return None if found.returncode == 0 else "R has no flexmix: it is left out (Debian: r-cran-flexmix)."


def run(problem: Problem) -> list[Answer]:
    """Return the partitions by BIC and for the given number of clusters; one run of EM serves both."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        with open(path, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["g", "y", *(f"x{c}" for c in range(problem.designs[0].shape[1] - 1))])
            for j, (Z, y) in enumerate(zip(problem.designs, problem.y, strict=True)):
                writer.writerows([f"g{j:04d}", value, *row] for value, row in zip(y, Z[:, :-1], strict=True))
        numbers = [problem.n_clusters, problem.most, RESTARTS, problem.seed]
        command = ["Rscript", str(HERE / "flexmix.R"), str(path), *map(str, numbers)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"flexmix failed: {done.stderr.strip()[-300:]}")
    lines = {name: values for name, *values in (line.split() for line in done.stdout.splitlines())}
    seconds = time.perf_counter() - start
    return [
        Answer(f"flexmix, {suffix}", np.array(lines[key], dtype=int), seconds)
        for key, suffix in (("given", "K given"), ("bic", "BIC"))
    ]
