"""Schools: which of 65 London schools share a relation between intake and exam, and does it pay?

    python examples/02_schools.py [FOLDER]

Reads exam_london/exam_london.csv.gz (Goldstein et al., 1993) from the folder that COTERIE_DATA names; without
it, schools are generated. Half of each school's pupils train, the other half test. Saves schools.png into
FOLDER.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import polars as pl

from coterie import CoterieRegressor
from coterie.datasets import local_copy

FORMS = {"alone": "local", "with the coterie": "pooled", "with all": "global", "nested coteries": "auto"}


def generated_schools() -> pl.DataFrame:
    """Return schools of three kinds in the shape of the true table."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(10, 120, size=65)
    school = np.repeat(np.arange(1, 66), sizes)
    kind = school % 3
    intake, girl = rng.normal(size=len(school)), rng.integers(0, 2, size=len(school))
    exam = np.array([-0.3, 0.0, 0.4])[kind] + np.array([0.4, 0.6, 0.7])[kind] * intake + 0.15 * girl
    exam = exam + rng.normal(scale=0.75, size=len(school))
    sex = np.where(girl == 1, "F", "M")
    return pl.DataFrame({"school": school, "normexam": exam, "standLRT": intake, "sex": sex})


def read_schools() -> pl.DataFrame:
    """Return the table of pupils, or a stand-in and a sentence."""
    path = local_copy("exam_london", "exam_london.csv.gz")
    if path is None:
        print(
            "COTERIE_DATA names no folder with exam_london/exam_london.csv.gz: these schools are generated."
        )
        return generated_schools()
    return pl.read_csv(path)


def first_half(school: np.ndarray, seed: int = 0) -> np.ndarray:
    """Mark a random half of each school's pupils."""
    rng = np.random.default_rng(seed)
    mark = np.zeros(len(school), dtype=bool)
    for one in np.unique(school):
        rows = rng.permutation(np.flatnonzero(school == one))
        mark[rows[: (len(rows) + 1) // 2]] = True
    return mark


def draw(X: np.ndarray, y: np.ndarray, label: np.ndarray, errors: dict[str, float], path: Path) -> None:
    """Draw each coterie's line and the errors on the other half."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    left.scatter(X[:, 0], y, s=4, color="0.8")
    span = np.linspace(-2.5, 2.5, 2)
    for k in np.unique(label):
        slope, level = np.polyfit(X[label == k, 0], y[label == k], 1)
        left.plot(span, level + slope * span, label=f"coterie {k}")
    left.set(xlabel="reading test at intake", ylabel="exam", title="One line per coterie")
    left.legend(frameon=False)
    right.plot(list(errors.values()), list(errors), "o", color="C0")
    right.set(xlabel="mean squared error on the other half of the pupils", title="Does it pay?")
    right.margins(x=0.2, y=0.3)
    right.grid(axis="y", color="0.9")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main(folder: Path) -> None:
    """Fit on one half of the pupils, test on the other, draw."""
    table = read_schools()
    X = table.select("standLRT", (pl.col("sex") == "F").cast(float).alias("girl")).to_numpy()
    y, school = table["normexam"].to_numpy(), table["school"].to_numpy()
    train = first_half(school)

    errors = {}
    for name, form in FORMS.items():
        model = CoterieRegressor(candidates="lr", collaboration=form)
        model.fit(X[train], y[train], groups=school[train])
        test = ~train & np.isin(school, model.learner_ids_)
        squares = (model.predict(X[test], groups=school[test]) - y[test]) ** 2
        errors[name] = float(np.mean([squares[school[test] == s].mean() for s in np.unique(school[test])]))
        print(f"{name:17} error {errors[name]:.3f} (mean over schools)")

    print(f"{model.n_clusters_} coteries of {np.bincount(model.learner_labels_).tolist()} schools")
    print("Rules:", {rule: curve.chosen for rule, curve in model.partition_.curves.items()})
    for note in model.partition_.notes:
        print(f"Note: {note}")
    labels = dict(zip(model.learner_ids_.tolist(), model.learner_labels_.tolist(), strict=True))
    folder.mkdir(parents=True, exist_ok=True)
    draw(
        X[train],
        y[train],
        np.array([labels[s] for s in school[train].tolist()]),
        errors,
        folder / "schools.png",
    )
    print(f"The figure is {folder / 'schools.png'}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
