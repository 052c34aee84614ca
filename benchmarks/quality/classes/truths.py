"""How many truths, and who follows which? Simulated learners of classes, beside 0/1 taken as numbers.

    python benchmarks/quality/classes/truths.py [--draws 16] [--settings NAME ...]

A draw is exact when the number of clusters and every label are right. Draws that are in ``truths.csv`` are
not made again. Writes ``truths.csv`` and ``truths.md``.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rivals import flexmix
from sklearn.metrics import adjusted_rand_score
from tables import Split

from coterie import CoterieClassifier, CoterieRegressor
from coterie.datasets import ClassSimulation, make_logistic_learners

HERE = Path(__file__).parent
SETTINGS: dict[str, dict[str, Any]] = {
    "three truths, 60 rows": {},
    "three truths, 30 rows, 10 % positives": {"n_rows": 30, "share": 0.1},
    "three curved truths, 300 rows": {"n_rows": 300, "curved": True},
    "three truths of three classes, 60 rows": {"n_classes": 3},
    "one truth, 60 rows": {"n_truths": 1},
    "one truth, 60 rows, 5 % positives": {"n_truths": 1, "share": 0.05},
}


def _labels(estimator: Any, data: ClassSimulation) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.set_params(collaboration="local", n_bootstrap=0)
        return estimator.fit(data.X, data.y, groups=data.groups).learner_labels_


def _by_classes(data: ClassSimulation, setting: str) -> Any:
    return _labels(CoterieClassifier(None if "curved" in setting else "linear"), data)


def _by_numbers(data: ClassSimulation, setting: str) -> Any:
    return _labels(CoterieRegressor(None if "curved" in setting else "linear"), data)


def _by_flexmix(data: ClassSimulation, setting: str) -> Any:
    rows = data.X, data.y, data.groups
    found = flexmix(Split(*rows, *(part[:2] for part in rows)), 0)[1]["labels"]
    return np.array([found[learner] for learner in data.learner_ids])


METHODS: dict[str, Callable[[ClassSimulation, str], Any]] = {
    "coterie, classes": _by_classes,
    "coterie, 0/1 as numbers": _by_numbers,
    "flexmix, BIC": _by_flexmix,
}


def measured(setting: str, method: str, seed: int) -> dict[str, Any]:
    """Draw once, and compare what a method finds with the truth."""
    data = make_logistic_learners(random_state=1000 + seed, **SETTINGS[setting])
    labels = METHODS[method](data, setting)
    found, agreement = len(np.unique(labels)), adjusted_rand_score(data.truth, labels)
    exact = int(found == len(np.unique(data.truth)) and agreement == 1)
    row = {"setting": setting, "method": method, "seed": seed}
    return {**row, "n_clusters": found, "ari": round(agreement, 4), "exact": exact}


def page(rows: pd.DataFrame) -> str:
    """Return the table as text."""
    lines = [
        "# How many truths: classes",
        "",
        "Made by `python benchmarks/quality/classes/truths.py`. Draws of",
    ]
    lines += [
        "24 learners with five predictors; K is not given. Candidates are logistic (of numbers: lines), the"
    ]
    lines += ["defaults for curved truths. flexmix has two classes, and no curves.", ""]
    lines += ["| setting | method | draws | exact | mean ARI | mean K |", "|---|---|---:|---:|---:|---:|"]
    for (setting, method), part in rows.groupby(["setting", "method"], sort=False):
        means = part[["ari", "n_clusters"]].mean()
        cells = f"{len(part)} | {part['exact'].sum()} | {means['ari']:.2f} | {means['n_clusters']:.2f}"
        lines.append(f"| {setting} | {method} | {cells} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Make the draws that are missing, and write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=16)
    parser.add_argument("--settings", nargs="*", choices=list(SETTINGS), default=list(SETTINGS))
    parser.add_argument("--methods", nargs="*", choices=list(METHODS), default=list(METHODS))
    options = parser.parse_args()
    file = HERE / "truths.csv"
    rows = pd.read_csv(file).to_dict("records") if file.is_file() else []
    done = {(row["setting"], row["method"], row["seed"]) for row in rows}
    for setting in options.settings:
        for method in options.methods:
            # Three classes are no numbers, and flexmix's binomial family has two.
            if "three classes" in setting and method != "coterie, classes":
                continue
            if "curved" in setting and method == "flexmix, BIC":
                continue
            for seed in range(options.draws):
                if (setting, method, seed) not in done:
                    rows.append(measured(setting, method, seed))
            if rows:
                pd.DataFrame(rows).to_csv(file, index=False)
                (HERE / "truths.md").write_text(page(pd.DataFrame(rows)), encoding="utf-8")


if __name__ == "__main__":
    main()
