"""Promises beside gains on test rows: one line for each real table, split and form."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from promised import COLLABORATE, NO_DIFFERENCE, STAY_ALONE, promises
from scipy.stats import norm
from scipy.stats import t as student

# The tables and their splits are those of the other benchmark.
sys.path.insert(1, str(Path(__file__).parents[1] / "real_tables"))
from more_tables import NAMES, OFFICIAL, split
from tables import TABLES, Halves
from untouched import NAMES as OF_R
from untouched import untouched_tables

LETTERS = {COLLABORATE: "c", STAY_ALONE: "s", NO_DIFFERENCE: "n", "does not belong": "d", "too few rows": "f"}
# A learner without a model of its own, or without test rows.
NOT_COMPARED = "x"

COLUMNS = [
    "table",
    "seed",
    "form",
    "k",
    "seconds",
    "verdicts",
    "promised",
    "low",
    "high",
    "measured",
    "realised",
    "sure",
]


def levels(losses: list[np.ndarray]) -> np.ndarray:
    """Return each learner's mean loss on its test rows, shrunken towards the typical learner's.

    The logarithm of a mean over few rows is uncertain, and low in expectation. An empirical-Bayes normal
    model of the logarithms corrects both: uncertain means are moved towards those of the others.
    """
    means = np.array([loss.mean() for loss in losses])
    floor = 1e-9 * float(np.mean(means)) + np.finfo(float).tiny
    means = np.maximum(means, floor)
    n_rows = np.array([len(loss) for loss in losses])
    errors = np.array([np.std(loss, ddof=1) if len(loss) > 1 else 0.0 for loss in losses]) / np.sqrt(n_rows)
    # At least that of a mean of squared normal errors: few rows cannot tell their own spread.
    variance = np.maximum((errors / means) ** 2, 2 / n_rows)
    logs = np.log(means) + variance / 2
    between = max(float(np.var(logs)) - float(variance.mean()), 0.0)
    weight = between / (between + variance)
    centre = np.average(logs, weights=1 / (between + variance))
    shrunken: np.ndarray = np.exp(centre + weight * (logs - centre))
    return shrunken


def surely(excess: np.ndarray) -> float:
    """Return by how many normal standard errors a paired difference is above zero, by Student's quantile."""
    if len(excess) < 2:
        return 0.0
    error = float(excess.std(ddof=1)) / np.sqrt(len(excess))
    if error == 0:
        return 0.0
    value = float(excess.mean()) / error
    return float(np.sign(value) * norm.isf(student.sf(abs(value), len(excess) - 1)))


def _cells(values: np.ndarray) -> str:
    return " ".join(f"{value:.3g}" for value in values)


def one_table(
    table: str, seed: int, form: str, data: Halves | None = None, candidates: Any = None
) -> dict[str, Any]:
    """Fit one split of a table and compare what learners were told with their test rows."""
    data, start = data or split(table, seed), time.process_time()
    stated = promises(data.X, data.y, data.groups, form, candidates)
    seconds = time.process_time() - start
    known = np.isin(data.groups_test, stated.learners)
    X, y, groups = data.X_test[known], data.y_test[known], data.groups_test[known]
    own_error, others = (y - stated.own(X, groups)) ** 2, (y - stated.others(X, groups)) ** 2
    compared = stated.compared & np.isin(stated.learners, groups)
    places = np.flatnonzero(compared)
    mine = [own_error[groups == stated.learners[j]] for j in places]
    theirs = [others[groups == stated.learners[j]] for j in places]
    realised, sure = np.full(len(compared), np.nan), np.full(len(compared), np.nan)
    saved = np.array([a.mean() - b.mean() for a, b in zip(mine, theirs, strict=True)])
    realised[places] = saved / levels(mine) if len(places) else saved
    sure[places] = [surely(a - b) for a, b in zip(mine, theirs, strict=True)]
    letters = [LETTERS.get(verdict, "?") for verdict in stated.verdict.tolist()]
    return {
        "table": table,
        "seed": seed,
        "form": form,
        "k": int(stated.model.n_clusters_),
        "seconds": f"{seconds:.1f}",
        "verdicts": "".join(np.where(compared, letters, NOT_COMPARED).tolist()),
        "promised": _cells(stated.gain),
        "low": _cells(stated.low),
        "high": _cells(stated.high),
        "measured": _cells(stated.measured),
        "realised": _cells(realised),
        "sure": _cells(sure),
    }


def tables_here(wanted: list[str]) -> list[str]:
    """Return the wanted tables whose files are here; the others are named."""
    if any(table in OF_R for table in wanted):
        try:
            TABLES.update(untouched_tables())
        except Exception as why:
            print(f"Tables of packages of R are left out: {why}", flush=True)
    found = []
    for table in wanted:
        try:
            split(table, 0)
        except (KeyError, SystemExit) as why:
            print(f"{table} is left out: {why}", flush=True)
        else:
            found.append(table)
    return found


EVERY_TABLE = tuple(name for name in NAMES if name != OFFICIAL)
