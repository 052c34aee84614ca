"""Do prediction intervals hold what they promise? Coverage and width on the test rows of the real tables.

    COTERIE_DATA=FOLDER python benchmarks/quality/promises/intervals.py [--forms ...] [--seeds 0 1]

Every table of ``benchmarks/quality/real_tables`` is fitted on its training half. ``predict_interval`` is
asked for 90 % on the test half, and scored beside one split-conformal interval for each learner (Mondrian):
the same predictions, plus and minus the quantile of the learner's own absolute residuals out of fold, with
the correction for finite samples; where that quantile is infinite, the largest residual. A run that is in
``intervals.csv`` is not repeated. Writes ``intervals.csv`` and ``intervals.md``.
"""

from __future__ import annotations

import argparse
import csv
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from coterie import CoterieRegressor

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "real_tables"))

from more_tables import NAMES, split  # noqa: E402
from tables import TABLES  # noqa: E402
from untouched import untouched_tables  # noqa: E402

COVERAGE = 0.9
FORMS: dict[str, dict[str, Any]] = {
    "auto": {},
    "nested averages": {"refine": "average"},
    "average": {"refine": "average", "collaboration": "average"},
    "pooled": {"collaboration": "pooled"},
}
COLUMNS = (
    *("table", "form", "seed", "learners", "median_rows", "coverage", "known_learners", "below_80"),
    *("score", "mondrian_coverage", "mondrian_score", "ratio", "finite"),
)
# A learner's coverage is looked at where it has so many test rows.
ENOUGH = 30
LEAST = 0.8
# The coverage over all rows of a table is to be as near as this.
MARGIN = 0.02
# Learners of fewer rows are those for whom pooling residuals should pay.
FEW = 40


def interval_score(ends: np.ndarray, y: np.ndarray) -> float:
    """Return the mean width plus what misses cost: Winkler's score."""
    missed = np.maximum(ends[:, 0] - y, 0) + np.maximum(y - ends[:, 1], 0)
    return float(np.mean(ends[:, 1] - ends[:, 0] + 2 / (1 - COVERAGE) * missed))


def residuals_of(model: CoterieRegressor) -> dict[Any, np.ndarray]:
    """Return the residuals out of fold of each learner that the fit has seen.

    Those of learners with few rows are known in units of their scale.
    """
    intervals, shared = model.record_.intervals, model.collaboration_
    found = {
        learner: scale * rows[:, 0]
        for learner, scale, rows in zip(
            intervals.learner_ids.tolist(), intervals.scales, intervals.residuals, strict=True
        )
    }
    for learner, left in zip(shared.learner_ids.tolist(), shared.residuals, strict=True):
        found[learner] = left[np.isfinite(left)]
    return found


def half_width(residuals: np.ndarray) -> float:
    """Return the split-conformal quantile of absolute residuals; the largest where it is infinite."""
    if not len(residuals):
        return np.nan
    place = int(np.ceil(COVERAGE * (len(residuals) + 1)))
    return float(np.sort(np.abs(residuals))[min(place, len(residuals)) - 1])


def measured(name: str, form: str, seed: int, model: CoterieRegressor, data: Any) -> dict[str, Any]:
    """Return a line of the table of results."""
    with warnings.catch_warnings():
        # Some learners of the official folds of wages have no training row.
        warnings.simplefilter("ignore", UserWarning)
        predicted = model.predict(data.X_test, data.groups_test)
        ends = model.predict_interval(data.X_test, data.groups_test, COVERAGE)
    inside = (ends[:, 0] <= data.y_test) & (data.y_test <= ends[:, 1])
    own = residuals_of(model)
    widths = {learner: half_width(rows) for learner, rows in own.items()}
    everybody = half_width(np.concatenate(list(own.values())))
    half = np.array([widths.get(learner, np.nan) for learner in data.groups_test.tolist()])
    half = np.where(np.isnan(half), everybody, half)
    beside = np.column_stack([predicted - half, predicted + half])
    _, codes, counts = np.unique(data.groups_test, return_inverse=True, return_counts=True)
    shares = (np.bincount(codes, inside) / counts)[counts >= ENOUGH]
    _, sizes = np.unique(data.groups, return_counts=True)
    score, other = interval_score(ends, data.y_test), interval_score(beside, data.y_test)
    theirs = np.mean((beside[:, 0] <= data.y_test) & (data.y_test <= beside[:, 1]))
    return {
        "table": name,
        "form": form,
        "seed": seed,
        "learners": len(sizes),
        "median_rows": f"{np.median(sizes):g}",
        "coverage": f"{inside.mean():.4f}",
        "known_learners": len(shares),
        "below_80": int(np.sum(shares < LEAST)),
        "score": f"{score:.5g}",
        "mondrian_coverage": f"{theirs:.4f}",
        "mondrian_score": f"{other:.5g}",
        "ratio": f"{score / other:.4f}",
        "finite": int(np.isfinite(ends).all()),
    }


def run(name: str, form: str, seed: int) -> dict[str, Any]:
    """Fit a table and return a line of the table of results."""
    data = split(name, seed)
    model = CoterieRegressor(n_bootstrap=0, **FORMS[form]).fit(data.X, data.y, data.groups)
    return measured(name, form, seed, model, data)


def read(path: Path) -> list[dict[str, Any]]:
    """Return the lines that are there."""
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write all lines."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def summary(rows: list[dict[str, Any]]) -> str:
    """Return what the lines of one form say together."""
    coverages = np.array([float(row["coverage"]) for row in rows])
    ratios = np.array([float(row["ratio"]) for row in rows])
    few = np.array([float(row["median_rows"]) < FEW for row in rows])
    known, below = (sum(int(row[name]) for row in rows) for name in ("known_learners", "below_80"))
    held = np.sum(np.abs(coverages - COVERAGE) <= MARGIN)
    sentence = (
        f"{len(rows)} runs: coverage within .88 and .92 in {held}, from {coverages.min():.3f} to "
        f"{coverages.max():.3f}. Of {known} learners with {ENOUGH} test rows or more, {below} have less than "
        f".80 ({below / max(known, 1):.1%}). The score is Mondrian's or lower in {np.sum(ratios <= 1)} runs, "
        f"{np.exp(np.log(ratios).mean()):.3f} of it in the geometric mean"
    )
    if few.any():
        low = np.sum(ratios[few] <= 0.95)
        sentence += f"; .95 or lower in {low} of the {few.sum()} runs with fewer than {FEW} rows a learner"
    ends = "All ends are finite." if all(int(row["finite"]) for row in rows) else "Some ends are not finite."
    return f"{sentence}. {ends}"


def page(rows: list[dict[str, Any]]) -> str:
    """Return the page: a table for each form."""
    head = ("table", "seed", "learners", "rows", "coverage", "below .80", "Mondrian", "score / Mondrian's")
    lines = [(HERE / "intervals.head.md").read_text(encoding="utf-8").rstrip()]
    for form in FORMS:
        mine = [row for row in rows if row["form"] == form]
        if not mine:
            continue
        lines += [
            "",
            f"## {form}",
            "",
            summary(mine),
            "",
            f"| {' | '.join(head)} |",
            "|---" * len(head) + "|",
        ]
        for row in mine:
            below = f"{row['below_80']} of {row['known_learners']}"
            cells = (
                *(row["table"], row["seed"], row["learners"], row["median_rows"]),
                *(f"{float(row['coverage']):.3f}", below, f"{float(row['mondrian_coverage']):.3f}"),
                f"{float(row['ratio']):.3f}",
            )
            lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run what is not there yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="+", default=list(NAMES))
    parser.add_argument("--forms", nargs="+", default=["auto"], choices=list(FORMS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    asked = parser.parse_args()
    TABLES.update(untouched_tables())
    path = HERE / "intervals.csv"
    rows = read(path)
    there = {(row["table"], row["form"], int(row["seed"])) for row in rows}
    for form in asked.forms:
        for name in asked.tables:
            for seed in asked.seeds:
                if (name, form, seed) not in there and (name in TABLES or name == NAMES[-1]):
                    rows.append(run(name, form, seed))
                    write(path, rows)
    (HERE / "intervals.md").write_text(page(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
