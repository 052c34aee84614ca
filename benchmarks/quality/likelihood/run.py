"""The likelihood beside the default search, on the same draws: ARI, K, clear, and seconds of the processor.

    python benchmarks/quality/likelihood/run.py [--draws 16] [--jobs 2] [--settings NAME ...] [--out FOLDER]
        [--methods default likelihood] [--again]

For every draw the learners select and exchange once; then each method clusters them, and only that is
timed. ``results.csv`` is written after every draw, and what it has is not made again, so that an interrupted
run goes on where it stopped. ``README.md`` has the table.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from settings import NEW, ONE_TRUTH_SETTINGS, SETTINGS, drawn
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from coterie import cluster_learners, cross_evaluate, select_models
from coterie.rows.learners import gather_learners

HERE = Path(__file__).parent
METHODS = {"default": "pooled", "likelihood": "likelihood"}
COLUMNS = ("setting", "seed", "method", "k", "ari", "exact", "clear", "seconds")


def candidates_of(setting: str) -> Any:
    """Return what the learners of a setting choose from, as in `benchmarks/quality/how_many`."""
    if "curved" in setting:
        return ["rf"]
    return (
        "default"
        if "apart" in setting
        else ["ridge"]
        if setting in ONE_TRUTH_SETTINGS
        else ["ridge", "lasso"]
    )


def one_draw(setting: str, seed: int, methods: list[str]) -> list[dict[str, Any]]:
    """Select and exchange once, then cluster by each method."""
    rows = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = drawn(setting, seed)
        learners = gather_learners(data.X, data.y, data.groups, caller="benchmark")
        candidates = candidates_of(setting)
        selection = select_models(learners, candidates=candidates, n_jobs=1)
        exchange = cross_evaluate(selection, learners, n_jobs=1)
        for method in methods:
            start = time.process_time()
            found = cluster_learners(
                exchange,
                learners,
                selection=selection,
                refine=METHODS[method],
                candidates=candidates,
                n_jobs=1,
            )
            seconds = time.process_time() - start
            found = found.aligned_to(data.learner_ids)
            ari = "" if data.truth is None else adjusted_rand_score(data.truth, found.labels)
            row = (setting, seed, method, found.n_clusters, ari, "" if ari == "" else int(ari == 1.0))
            rows.append(dict(zip(COLUMNS, (*row, int(found.clear), round(seconds, 2)), strict=True)))
    return rows


def read(path: Path) -> list[dict[str, Any]]:
    """Return the rows of an earlier run; none where there was none."""
    if not path.is_file():
        return []
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write all rows, sorted, so that two runs of the same draws differ in their seconds only."""
    place = {name: number for number, name in enumerate(SETTINGS)}
    rows.sort(key=lambda row: (place[row["setting"]], int(row["seed"]), row["method"]))
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _cells(rows: list[dict[str, Any]]) -> list[str]:
    if not rows:
        return ["-"] * 5
    known = [float(row["ari"]) for row in rows if row["ari"] != ""]
    exact = [int(row["exact"]) for row in rows if row["exact"] != ""]
    counts = sorted(int(row["k"]) for row in rows)
    numbers = ", ".join(f"{k} x {counts.count(k)}" for k in dict.fromkeys(counts))
    careful = np.mean([int(row["k"]) == 1 or not int(row["clear"]) for row in rows])
    seconds = np.mean([float(row["seconds"]) for row in rows])
    accuracy = [f"{np.mean(known):.2f}", f"{np.mean(exact):.2f}"] if known else ["-", "-"]
    return [*accuracy, numbers, f"{careful:.2f}", f"{seconds:.1f}"]


def page(rows: list[dict[str, Any]]) -> str:
    """Return a Markdown table with a row for each setting and method."""
    lines = [
        "| setting | draws | method | ARI | exact | K | K = 1 or not clear | seconds |",
        "|---|" + "---|" * 7,
    ]
    for setting in dict.fromkeys(row["setting"] for row in rows):
        for method in METHODS:
            mine = [row for row in rows if row["setting"] == setting and row["method"] == method]
            lines.append(f"| {setting} | {len(mine)} | {method} | " + " | ".join(_cells(mine)) + " |")
    return "\n".join(lines)


def main() -> None:
    """Make the draws that have not been made, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--draws", type=int, default=16)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--settings", nargs="*", choices=list(SETTINGS), default=list(SETTINGS), metavar="NAME"
    )
    parser.add_argument("--new", action="store_true", help="the settings of this folder only")
    parser.add_argument("--methods", nargs="*", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--again", action="store_true", help="make draws again that have been made")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    results = arguments.out / "results.csv"
    rows = read(results)
    wanted = [
        (setting, seed, method)
        for seed in range(arguments.draws)
        for setting in (NEW if arguments.new else arguments.settings)
        for method in arguments.methods
    ]
    if arguments.again:
        rows = [row for row in rows if (row["setting"], int(row["seed"]), row["method"]) not in set(wanted)]
    made = {(row["setting"], int(row["seed"]), row["method"]) for row in rows}
    missing: dict[tuple[str, int], list[str]] = {}
    for setting, seed, method in wanted:
        if (setting, seed, method) not in made:
            missing.setdefault((setting, seed), []).append(method)
    jobs = (delayed(one_draw)(*key, methods) for key, methods in missing.items())
    for found in Parallel(n_jobs=arguments.jobs, return_as="generator_unordered")(jobs):
        rows += found
        write(results, rows)
        print(*(tuple(row.values()) for row in found), sep="\n", flush=True)
    text = (HERE / "README.head.md").read_text() + "\n" + page(rows) + "\n"
    (arguments.out / "README.md").write_text(text)


if __name__ == "__main__":
    main()
