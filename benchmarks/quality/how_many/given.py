"""Does Refine keep what Cluster found? The number of clusters is given; labels with and without Refine.

    python benchmarks/quality/how_many/given.py [--draws 16] [--settings NAME ...] [--out FOLDER]

Both start from the same models and losses. Refine must not be worse than the paper's plain method by more
than .02 in the mean adjusted Rand index, or by more than two standard errors of the paired difference.
Writes ``given.csv`` and ``given.md``.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from run import HERE, SETTINGS, candidates_of, drawn
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from coterie import cluster_learners, cross_evaluate, select_models

COLUMNS = ("setting", "seed", "plain", "refined")
MARGIN = 0.02
STANDARD_ERRORS = 2.0


def one_draw(setting: str, seed: int) -> dict | None:
    """Return the adjusted Rand index of both labellings, or None where there is no true partition."""
    data, learners = drawn(setting, seed)
    if data.truth is None:
        return None
    candidates, count = candidates_of(setting), len(np.unique(data.truth))
    found = {}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        selection = select_models(learners, candidates=candidates)
        exchange = cross_evaluate(selection, learners)
        for name, refine in (("plain", None), ("refined", "pooled")):
            partition = cluster_learners(
                exchange,
                learners,
                selection=selection,
                n_clusters=count,
                refine=refine,
                candidates=candidates,
            )
            found[name] = f"{adjusted_rand_score(data.truth, partition.labels):.4f}"
    return {"setting": setting, "seed": seed, **found}


def table(rows: list[dict]) -> str:
    """Return the mean indices as a Markdown table."""
    lines = [
        "| setting | plain | refined | difference | standard error | holds |",
        "|---|---|---|---|---|---|",
    ]
    for setting in dict.fromkeys(row["setting"] for row in rows):
        mine = [row for row in rows if row["setting"] == setting]
        plain, refined = (np.array([float(row[name]) for row in mine]) for name in ("plain", "refined"))
        gain = refined - plain
        error = gain.std(ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else 0.0
        holds = "yes" if gain.mean() >= -max(MARGIN, STANDARD_ERRORS * error) else "no"
        means = f"{plain.mean():.3f} | {refined.mean():.3f} | {gain.mean():+.3f} | {error:.3f}"
        lines.append(f"| {setting} | {means} | {holds} |")
    return "\n".join(lines)


def main() -> None:
    """Run the settings and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=16)
    parser.add_argument("--settings", nargs="*", choices=list(SETTINGS), default=list(SETTINGS))
    parser.add_argument("--out", type=Path, default=HERE)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    jobs = [(setting, seed) for setting in arguments.settings for seed in range(arguments.draws)]
    rows = [row for row in Parallel(n_jobs=2)(delayed(one_draw)(*job) for job in jobs) if row is not None]
    with open(arguments.out / "given.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    head = "# K given: does Refine keep what Cluster found?\n\n"
    how = (
        "Mean adjusted Rand index of the paper's plain clusters and of the refined ones, both with the true "
        f"K, {arguments.draws} draws a setting. Made by `python benchmarks/quality/how_many/given.py`.\n\n"
    )
    (arguments.out / "given.md").write_text(head + how + table(rows) + "\n")
    print(table(rows))


if __name__ == "__main__":
    main()
