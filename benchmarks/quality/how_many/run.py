"""Which rule finds the right number of clusters, and every label? All rules on the same draws.

    python benchmarks/quality/how_many/run.py [--draws 16] [--settings NAME ...] [--out FOLDER] [--again]

For every draw the learners select and exchange once; then each rule chooses K. The paper's rules label by
spectral clustering alone, held-out by its refined labels, in both forms. A draw is exact when K and every
label are right, up to a permutation. Writes ``results.csv`` and ``README.md``; draws that are in
``results.csv`` already are not made again, so that an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from coterie import cluster_learners, cross_evaluate, select_models
from coterie.datasets import STRESS_SETTINGS, Simulation, make_linear_learners, make_stress
from coterie.rows.learners import Learners, gather_learners

HERE = Path(__file__).parent
PAPER_RULES = ("eigengap", "gap", "gap-jump", "penalty", "cv")
COLUMNS = (*PAPER_RULES, "held-out, average", "held-out, pooled")


def _truths(n_truths: int, variance: float) -> Callable[[int], Simulation]:
    return lambda seed: make_linear_learners(
        n_truths=n_truths, noise_variance=variance, random_state=1000 + seed
    )


def _simulation1(snr: int) -> Callable[[int], Simulation]:
    """Return the paper's Simulation 1 with 20 predictors: two truths, ten learners of 50 rows each."""
    labels = np.repeat([0, 1], 10)
    return lambda seed: make_linear_learners(
        20, 2, 50, 20, noise_variance=20**2 / snr, labels=labels, random_state=1000 + seed
    )


def _stress(name: str) -> Callable[[int], Simulation]:
    return lambda seed: make_stress(name, 1000 + seed)


SETTINGS: dict[str, Callable[[int], Simulation]] = {
    "p=6, one truth, noise variance p/16": _truths(1, 6 / 16),
    "p=6, one truth, noise variance p": _truths(1, 6),
    "p=6, three truths, noise variance p/16": _truths(3, 6 / 16),
    "p=6, three truths, noise variance p/2": _truths(3, 3),
    "p=6, five truths, noise variance p/16": _truths(5, 6 / 16),
    "p=6, eight truths, noise variance p/16": _truths(8, 6 / 16),
    "Simulation 1, p=20, SNR 8": _simulation1(8),
    "Simulation 1, p=20, SNR 16": _simulation1(16),
    "Simulation 1, p=20, SNR 32": _simulation1(32),
    **{name: _stress(name) for name in STRESS_SETTINGS},
}


def exact(labels: np.ndarray, truth: np.ndarray) -> bool:
    """Tell whether two labellings are the same up to the names of the clusters."""
    pairs = set(zip(labels.tolist(), truth.tolist(), strict=True))
    return len(pairs) == len(set(labels.tolist())) == len(set(truth.tolist()))


def candidates_of(setting: str) -> Any:
    """Return what the learners of a setting choose from."""
    if "curved" in setting:
        return ["rf"]
    return ["ridge", "lasso"] if setting in STRESS_SETTINGS and "apart" not in setting else "default"


def drawn(setting: str, seed: int) -> tuple[Simulation, Learners]:
    """Draw a setting; Simulation 1 is standardised inside each learner, as in the paper."""
    data = SETTINGS[setting](seed)
    learners = gather_learners(data.X, data.y, data.groups, caller="benchmark")
    return data, learners.standardized()[0] if setting.startswith("Simulation 1") else learners


def one_draw(setting: str, seed: int) -> list[dict]:
    """Select and exchange once, then let every rule choose."""
    data, learners = drawn(setting, seed)
    candidates = candidates_of(setting)
    rows = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        selection = select_models(learners, candidates=candidates)
        exchange = cross_evaluate(selection, learners)
        answers = {}
        for form in ("average", "pooled"):
            answers[f"held-out, {form}"] = cluster_learners(
                exchange, learners, selection=selection, refine=form, candidates=candidates
            )
        curves = answers["held-out, pooled"].curves
        for rule in PAPER_RULES:
            answers[rule] = cluster_learners(exchange, n_clusters=curves[rule].chosen, refine=None)
    for rule, answer in answers.items():
        rows.append(
            {
                "setting": setting,
                "seed": seed,
                "rule": rule,
                "k": answer.n_clusters,
                "exact": "" if data.truth is None else int(exact(answer.labels, data.truth)),
                "clear": int(answer.clear) if rule.startswith("held-out") else "",
            }
        )
    return rows


def read(path: Path) -> list[dict]:
    """Return the rows of an earlier run; none where there was none."""
    if not path.is_file():
        return []
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def table(rows: list[dict]) -> str:
    """Return the share of exact draws as a Markdown table."""
    lines = ["| setting | " + " | ".join(COLUMNS) + " |", "|---|" + "---|" * len(COLUMNS)]
    for setting in dict.fromkeys(row["setting"] for row in rows):
        cells = []
        for rule in COLUMNS:
            mine = [row for row in rows if row["setting"] == setting and row["rule"] == rule]
            if mine[0]["exact"] == "":
                unclear = [int(row["clear"]) == 0 for row in mine] if rule.startswith("held-out") else []
                cells.append(f"unclear {np.mean(unclear):.2f}" if unclear else "-")
            else:
                cells.append(f"{np.mean([int(row['exact']) for row in mine]):.2f}")
        lines.append(f"| {setting} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Run the settings and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=16)
    parser.add_argument("--settings", nargs="*", choices=list(SETTINGS), default=list(SETTINGS))
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--again", action="store_true", help="make draws again that have been made")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    results = arguments.out / "results.csv"
    rows = [] if arguments.again else read(results)
    place = {name: number for number, name in enumerate(SETTINGS)}
    for setting in arguments.settings:
        start = time.perf_counter()
        made = {int(row["seed"]) for row in rows if row["setting"] == setting}
        missing = [seed for seed in range(arguments.draws) if seed not in made]
        draws = Parallel(n_jobs=2)(delayed(one_draw)(setting, seed) for seed in missing)
        rows += [row for draw in draws for row in draw]
        rows.sort(key=lambda row: (place[row["setting"]], int(row["seed"])))
        mine = [row for row in rows if row["setting"] == setting]
        seconds = f"{len(missing)} draws made in {time.perf_counter() - start:.0f} s"
        print(table(mine).splitlines()[-1], seconds, flush=True)
        # Written after every setting, so that an interrupted run keeps what it has measured.
        with open(results, "w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    text = (HERE / "README.head.md").read_text() + "\n" + table(rows) + "\n"
    (arguments.out / "README.md").write_text(text)
    if arguments.out == HERE:
        page = HERE.parents[2] / "docs" / "guide" / "how_many.md"
        before, rest = page.read_text().split("<!-- table -->")
        after = rest.split("<!-- end of table -->")[1]
        whole = f"{before}<!-- table -->\n{table(rows)}\n<!-- end of table -->{after}"
        page.write_text(whole)


if __name__ == "__main__":
    main()
