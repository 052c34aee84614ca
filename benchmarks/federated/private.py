"""What privacy costs: coteries and predictions from noisy moments against epsilon.

    python benchmarks/federated/private.py [--classes]

Thirty sites of three linear truths with four predictors, noise variance a quarter (``make_linear_learners``).
Each sends its moments once, with noise for (epsilon, 1e-6) or exact. Their number of coteries is not known.
Ranges in the schema reach from minus to plus ``half`` standard deviations. Errors are mean squared errors on
500 new rows a site, over those from exact moments of the same rows: by the line of the coterie, and at home,
where a site weighs lines and its own ridge regression. ``private.csv`` has the table. With ``--classes`` the
response is one of two classes (``make_logistic_learners``), lines are of its probability and errors are Brier
scores; ``private_classes.csv`` has the table of five draws.
"""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from sklearn.metrics import adjusted_rand_score

from coterie.datasets import make_linear_learners, make_logistic_learners
from coterie.federated import make_site
from coterie.federated.moments import (
    Column,
    Pooled,
    Schema,
    conclude_moments,
    moments_of,
    open_moments,
    site_model,
)
from coterie.federated.tables import Promise

SITES, TRUTHS, PREDICTORS, DRAWS, TEST_ROWS = 30, 3, 4, 20, 500
ROWS = (100, 300, 1_000, 10_000)
EPSILONS = (None, 10.0, 3.0, 1.0, 0.5)
DELTA = 1e-6
# Predictors have the variance one; coefficients are drawn with the variance one, and noise is added.
SPREAD_OF_RESPONSE = (PREDICTORS + PREDICTORS / 16) ** 0.5
# Rows, and half ranges in standard deviations: the usual one, a narrow one and two wide ones.
SETTINGS = (*((n_rows, 2.0) for n_rows in ROWS), *((1_000, half) for half in (1.0, 3.0, 5.0)))
CLASS_SETTINGS, CLASS_DRAWS = 3, 5
# A site's own model takes most of the time; so many sites stand for all.
N_SITES_SCORED = 6


def agreed(half: float, *, classes: bool) -> Schema:
    """Return the schema that the sites agreed on."""
    columns = tuple(Column(f"x{k}", low=-half, high=half) for k in range(PREDICTORS))
    if classes:
        return Schema(Column("y", kind="category", levels=("0", "1")), columns)
    return Schema(Column("y", low=-half * SPREAD_OF_RESPONSE, high=half * SPREAD_OF_RESPONSE), columns)


def concluded(data: Any, rows: dict[str, Any], epsilon: float | None, schema: Schema) -> Pooled:
    """Return what follows from the moments of some rows of each site."""
    messages = []
    for site, kept in rows.items():
        X, y = data.X[kept], data.y[kept]
        if epsilon is None:
            named = {"site": site, "columns": schema.features, "target": "y"}
            messages.append(open_moments(X, y, seed=0, **named))
        else:
            messages.append(moments_of(X, y, site=site, schema=schema, promise=Promise(epsilon, DELTA)))
    return conclude_moments(messages)


def one_draw(n_rows: int, half: float, seed: int, classes: bool = False) -> dict[float | None, list[float]]:
    """Return recovery, number of coteries, and errors by the line and at home, for each epsilon."""
    data = (make_logistic_learners if classes else make_linear_learners)(
        n_learners=SITES,
        n_truths=TRUTHS,
        n_rows=n_rows + TEST_ROWS,
        n_features=PREDICTORS,
        random_state=seed,
    )
    whole = {site: np.flatnonzero(data.groups == site) for site in data.learner_ids.tolist()}
    rows = {site: found[:n_rows] for site, found in whole.items()}
    some = list(whole)[:N_SITES_SCORED]
    sites = {
        site: make_site(
            data.X[rows[site]], 1.0 * data.y[rows[site]], site=site, candidates=["ridge"], order=None
        )
        for site in some
    }
    found, schema = {}, agreed(half, classes=classes)
    for epsilon in EPSILONS:
        pooled = concluded(data, rows, epsilon, schema)
        by_line, by_site_model = [], []
        for site in whole:
            validation = whole[site][n_rows:]
            X, y = data.X[validation], data.y[validation]
            kept_within = (0, 1) if classes else (-np.inf, np.inf)
            predicted = pooled.pool.units.predictions(pooled.line(site), X)
            by_line.append(np.mean((np.clip(predicted, *kept_within) - y) ** 2))
            if site in sites:
                model = site_model(sites[site], pooled, schema.text if epsilon else b"")
                by_site_model.append(np.mean((np.clip(model.predict(X), *kept_within) - y) ** 2))
        labels = [pooled.conclusion.labels[site] for site in whole]
        recovery = adjusted_rand_score(data.truth, labels)
        found[epsilon] = [recovery, len(set(labels)), float(np.mean(by_line)), float(np.mean(by_site_model))]
    return found


def table(*, classes: bool) -> Iterator[dict[str, object]]:
    """Yield a row for every number of rows and epsilon."""
    for n_rows, half in SETTINGS[:CLASS_SETTINGS] if classes else SETTINGS:
        draws = [one_draw(n_rows, half, seed, classes) for seed in range(CLASS_DRAWS if classes else DRAWS)]
        for epsilon in EPSILONS:
            each = np.array([draw[epsilon] for draw in draws])
            exact = np.array([draw[None] for draw in draws])
            yield {
                "rows": n_rows,
                "half": f"{half:g}",
                "epsilon": "exact" if epsilon is None else f"{epsilon:g}",
                "recovery": f"{each[:, 0].mean():.3f}",
                "lowest recovery": f"{each[:, 0].min():.3f}",
                "three found": f"{np.mean(each[:, 1] == TRUTHS):.2f}",
                "error by line / exact": f"{each[:, 2].mean() / exact[:, 2].mean():.3f}",
                "error at home / exact": f"{each[:, 3].mean() / exact[:, 3].mean():.3f}",
            }


def main() -> None:
    """Measure, and write the table."""
    given = [word for word in sys.argv[1:] if word != "--classes"]
    classes = "--classes" in sys.argv
    usual = Path(__file__).with_name("private_classes.csv" if classes else "private.csv")
    path = Path(given[0]) if given else usual
    writer = None
    with open(path, "w", newline="") as file:
        for row in table(classes=classes):
            if writer is None:
                writer = csv.DictWriter(file, list(row))
                writer.writeheader()
            writer.writerow(row)
            file.flush()
            print(row)


if __name__ == "__main__":
    main()
