"""How Exchange and Cluster grow with the number of learners, beside Select of the same run.

    python benchmarks/speed/growth.py [--only 1000 2000 5000 10000]

Linear learners of five truths, 100 rows, 20 predictors, one candidate (least squares), the number of clusters
by the held-out rule. Every size runs in a process of its own, which reports seconds of processor, so that a
busy machine changes little, and its peak memory. The claim: at 10,000 learners, exact, Exchange and Cluster
together take less than twice the time of Select, and less than 2 GiB. The table is ``growth.csv``.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import sklearn

HERE = Path(__file__).parent
ONE_SIZE = """
import json, resource, sys, time
from sklearn.metrics import adjusted_rand_score
from coterie import cluster_learners, cross_evaluate, select_models
from coterie.rows.learners import gather_learners
from coterie.datasets import make_linear_learners

n = int(sys.argv[1])
data = make_linear_learners(n, n_truths=5, n_rows=100, n_features=20, random_state=0)
truth = data.truth
learners = gather_learners(data.X, data.y, data.groups, caller="benchmark")
order = learners.ids[learners.appearance]
del data
clock = [time.process_time()]
selection = select_models(learners, candidates="lr")
clock.append(time.process_time())
exchange = cross_evaluate(selection, learners)
clock.append(time.process_time())
partition = cluster_learners(exchange, learners, selection=selection)
clock.append(time.process_time())
select, exchanged, clustered = (after - before for before, after in zip(clock, clock[1:]))
print(json.dumps({
    "learners": n,
    "select": round(select, 2),
    "exchange": round(exchanged, 2),
    "cluster": round(clustered, 2),
    "ratio": round((exchanged + clustered) / select, 2),
    "gibibytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
    "clusters": partition.n_clusters,
    "right": adjusted_rand_score(truth, partition.labels),
}))
"""


def main() -> None:
    """Run the sizes and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", type=int, nargs="+", default=[1_000, 2_000, 5_000, 10_000])
    parser.add_argument("--out", type=Path, default=HERE / "growth.csv")
    options = parser.parse_args()
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, "
    machine += f"numpy {np.__version__}, scikit-learn {sklearn.__version__}"
    rows = []
    for n_learners in options.only:
        command = [sys.executable, "-c", ONE_SIZE, str(n_learners)]
        answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        rows.append({**json.loads(answer), "machine": machine})
        print(rows[-1], flush=True)
        with open(options.out, "w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    if len(rows) > 1:
        sizes, ours = np.log([r["learners"] for r in rows]), [r["exchange"] + r["cluster"] for r in rows]
        print(f"Exchange and Cluster grow as L^{np.polyfit(sizes, np.log(ours), 1)[0]:.2f}")


if __name__ == "__main__":
    main()
