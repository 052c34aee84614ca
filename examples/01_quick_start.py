"""Quick start: thirty learners of three truths, from rows to coteries, tables and figures.

    python examples/01_quick_start.py [FOLDER]

Prints who learns with whom and whether it pays; saves the figures into FOLDER (default: ``demo``).
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

import coterie
from coterie import CoterieRegressor
from coterie.datasets import make_linear_learners
from coterie.displays import (
    ClusterCountDisplay,
    EigenvaluesDisplay,
    EmbeddingDisplay,
    GainsDisplay,
    LossHeatmapDisplay,
)

FIGURES = {
    "losses": LossHeatmapDisplay,
    "eigenvalues": EigenvaluesDisplay,
    "embedding": EmbeddingDisplay,
    "how_many": ClusterCountDisplay,
    "gains": GainsDisplay,
}


def main(folder: Path) -> None:
    """Fit, print, draw, save."""
    data = make_linear_learners(n_learners=30, n_truths=3, n_rows=60, n_features=6, random_state=0)
    model = CoterieRegressor().fit(data.X, data.y, groups=data.groups)

    print(f"{len(model.learner_ids_)} learners, {model.n_clusters_} coteries (by {model.partition_.rule}):")
    for label in range(model.n_clusters_):
        members = model.learner_ids_[model.learner_labels_ == label]
        print(f"  coterie {label}: {', '.join(name.removeprefix('learner ') for name in members)}")
    rules = {name: curve.chosen for name, curve in model.partition_.curves.items()}
    print(f"Clusters by rule: {', '.join(f'{rule} {count}' for rule, count in rules.items())}")
    for note in model.partition_.notes:
        print(f"Note: {note}")

    gains = model.gains_
    print("\nDoes it pay? Mean squared error, held out:\n")
    print(gains)
    print(
        f"\nOn average: alone {gains['error_alone'].mean():.3f}, with the coterie "
        f"{gains['error_with'].mean():.3f}, with all {gains['error_all'].mean():.3f}."
    )

    folder.mkdir(parents=True, exist_ok=True)
    for name, display in FIGURES.items():
        figure = display.from_estimator(model).plot().figure_
        figure.savefig(folder / f"{name}.png", dpi=120)
        plt.close(figure)
    coterie.save(model, folder / "model.coterie")
    print(f"\nFigures and model are in {folder}/")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
