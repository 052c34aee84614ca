"""Are attacked learners found? Precision and recall on the electrical grid, attack by attack.

    python benchmarks/quality/attacks/run.py [--draws 2] [--out FOLDER]

Needs the grid table: in the folder named by COTERIE_DATA, in the cache, or from the network. Writes
``results.csv`` and ``README.md``.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from coterie import collaborate, cross_evaluate, select_models
from coterie.method.cluster import search_clusters
from coterie.method.search import SearchOptions
from coterie.rows.learners import gather_learners
from coterie.verdicts import Outliers, measure_cluster_fit, outliers_among

# The root of the repository, where the reproductions are.
sys.path.insert(0, str(Path(__file__).parents[3]))
from reproductions.grid.data import load_grid_stability
from reproductions.grid.splitting import split_into_learners

HERE = Path(__file__).parent
N_LEARNERS, N_ROWS = 50, 160
COUNTS = (0, 5, 15, 24)
FORMS = ("pooled", "average")
TRUSTS = ("largest", None)

DATA_ATTACKS: dict[str, Callable[[np.ndarray, float, np.random.Generator], np.ndarray]] = {
    "negated": lambda y, spread, generator: -y,
    "permuted": lambda y, spread, generator: generator.permutation(y),
    "shifted": lambda y, spread, generator: y + 2 * spread,
    "scaled": lambda y, spread, generator: 3 * y,
    "noise": lambda y, spread, generator: generator.normal(y.mean(), y.std(), len(y)),
}


class Answers:
    """A model that answers by a rule of its own."""

    def __init__(self, rule: Callable[[np.ndarray], np.ndarray]) -> None:
        self.rule = rule

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Answer."""
        return self.rule(X)


MODEL_ATTACKS: dict[str, Callable[[Any, float, float], Answers]] = {
    "constant": lambda other, middle, spread: Answers(lambda X: np.full(len(X), middle)),
    "NaN": lambda other, middle, spread: Answers(lambda X: np.full(len(X), np.nan)),
    "huge": lambda other, middle, spread: Answers(lambda X: 1e6 * (1 + other.predict(X))),
    "copied and shifted": lambda other, middle, spread: Answers(lambda X: other.predict(X) + 2 * spread),
}


def found(
    attack: str, count: int, seed: int, form: str
) -> tuple[np.ndarray, dict[str | None, Outliers], int]:
    """Return who was attacked, the outliers by trust, and the number of clusters."""
    table = load_grid_stability()
    split = split_into_learners(table.X, table.y, N_LEARNERS, N_ROWS, random_state=seed)
    generator = np.random.default_rng([seed, count])
    attacked = np.isin(np.arange(N_LEARNERS), generator.permutation(N_LEARNERS)[:count])
    y = split.y.copy()
    spread, middle = float(y.std()), float(y.mean())
    if attack in DATA_ATTACKS:
        for j in np.flatnonzero(attacked):
            mine = slice(j * N_ROWS, (j + 1) * N_ROWS)
            y[mine] = DATA_ATTACKS[attack](y[mine], spread, generator)
    learners = gather_learners(split.X, y, split.groups, caller="benchmark")
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        selection = select_models(learners, candidates=["ridge"])
        if attack in MODEL_ATTACKS:
            honest = np.flatnonzero(~attacked)
            models = list(selection.models)
            for j in np.flatnonzero(attacked):
                other = selection.models[generator.choice(honest)]
                models[j] = MODEL_ATTACKS[attack](other, middle, spread)
            selection = replace(selection, models=tuple(models))
        exchange = cross_evaluate(selection, learners)
        clustering = search_clusters(exchange, learners, selection, SearchOptions(refine=form))
        partition = clustering.partition
        coterie = collaborate(selection, partition, learners, method="pooled", candidates=["ridge"])
    cluster_fit = measure_cluster_fit(clustering, selection, coterie)
    outliers = {trust: outliers_among(exchange, partition, cluster_fit, trust) for trust in TRUSTS}
    return attacked, outliers, partition.n_clusters


def scored(attack: str, count: int, seed: int, form: str) -> list[dict[str, Any]]:
    """Return precision, recall and the share of right kinds, a row for each trust."""
    attacked, answers, n_clusters = found(attack, count, seed, form)
    rows = []
    for trust, outliers in answers.items():
        suspects = outliers.data | outliers.model
        hits = suspects & attacked
        kind = outliers.data if attack in DATA_ATTACKS else outliers.model
        rows.append(
            {
                "attack": attack,
                "attacked": count,
                "seed": seed,
                "refine": form,
                "trusted": trust or "none",
                "k": n_clusters,
                "suspects": int(suspects.sum()),
                "precision": round(float(hits.sum() / suspects.sum()), 4) if suspects.any() else "",
                "recall": round(float(hits.sum() / count), 4) if count else "",
                "kind": round(float(kind[hits].mean()), 4) if hits.any() else "",
            }
        )
    return rows


def _mean(rows: list[dict[str, Any]], name: str) -> str:
    values = [float(row[name]) for row in rows if row[name] != ""]
    return f"{np.mean(values):.2f}" if values else "-"


def table(rows: list[dict[str, Any]]) -> str:
    """Return precision / recall / kind as a Markdown table."""
    columns = [(form, trust or "none") for form in FORMS for trust in TRUSTS]
    heads = [f"refine {form}, trusted {trust}" for form, trust in columns]
    lines = ["| attack, learners attacked | " + " | ".join(heads) + " |", "|---|" + "---|" * len(heads)]
    for attack, count in dict.fromkeys((row["attack"], row["attacked"]) for row in rows):
        cells = []
        for form, trust in columns:
            key = (attack, count, form, trust)
            mine = [r for r in rows if (r["attack"], r["attacked"], r["refine"], r["trusted"]) == key]
            if count:
                cells.append(" / ".join(_mean(mine, name) for name in ("precision", "recall", "kind")))
            else:
                cells.append(f"{np.mean([row['suspects'] for row in mine]):.2f} suspects")
        lines.append(f"| {attack}, {count} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Run all attacks and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--out", type=Path, default=HERE)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    settings = [("nobody", 0)]
    settings += [(attack, count) for attack in (*DATA_ATTACKS, *MODEL_ATTACKS) for count in COUNTS[1:]]
    rows: list[dict[str, Any]] = []
    for attack, count in settings:
        start = time.perf_counter()
        mine = [
            row
            for seed in range(arguments.draws)
            for form in FORMS
            for row in scored(attack, count, seed, form)
        ]
        rows += mine
        print(table(mine).splitlines()[-1], f"{time.perf_counter() - start:.0f} s", flush=True)
        with open(arguments.out / "results.csv", "w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    text = (HERE / "README.head.md").read_text() + "\nPrecision / recall / kind.\n\n" + table(rows) + "\n"
    (arguments.out / "README.md").write_text(text)


if __name__ == "__main__":
    main()
