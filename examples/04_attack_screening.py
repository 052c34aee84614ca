"""Attack screening: some of fifty learners report the negated response; the fiftieth knows it is intact.

    python examples/04_attack_screening.py [FOLDER]

The paper's last experiment, at nine of its fifty points: with whom should the fiftieth learn? With all,
alone, with its coterie, or, were they known, with the intact ones. Reads the grid stability table of the UCI
archive (data set 471) from the folder that COTERIE_DATA names. Saves attack_screening.png into FOLDER.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression

from coterie import CoterieRegressor
from coterie.datasets import local_copy

ATTACKED = (0, 1, 5, 10, 20, 30, 40, 45, 49)


def draw(curves: dict[str, list[float]], path: Path) -> None:
    """Draw the log error of each choice against the number of attacked learners."""
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    styles = {"with all": "s-", "alone": "^-", "intact ones (oracle)": "o-", "with its coterie": "x--"}
    for name, style in styles.items():
        axes.plot(ATTACKED, curves[name], style, label=name)
    axes.set(xlabel="attacked learners, of fifty", ylabel="log of the mean squared error on test rows")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main(folder: Path) -> None:
    """Attack more and more learners; let the fiftieth choose."""
    path = local_copy("grid_stability", "Data_for_UCI_named.csv")
    if path is None:
        sys.exit("COTERIE_DATA names no folder that has grid_stability/Data_for_UCI_named.csv.")
    table = np.loadtxt(path, delimiter=",", skiprows=1, usecols=range(13))
    table = np.random.default_rng(0).permutation(table)  # 8,000 rows for fifty learners, 2,000 to test
    learners = np.array([f"learner {number:02d}" for number in range(50)])
    X, intact, groups = table[:8000, :12], table[:8000, 12], np.repeat(learners, 160)
    X_test, y_test = table[8000:, :12], table[8000:, 12]
    me = learners[-1]

    def log_error(predictions: np.ndarray) -> float:
        return float(np.log(np.mean((predictions - y_test) ** 2)))

    def linear(rows: np.ndarray, y: np.ndarray) -> float:
        return log_error(LinearRegression().fit(X[rows], y[rows]).predict(X_test))

    curves: dict[str, list[float]] = {}
    for d in ATTACKED:
        attacked = np.isin(groups, learners[:d])
        y = np.where(attacked, -intact, intact)
        model = CoterieRegressor(candidates="lr", collaboration="pooled").fit(X, y, groups=groups)
        choices = {
            "with all": linear(np.ones(len(y), dtype=bool), y),
            "alone": linear(groups == me, y),
            "intact ones (oracle)": linear(~attacked, y),
            "with its coterie": log_error(model.predict(X_test, groups=np.full(len(y_test), me))),
        }
        for name, value in choices.items():
            curves.setdefault(name, []).append(value)
        mine = model.learner_labels_[-1] == model.learner_labels_
        said = "exact" if (mine == (np.arange(50) >= d)).all() else "not exact"
        print(f"{d:2} attacked: {model.n_clusters_} coteries, mine has {mine.sum()}: {said}")

    folder.mkdir(parents=True, exist_ok=True)
    draw(curves, folder / "attack_screening.png")
    print(f"The figure is {folder / 'attack_screening.png'}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
