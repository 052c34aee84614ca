"""The same on real tables: K, labels and test error without each part of the search.

    python benchmarks/quality/ablation/tables.py [--seeds 2] [--parts NAME ...] [--out FOLDER]

COTERIE_DATA must name the folder of the tables.

Learners are split as in ``real_tables``: half of the rows of each train. Stability is the adjusted Rand index
between the labels of two such splits. Error is the mean over learners of the test error of models on pooled
rows (``collaboration="pooled"``). Answers are kept in ``--keep``. Writes ``tables.md``, a part of the page.
"""

from __future__ import annotations

import argparse
import json
import warnings
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from parts import PARTS
from run import read, write
from search import WHOLE, Models, acts_on, models_without, other_rules_left_out, remembered, searched
from settings import DEFAULT, Rows, sibling
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from coterie import collaborate
from coterie.datasets import data_home, local_copy

HERE = Path(__file__).parent
REAL = sibling("real_tables", "tables")
FOOT = (
    "Parts that change no answer of a table are not listed there. Two splits are few: single ratios are "
    "within their luck."
)
COLUMNS = ("table", "seed", "without", "k", "error", "labels")


def _parquet(name: str) -> pd.DataFrame:
    path = local_copy("", f"{name}.parquet")
    if path is None:
        raise SystemExit(f"COTERIE_DATA must name a folder that has {name}.parquet.")
    return pd.read_parquet(path)


def _cheese() -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    table = _parquet("cheese")
    predictors = pd.DataFrame({"price": np.log(table["PRICE"]), "display": table["DISP"]})
    return predictors, np.log(table["VOLUME"]), table["RETAILER"]


def _school_ilea() -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    table = _parquet("school_ilea")
    return table.drop(columns=["school", "score"]), table["score"], table["school"]


def _ames() -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    table = _parquet("ames")
    numbers = table.select_dtypes("number").drop(columns=["rownames", "Sale_Price"])
    return numbers, np.log(table["Sale_Price"]), table["Neighborhood"]


REAL.TABLES.update({"cheese": _cheese, "school_ilea": _school_ilea, "ames": _ames})


def _error(models: Models, answer: Any, halves: Any) -> float:
    """Return the mean over learners of the test error of models on pooled rows."""
    collaboration = collaborate(models.selection, answer, models.learners, candidates=DEFAULT)
    place = {learner: j for j, learner in enumerate(models.selection.learner_ids.tolist())}
    owner = np.array([place[group] for group in halves.groups_test.tolist()])
    predicted = collaboration.predict(halves.X_test, collaboration.weight_rows[owner])
    return float(halves.by_learner((halves.y_test - predicted) ** 2).mean())


def one_table(name: str, seed: int, parts: tuple[str, ...]) -> list[dict]:
    """Return what the search finds on one split of a table, as a whole and without each part."""
    halves = REAL.halves(name, seed)
    rows = Rows(halves.X, halves.y, halves.groups, None)
    found, errors, whole = [], {}, None
    with threadpool_limits(1), warnings.catch_warnings(), other_rules_left_out(), remembered():
        warnings.simplefilter("ignore")
        models = Models.of(rows, DEFAULT)
        for part in (WHOLE, *(part for part in PARTS if part.name in parts)):
            mine, answer = models, whole
            if part.kind != "rows" or acts_on(part, models):
                with part.off():
                    mine = models_without(part, models, rows, DEFAULT)
                    answer, _ = searched(mine, DEFAULT)
            whole = whole or answer
            # The models of the same clusters on the same rows are the same.
            key = answer.labels.tobytes() if mine.learners is models.learners else part.name
            if key not in errors:
                errors[key] = _error(mine, answer, halves)
            labels = dict(zip(map(str, answer.learner_ids.tolist()), answer.labels.tolist(), strict=True))
            values = (name, seed, part.name, answer.n_clusters, f"{errors[key]:.6g}", json.dumps(labels))
            found.append(dict(zip(COLUMNS, values, strict=True)))
    return found


def _agreement(one: dict[str, int], other: dict[str, int]) -> float:
    both = sorted(one.keys() & other.keys())
    return float(
        adjusted_rand_score([one[learner] for learner in both], [other[learner] for learner in both])
    )


def page(rows: list[dict]) -> str:
    """Return K, agreement with the whole, stability and error of every table and part."""
    head = "| table | without | K | ARI with the whole's labels | ARI between splits | error / the whole's |"
    lines = ["## Real tables", "", head, "|---|---|---|---|---|---|"]
    for table in dict.fromkeys(row["table"] for row in rows):
        mine = [row for row in rows if row["table"] == table]
        whole = {row["seed"]: row for row in mine if row["without"] == WHOLE.name}
        for part in dict.fromkeys(row["without"] for row in mine):
            of_part = [row for row in mine if row["without"] == part]
            labels = [json.loads(row["labels"]) for row in of_part]
            beside = [json.loads(whole[row["seed"]]["labels"]) for row in of_part]
            pairs = [_agreement(one, other) for one, other in zip(labels, beside, strict=True)]
            stable = [_agreement(one, other) for one, other in combinations(labels, 2)]
            ratio = np.mean([float(row["error"]) / float(whole[row["seed"]]["error"]) for row in of_part])
            # A part that changes nothing needs no line.
            if part != WHOLE.name and min(pairs) == 1.0 and abs(ratio - 1) < 1e-9:
                continue
            counts = ", ".join(str(row["k"]) for row in of_part)
            stability = f"{np.mean(stable):.2f}" if stable else "-"
            lines.append(
                f"| {table} | {part} | {counts} | {np.mean(pairs):.2f} | {stability} | {ratio:.4f} |"
            )
    return (
        "\n".join(
            [
                *lines,
                "",
                FOOT,
            ]
        )
        + "\n"
    )


def main() -> None:
    """Run the tables and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--tables", nargs="*", choices=list(REAL.TABLES), default=list(REAL.TABLES))
    parser.add_argument("--parts", nargs="*", default=[part.name for part in PARTS])
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--keep", type=Path, default=data_home() / "ablation")
    parser.add_argument("--jobs", type=int, default=2)
    chosen = parser.parse_args()
    for folder in (chosen.keep, chosen.out):
        folder.mkdir(parents=True, exist_ok=True)
    path = chosen.keep / "tables.csv"
    rows = read(path)
    made = {(row["table"], int(row["seed"])) for row in rows}
    jobs = [
        (name, seed) for name in chosen.tables for seed in range(chosen.seeds) if (name, seed) not in made
    ]
    workers = Parallel(n_jobs=chosen.jobs, return_as="generator_unordered")
    for found in workers(delayed(one_table)(*job, tuple(chosen.parts)) for job in jobs):
        rows += found
        write(path, rows)
        print(found[0]["table"], found[0]["seed"], "K", found[0]["k"], flush=True)
    rows.sort(key=lambda row: (row["table"], int(row["seed"])))
    (chosen.out / "tables.md").write_text(page(rows))


if __name__ == "__main__":
    main()
