"""Landmarks for models without a closed form: how many evaluations they save, and what the clusters lose.

    python benchmarks/speed/landmarks.py [--learners 5000] [--landmarks 120] [--trees 5] [--exact]

Forests of five trees on learners of 50 rows, with five truths. Everybody exchanges with the landmarks, both
ways; with ``--exact`` everybody exchanges with everybody too, and the two partitions are compared. The claim
for 5,000 learners and 120 landmarks: at least 20 times fewer evaluations, and an adjusted Rand index of .98
or more.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import sklearn
from sklearn.metrics import adjusted_rand_score

from coterie import cluster_learners, cross_evaluate, select_models
from coterie.datasets import make_linear_learners
from coterie.models.forest import QuickForest
from coterie.rows.learners import gather_learners
from rows import add_row, this_machine

HERE = Path(__file__).parent


def timed(function, *args, **kwargs):
    """Return the result, the seconds and the seconds of processor."""
    wall, processor = time.perf_counter(), time.process_time()
    result = function(*args, **kwargs)
    return result, time.perf_counter() - wall, time.process_time() - processor


def main() -> None:
    """Run both ways and add a row to the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--learners", type=int, default=5_000)
    parser.add_argument("--landmarks", type=int, default=120)
    parser.add_argument("--rows", type=int, default=50, help="of each learner")
    parser.add_argument("--trees", type=int, default=5, help="of each forest")
    parser.add_argument("--exact", action="store_true")
    parser.add_argument("--jobs", type=int, default=2, help="threads")
    parser.add_argument("--out", type=Path, default=HERE / "landmarks.csv")
    options = parser.parse_args()
    data = make_linear_learners(
        options.learners, n_truths=5, n_rows=options.rows, n_features=6, random_state=0
    )
    learners = gather_learners(data.X, data.y, data.groups, caller="benchmark")
    forest = QuickForest(options.trees, min_samples_leaf=5)
    selection, seconds, _ = timed(select_models, learners, candidates={"rf": forest}, n_jobs=options.jobs)
    print(f"Select {seconds:.0f} s", flush=True)
    n, m = options.learners, options.landmarks
    row = {"learners": n, "landmarks": m, "rows": options.rows, "fewer": round(n * n / (2 * n * m), 1)}
    for form in ("landmarks", "exact") if options.exact else ("landmarks",):
        marks = m if form == "landmarks" else None
        exchange, seconds, processor = timed(
            cross_evaluate, selection, learners, landmarks=marks, n_jobs=options.jobs
        )
        partition, clustering, _ = timed(
            cluster_learners, exchange, learners, selection=selection, n_clusters=5, n_jobs=options.jobs
        )
        spectral = cluster_learners(exchange, learners, selection=selection, n_clusters=5, refine=None)
        row[f"{form}_exchange_seconds"] = round(seconds, 1)
        row[f"{form}_exchange_processor_seconds"] = round(processor, 1)
        row[f"{form}_cluster_seconds"] = round(clustering, 1)
        row[f"{form}_truth"] = round(adjusted_rand_score(data.truth, partition.labels), 4)
        print(form, row, *partition.notes, flush=True)
        if form == "landmarks":
            refined, plain = partition.labels, spectral.labels
        else:
            row["agreement"] = round(adjusted_rand_score(refined, partition.labels), 4)
            row["agreement_unrefined"] = round(adjusted_rand_score(plain, spectral.labels), 4)
    row["machine"] = this_machine(f"numpy {np.__version__}", f"scikit-learn {sklearn.__version__}")
    print(row)
    add_row(options.out, row)


if __name__ == "__main__":
    main()
