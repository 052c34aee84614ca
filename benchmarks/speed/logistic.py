"""Exchange of logistic models: one product against a double loop over `predict_proba`.

    python benchmarks/speed/logistic.py [--learners 1000]

Learners have 100 rows and 20 predictors. The loop is run for three models and scaled up.
"""

from __future__ import annotations

import argparse
import os
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from coterie.engines import resolve_engine
from coterie.kernels.losses import loss_matrix
from coterie.loss import BrierScore
from coterie.method.fitting import fit_model
from coterie.models.logistic import QuickLogistic
from coterie.rows.learners import gather_learners


def main() -> None:
    """Time both, and print their ratio."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--learners", type=int, default=1_000)
    n_learners = parser.parse_args().learners
    rng = np.random.default_rng(0)
    owner = np.repeat(np.arange(n_learners), 100)
    X = rng.normal(size=(len(owner), 20))
    odds = np.einsum("np,np->n", X, rng.normal(size=(n_learners, 20))[owner])
    y = (rng.uniform(size=len(owner)) < 1 / (1 + np.exp(-odds))).astype(int)
    learners = gather_learners(X, y, owner, loss=BrierScore(2), caller="benchmark")
    spans = [learners.span(j) for j in range(n_learners)]
    models = [fit_model(QuickLogistic((1.0,)), X[s], learners.loss.target(learners.y[s])) for s in spans]
    best = np.inf
    for _ in range(3):
        start = time.perf_counter()
        loss_matrix(models, learners, resolve_engine())
        best = min(best, time.perf_counter() - start)
    start = time.perf_counter()
    for model in models[:3]:
        for span in spans:
            np.mean((learners.loss.predict(model, X[span]) - learners.y[span]) ** 2)
    loop = (time.perf_counter() - start) * n_learners / 3
    print(
        f"{n_learners} learners: one product {best:.3f} s, double loop {loop:.0f} s, ratio {loop / best:.0f}"
    )


if __name__ == "__main__":
    main()
