"""Very many learners of six rows: seconds, memory and error, beside boosted trees on learners' levels.

    python benchmarks/speed/tiny_learners.py [--learners 100000] [--effort full]

Learners follow one of three linear truths, bent by a sine that all share, at levels of their own. The rival
is scikit-learn's boosted trees on the predictors and each learner's out-of-fold mean, as in
``benchmarks/quality/real_tables``. The error is that of new rows against the truth without noise. Each run
adds a row to ``benchmarks/speed/tiny_learners.csv``.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from pathlib import Path

import numpy as np

from coterie import CoterieRegressor
from rows import add_row, this_machine

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent / "quality" / "real_tables"))
ROWS, PREDICTORS, TRUTHS = 6, 4, 3


def main() -> None:
    """Fit both, and report."""
    from boosted import fit_hist

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--learners", type=int, default=100_000)
    parser.add_argument("--effort", choices=["full", "fast"], default="full")
    parser.add_argument("--out", type=Path, default=HERE / "tiny_learners.csv")
    options = parser.parse_args()
    rng, n = np.random.default_rng(0), options.learners
    truths, slopes = rng.integers(0, TRUTHS, n), rng.normal(size=(TRUTHS, PREDICTORS))
    levels, owner = rng.normal(0, 0.7, n), np.repeat(np.arange(n), ROWS)

    def truth(X: np.ndarray, who: np.ndarray) -> np.ndarray:
        return np.einsum("np,np->n", X, slopes[truths[who]]) + levels[who] + np.sin(2 * X[:, 0])

    X, X_new = rng.normal(size=(n * ROWS, PREDICTORS)), rng.normal(size=(n, PREDICTORS))
    y, y_new = truth(X, owner) + rng.normal(0, 0.5, n * ROWS), truth(X_new, np.arange(n))
    start, cpu = time.perf_counter(), time.process_time()
    model = CoterieRegressor(effort=options.effort).fit(X, y, groups=owner)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    start = time.perf_counter()
    predicted = model.predict(X_new, groups=np.arange(n))
    predict_seconds = time.perf_counter() - start
    start = time.process_time()
    rival = fit_hist(X, y, owner)
    row = {
        "learners": n,
        "effort": options.effort,
        "seconds": round(seconds, 1),
        "cpu_seconds": round(cpu, 1),
        "peak_gib": round(peak, 2),
        "predict_seconds": round(predict_seconds, 2),
        "error": round(float(np.mean((predicted - y_new) ** 2)), 4),
        "rival_cpu_seconds": round(time.process_time() - start, 1),
        "rival_error": round(float(np.mean((rival.predict(X_new, np.arange(n)) - y_new) ** 2)), 4),
        "variance": round(float(y_new.var()), 3),
        "machine": this_machine(),
    }
    add_row(options.out, row)
    print(row)


if __name__ == "__main__":
    main()
