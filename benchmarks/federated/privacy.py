"""What blurring costs: how well the coteries are recovered against epsilon.

    python benchmarks/federated/privacy.py

Thirty sites of three linear truths with four predictors; each tells a ridge regression and losses. The
losses, the coefficients, or both are blurred by the Gaussian mechanism, delta 1e-6; the number of coteries
is known. The table is the mean adjusted Rand index over draws; ``privacy.csv`` has it.
"""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from sklearn.metrics import adjusted_rand_score

from coterie.datasets import make_linear_learners
from coterie.federated import Settings, conclude, make_party, score, share
from coterie.federated.messages import Blur

SITES, TRUTHS, PREDICTORS, DRAWS = 30, 3, 4, 5
ROWS = (100, 1_000, 10_000)
EPSILONS = (0.5, 1.0, 3.0, 10.0, 30.0, 100.0)
# Coefficients are drawn from N(0, 1): few vectors of five are longer than four.
NORM = 4.0
# The largest square that still tells: the variance of the response is about four.
SQUARE = 16.0
DELTA = 1e-6


def recovered(n_rows: int, what: str, epsilon: float, seed: int) -> float:
    """Return the adjusted Rand index of the coteries with the truths."""
    data = make_linear_learners(
        n_learners=SITES, n_truths=TRUTHS, n_rows=n_rows, n_features=PREDICTORS, random_state=seed
    )
    parties = []
    for site in data.learner_ids.tolist():
        mine = data.groups == site
        parties.append(make_party(data.X[mine], data.y[mine], site=site, candidates=["ridge"], seed=seed))
    # Who blurs blurs both; so little that it does not show stands for nothing.
    little = 900.0
    coefficients = Blur(epsilon if what in ("coefficients", "both") else little, DELTA, NORM)
    losses = Blur(epsilon if what in ("losses", "both") else little, DELTA, SQUARE)
    if what in ("losses", "nothing"):
        # The exact model travels, marked as blurred so that the losses may be.
        shares = [replace(share(party), privacy=coefficients) for party in parties]
    else:
        shares = [share(party, blur=coefficients) for party in parties]
    scores = [score(party, shares, blur=losses) for party in parties]
    found = conclude(shares, scores, settings=Settings(n_clusters=TRUTHS, min_rows=4, seed=seed))
    labels = [found.labels[site] for site in data.learner_ids.tolist()]
    return float(adjusted_rand_score(data.truth, labels))


def table() -> Iterator[dict[str, object]]:
    """Yield a row for every setting."""
    for n_rows in ROWS:
        draws = [recovered(n_rows, "nothing", 0.0, seed) for seed in range(DRAWS)]
        yield {"rows": n_rows, "blurred": "nothing", "epsilon": "", "recovery": round(np.mean(draws), 2)}
        for what in ("losses", "coefficients", "both"):
            for epsilon in EPSILONS:
                draws = [recovered(n_rows, what, epsilon, seed) for seed in range(DRAWS)]
                row = {"rows": n_rows, "blurred": what, "epsilon": epsilon}
                yield row | {"recovery": round(float(np.mean(draws)), 2)}


def main() -> None:
    """Measure, and write the table."""
    path = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_suffix(".csv"))
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, ["rows", "blurred", "epsilon", "recovery"])
        writer.writeheader()
        for row in table():
            writer.writerow(row)
            file.flush()
            print(row)


if __name__ == "__main__":
    main()
