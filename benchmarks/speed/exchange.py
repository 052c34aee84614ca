"""How fast are Select, Exchange and Cluster? Every time stands beside a baseline of the same run.

    python benchmarks/speed/exchange.py [--quick]

The double loop calls ``predict`` for every pair of learners; it is timed on a sample of pairs and scaled to
all of them. Results go to ``benchmarks/speed/results.csv``.
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import sklearn
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression

from coterie import cluster_learners, cross_evaluate, select_models
from coterie.datasets import make_linear_learners
from coterie.rows.learners import Learners, gather_learners

HERE = Path(__file__).parent
PAIRS = 4_000


def linear_learners(n_learners: int, n_rows: int, n_features: int) -> Learners:
    """Return the rows of learners of five linear truths."""
    data = make_linear_learners(
        n_learners=n_learners, n_truths=5, n_rows=n_rows, n_features=n_features, random_state=0
    )
    return gather_learners(data.X, data.y, data.groups, caller="benchmark")


def timed(function, *args, repeat: int = 1, **kwargs):
    """Return the result and the shortest of a few times."""
    best, result = np.inf, None
    for _ in range(repeat):
        start = time.perf_counter()
        result = function(*args, **kwargs)
        best = min(best, time.perf_counter() - start)
    return result, best


def double_loop(models, learners: Learners, pairs) -> np.ndarray:
    """Return the losses of some pairs, a call of predict each."""
    losses = np.empty(len(pairs))
    for place, (i, j) in enumerate(pairs):
        rows = learners.span(j)
        losses[place] = np.mean((learners.scalar_y[rows] - models[i].predict(learners.X[rows])) ** 2)
    return losses


def all_losses(selection, learners: Learners, n_jobs: int | None = None) -> np.ndarray:
    """Run Exchange to the last loss."""
    return cross_evaluate(selection, learners, n_jobs=n_jobs).losses


def against_the_loop(selection, learners: Learners, pairs, losses, seconds: float, repeat: int):
    """Return the loop's time for all pairs, the ratio, and the largest error."""
    loop, loop_seconds = timed(double_loop, selection.models, learners, pairs, repeat=repeat)
    whole = loop_seconds * len(learners) ** 2 / len(pairs)
    error = np.abs(loop - losses[tuple(np.transpose(pairs))]) / learners.scalar_y.var()
    return whole, whole / seconds, error.max()


def exchange_of_linear_models(n_learners: int) -> list[dict]:
    """Time Exchange of linear learners, n=100 and p=20, and clustering with automatic K."""
    learners = linear_learners(n_learners, 100, 20)
    alone, select_seconds = timed(select_models, learners, candidates={"lr": LinearRegression()})
    _, preset_seconds = timed(select_models, learners, candidates="linear")
    losses, seconds = timed(all_losses, alone, learners, repeat=5)
    pairs = np.random.default_rng(0).integers(n_learners, size=(PAIRS, 2))
    whole, ratio, error = against_the_loop(alone, learners, pairs, losses, seconds, 3)
    exchange = cross_evaluate(alone, learners)
    partition, cluster_seconds = timed(cluster_learners, exchange, learners, selection=alone)
    name = f"L={n_learners} linear, n=100, p=20"
    return [
        row(f"{name}: Exchange against the double loop", seconds, whole, ratio, f"error {error:.0e} var(y)"),
        row(
            f"{name}: Cluster with automatic K against Select (preset 'linear')",
            cluster_seconds,
            preset_seconds,
            preset_seconds / cluster_seconds,
            f"K={partition.n_clusters}",
        ),
        row(
            f"{name}: Cluster with automatic K against Select (LinearRegression only)",
            cluster_seconds,
            select_seconds,
            select_seconds / cluster_seconds,
            f"K={partition.n_clusters}",
        ),
    ]


def exchange_of_forests(n_learners: int, n_rows: int) -> list[dict]:
    """Time Exchange of forests of 50 trees of depth 3."""
    learners = linear_learners(n_learners, n_rows, 10)
    forest = RandomForestRegressor(50, max_depth=3)
    selection = select_models(learners, candidates={"rf": forest}, n_jobs=2)
    losses, seconds = timed(all_losses, selection, learners, n_jobs=2)
    pairs = np.random.default_rng(0).integers(n_learners, size=(PAIRS // 10, 2))
    whole, ratio, error = against_the_loop(selection, learners, pairs, losses, seconds, 2)
    name = f"L={n_learners} forests, n={n_rows}: Exchange (2 threads) against the double loop"
    return [row(name, seconds, whole, ratio, f"error {error:.0e} var(y)")]


def peak_memory(n_learners: int) -> list[dict]:
    """Run Select, Exchange and Cluster in a process of its own and read its peak memory."""
    code = (
        "import resource, sys; sys.path.insert(0, sys.argv[1]); import exchange as e\n"
        "learners = e.linear_learners(int(sys.argv[2]), 100, 20)\n"
        "selection = e.select_models(learners, candidates='lr')\n"
        "exchange = e.cross_evaluate(selection, learners)\n"
        "partition = e.cluster_learners(exchange, learners, selection=selection)\n"
        "print(partition.n_clusters, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)"
    )
    command = [sys.executable, "-c", code, str(HERE), str(n_learners)]
    start = time.perf_counter()
    answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    seconds = time.perf_counter() - start
    gibibytes = float(answer[1])
    name = f"L={n_learners} linear, n=100, p=20: peak memory of the whole, GiB, against 2 GiB"
    return [row(name, gibibytes, 2.0, 2.0 / gibibytes, f"K={answer[0]}, {seconds:.0f} s")]


def row(name: str, ours: float, baseline: float, ratio: float, remark: str) -> dict:
    """Return a row of the table and print it."""
    print(f"{name:<95} {ours:>9.3f} {baseline:>10.2f} {ratio:>9.1f}  {remark}", flush=True)
    return {"what": name, "ours": ours, "baseline": baseline, "ratio": ratio, "remark": remark}


def main() -> None:
    """Run all and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the size, nothing written")
    quick = parser.parse_args().quick
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, "
    machine += f"numpy {np.__version__}, scikit-learn {sklearn.__version__}"
    print(machine)
    print(f"{'':<95} {'ours':>9} {'baseline':>10} {'ratio':>9}")
    rows = exchange_of_linear_models(100 if quick else 1_000)
    rows += exchange_of_forests(20 if quick else 200, 500)
    rows += peak_memory(500 if quick else 5_000)
    if not quick:
        with open(HERE / "results.csv", "w", newline="") as file:
            writer = csv.DictWriter(file, [*rows[0], "machine"])
            writer.writeheader()
            writer.writerows({**line, "machine": machine} for line in rows)


if __name__ == "__main__":
    main()
