"""Heart disease: who is sick, by hospital, and where is the answer sure?

    python examples/08_heart_disease.py [FOLDER]

Reads heart_disease.parquet (Detrano et al., 1989: four hospitals) from the folder that COTERIE_DATA names;
without it, hospitals are generated. Half of each hospital's patients train, the other half test. Every test
patient gets a probability, and the set of answers that holds the truth nine times in ten: "sick", "well", or
both, where the examination does not tell. Saves heart_disease.png into FOLDER.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import polars as pl

from coterie import CoterieClassifier
from coterie.datasets import local_copy

FORMS = {"alone": "local", "with the coterie": "pooled", "with all": "global", "nested coteries": "auto"}
NUMBERS = ["age", "sex", "trestbps", "chol", "fbs", "thalach", "exang", "oldpeak"]
SPLITS = 5


def generated_hospitals() -> pl.DataFrame:
    """Return hospitals of two kinds in the shape of the true table."""
    rng = np.random.default_rng(0)
    sizes = {"cleveland": 300, "hungarian": 260, "switzerland": 50, "va": 130}
    centre = np.repeat(list(sizes), list(sizes.values()))
    X = rng.normal(size=(len(centre), len(NUMBERS)))
    cp, restecg = rng.integers(0, 4, size=len(centre)), rng.integers(0, 3, size=len(centre))
    late = np.isin(centre, ["switzerland", "va"])
    slopes = np.where(
        late[:, None], [0.2, 0.5, 0, 0, 0.9, -0.2, 0.3, 0.2], [0.4, 1, 0.2, 0.3, 0, -0.8, 0.9, 1]
    )
    odds = np.where(late, 1.5, -0.3) + np.sum(slopes * X, axis=1) + 0.8 * (cp == 0)
    disease = (rng.uniform(size=len(centre)) < 1 / (1 + np.exp(-odds))).astype(int)
    columns = dict(zip(NUMBERS, X.T, strict=True))
    return pl.DataFrame({**columns, "cp": cp, "restecg": restecg, "disease": disease, "centre": centre})


def read_hospitals() -> pl.DataFrame:
    """Return the patients without gaps, or a stand-in and a sentence."""
    path = local_copy(".", "heart_disease.parquet")
    if path is None:
        print("COTERIE_DATA names no folder with heart_disease.parquet: these hospitals are generated.")
        return generated_hospitals()
    return pl.read_parquet(path).select(*NUMBERS, "cp", "restecg", "disease", "centre").drop_nulls()


def first_half(centre: np.ndarray, y: np.ndarray, seed: int) -> np.ndarray:
    """Mark a random half of each hospital's patients, of the sick and of the well."""
    rng = np.random.default_rng(seed)
    mark = np.zeros(len(centre), dtype=bool)
    for one, answer in sorted(set(zip(centre.tolist(), y.tolist(), strict=True))):
        rows = rng.permutation(np.flatnonzero((centre == one) & (y == answer)))
        mark[rows[: (len(rows) + 1) // 2]] = True
    return mark


def draw(losses: dict[str, np.ndarray], sure: np.ndarray, names: list[str], path: Path) -> None:
    """Draw each hospital's Brier score in every form, and how often the set has one answer."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    places = np.arange(len(names))
    for k, (form, by_centre) in enumerate(losses.items()):
        left.plot(by_centre, places + 0.12 * (1.5 - k), "o", label=form)
    left.set(xlabel="Brier score on the other half", title="Does it pay?")
    left.set_yticks(places, names)
    left.legend(frameon=False)
    right.barh(places, sure, color="C0", label="one answer")
    right.barh(places, 1 - sure, left=sure, color="0.85", label="sick or well")
    right.set(xlabel="share of patients", title="Sets that hold the truth nine times in ten", xlim=(0, 1))
    right.set_yticks(places, names)
    right.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=2)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main(folder: Path) -> None:
    """Fit on one half of the patients, test on the other, several times; draw."""
    table = read_hospitals()
    X = table.drop("disease", "centre").to_dummies(["cp", "restecg"], drop_first=True)
    y = np.where(table["disease"].to_numpy() == 1, "sick", "well")
    centre = table["centre"].to_numpy()
    names = sorted(set(centre.tolist()))

    def means(values: np.ndarray, test: np.ndarray) -> np.ndarray:
        return np.array([values[centre[test] == name].mean() for name in names])

    losses = {form: np.zeros(len(names)) for form in FORMS}
    held, sure = np.zeros(len(names)), np.zeros(len(names))
    for seed in range(SPLITS):
        train = first_half(centre, y, seed)
        test = ~train
        for form, collaboration in FORMS.items():
            # A hospital with few patients takes part, too, and has a model of its own.
            model = CoterieClassifier("linear", collaboration=collaboration, min_rows=4, n_bootstrap=0)
            model.fit(X.filter(train), y[train], groups=centre[train])
            came = y[test][:, None] == model.classes_
            chances = model.predict_proba(X.filter(test), groups=centre[test])
            losses[form] += means(np.sum((came - chances) ** 2, axis=1), test) / SPLITS
        sets = model.predict_set(X.filter(test), groups=centre[test], coverage=0.9)
        held += means((sets & came).any(axis=1), test) / SPLITS
        sure += means(sets.sum(axis=1) == 1, test) / SPLITS

    print(f"{model.n_clusters_} coteries of hospitals: {model.learner_labels_.tolist()}")
    print("Brier score on the other half of the patients, mean over hospitals:")
    for form, by_centre in losses.items():
        print(f"  {form:17} {by_centre.mean():.3f}")
    print("Sets of answers that are to hold the truth nine times in ten:")
    for name, share, single in zip(names, held, sure, strict=True):
        print(f"  {name:12} hold it for {share:.0%}, have one answer for {single:.0%}")
    folder.mkdir(parents=True, exist_ok=True)
    draw(losses, sure, names, folder / "heart_disease.png")
    print(f"The figure is {folder / 'heart_disease.png'}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
