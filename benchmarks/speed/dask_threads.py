"""Dask on one machine beside threads: Select and Exchange of forests, the two stages that an engine runs.

    python benchmarks/speed/dask_threads.py [--learners 2000] [--rows 500] [--trees 10] [--workers 2]

Two worker processes with a thread each against as many threads of this process, on the same learners; the
start of the cluster is not counted. The claim: Dask takes at most twice the time, and the losses are the
same. Adds a row to ``benchmarks/speed/dask_threads.csv``.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import distributed
import numpy as np
import sklearn

from coterie import cross_evaluate, select_models
from coterie.datasets import make_linear_learners
from coterie.models.forest import QuickForest
from coterie.rows.learners import Learners, gather_learners
from rows import add_row, this_machine

HERE = Path(__file__).parent


def run(learners: Learners, forest: Any, **work: Any) -> tuple[Any, float, float]:
    """Return the losses, and the seconds of Select and of Exchange."""
    start = time.perf_counter()
    selection = select_models(learners, candidates={"rf": forest}, **work)
    between = time.perf_counter()
    losses = cross_evaluate(selection, learners, **work).losses
    return losses, between - start, time.perf_counter() - between


def main() -> None:
    """Run both engines and add a row to the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--learners", type=int, default=2_000)
    parser.add_argument("--rows", type=int, default=500, help="of each learner")
    parser.add_argument("--trees", type=int, default=10, help="of each forest")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=HERE / "dask_threads.csv")
    options = parser.parse_args()
    data = make_linear_learners(
        options.learners, n_truths=5, n_rows=options.rows, n_features=6, random_state=0
    )
    learners = gather_learners(data.X, data.y, data.groups, caller="benchmark")
    forest = QuickForest(options.trees, max_depth=3)
    seconds: dict[str, tuple[float, float]] = {}
    losses = {}
    losses["threads"], *both = run(learners, forest, n_jobs=options.workers)
    seconds["threads"] = tuple(both)
    print("threads", both, flush=True)
    local = {"processes": True, "threads_per_worker": 1, "dashboard_address": None, "memory_limit": 0}
    with (
        distributed.LocalCluster(options.workers, **local) as cluster,
        distributed.Client(cluster) as client,
    ):
        losses["dask"], *both = run(learners, forest, engine=client)
    seconds["dask"] = tuple(both)
    print("dask", both, flush=True)
    row = {"learners": options.learners, "rows": options.rows, "trees": options.trees}
    for engine, (select, exchange) in seconds.items():
        row |= {f"{engine}_select": round(select, 1), f"{engine}_exchange": round(exchange, 1)}
    row["ratio"] = round(sum(seconds["dask"]) / sum(seconds["threads"]), 2)
    row["same_losses"] = bool(np.array_equal(losses["threads"], losses["dask"]))
    versions = f"scikit-learn {sklearn.__version__}", f"distributed {distributed.__version__}"
    row["machine"] = this_machine(*versions)
    print(row)
    add_row(options.out, row)


if __name__ == "__main__":
    main()
