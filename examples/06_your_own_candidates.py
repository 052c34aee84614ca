"""Your own candidates: curved truths need a candidate that can bend.

    python examples/06_your_own_candidates.py [FOLDER]

Eighteen learners of three truths, two of which have the same best straight line. With straight lines only,
these two cannot be told apart; with a spline among the candidates they can. Saves own_candidates.png into
FOLDER.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer

from coterie import CoterieRegressor, stack_learners

TRUTHS = {
    "falling": lambda x: -x,
    "rising in waves": lambda x: 0.2 * x + 1.5 * np.cos(2 * x),
    "rising in other waves": lambda x: 0.2 * x - 1.5 * np.cos(2 * x),
}
LINES = {"line": LinearRegression()}
# Any scikit-learn regressor is a candidate; scaling and basis functions belong inside it.
SPLINES = {
    "line": LinearRegression(),
    "spline": make_pipeline(SplineTransformer(n_knots=9), RidgeCV(np.logspace(-4, 2, 7))),
}


def draw_learners(rng: np.random.Generator) -> tuple[dict[str, tuple[np.ndarray, np.ndarray]], list[int]]:
    """Return eighteen datasets by name, and the truth of each."""
    datasets, truth = {}, []
    for number in range(18):
        x = rng.uniform(-np.pi, np.pi, size=(60, 1))
        signal = list(TRUTHS.values())[number % 3](x[:, 0])
        datasets[f"learner {number:02}"] = x, signal + rng.normal(scale=0.4, size=60)
        truth.append(number % 3)
    return datasets, truth


def main(folder: Path) -> None:
    """Fit with both sets of candidates, print, draw."""
    datasets, truth = draw_learners(np.random.default_rng(0))
    X, y, groups = stack_learners(datasets)
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), sharey=True, layout="constrained")
    span = np.linspace(-np.pi, np.pi, 200)[:, None]
    for ax, (name, candidates) in zip(
        axes, {"lines": LINES, "lines and splines": SPLINES}.items(), strict=True
    ):
        model = CoterieRegressor(candidates=candidates, collaboration="pooled").fit(X, y, groups=groups)
        pairs = {(t, k) for t, k in zip(truth, model.learner_labels_.tolist(), strict=True)}
        exact = len(pairs) == 3 == model.n_clusters_
        print(
            f"{name}: {model.n_clusters_} coteries, {'exact' if exact else 'not the truth'}; chosen: "
            f"{sorted(set(model.selection_.names))}; {' '.join(model.partition_.notes)}"
        )
        ax.scatter(X[:, 0], y, s=4, color="0.8")
        for k in range(model.n_clusters_):
            member = model.learner_ids_[model.learner_labels_ == k][0]
            ax.plot(span[:, 0], model.predict(span, groups=np.full(len(span), member)), label=f"coterie {k}")
        ax.set(xlabel="x", ylabel="y", title=f"Candidates: {name}")
        ax.legend(frameon=False)
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "own_candidates.png", dpi=110)
    plt.close(figure)
    print(f"The figure is {folder / 'own_candidates.png'}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
