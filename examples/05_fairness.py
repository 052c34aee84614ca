"""Fairness: learners differ by a sensitive value that no model may see; clusters stand in for it.

    python examples/05_fairness.py [FOLDER]

The paper's first experiment, one draw for each weight b of the sensitive value: thirty learners shape the
clusters, twenty newcomers are placed with one half of their rows and scored on the other. Each cluster has
one pooled model, and nobody a model of its own: a term per learner would rebuild the sensitive value's
effect. Saves fairness.png into FOLDER.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression

from coterie import CoterieRegressor

WEIGHTS = (0.01, 0.5, 1.0, 2.0, 3.0, 4.0)
SHOWN = 2.0


@dataclass(frozen=True)
class Drawn:
    """Rows of fifty learners, fifty each, and the sensitive value of each learner, which is not in X."""

    X: np.ndarray
    y: np.ndarray
    groups: np.ndarray
    learner_ids: np.ndarray
    sensitive: np.ndarray


def draw_learners(b: float) -> Drawn:
    """Draw y = X1 + 2 X2 - 2 X3 + 2 X4 + b R + noise, where each learner has one R."""
    rng = np.random.default_rng(0)
    sensitive = rng.standard_normal(50)
    X = rng.standard_normal((2500, 4))
    y = X @ [1.0, 2.0, -2.0, 2.0] + b * np.repeat(sensitive, 50) + rng.standard_normal(2500)
    ids = np.array([f"learner {number:02}" for number in range(50)])
    return Drawn(X, y, np.repeat(ids, 50), ids, sensitive)


def in_the_nearest_coterie(model: CoterieRegressor, newcomers: np.ndarray) -> np.ndarray:
    """Return, for each row of a newcomer, a member of its nearest coterie to predict as.

    Whom no coterie fits, `admit` leaves with a model of its own; its intercept would be the sensitive value.
    """
    shaped = zip(model.partition_.labels.tolist(), model.partition_.learner_ids.tolist(), strict=True)
    member_of = dict(shaped)
    placed = zip(model.admission_.learner_ids.tolist(), model.admission_.nearest.tolist(), strict=True)
    stand_in = {newcomer: member_of[k] for newcomer, k in placed}
    return np.array([stand_in[newcomer] for newcomer in newcomers.tolist()])


def one_draw(data: Drawn) -> tuple[dict[str, float], CoterieRegressor]:
    """Return the errors on the newcomers' second halves, and the model."""
    old = np.isin(data.groups, data.learner_ids[:30])
    new = np.flatnonzero(~old)
    place, score = new[::2], new[1::2]
    model = CoterieRegressor(candidates="lr", collaboration="pooled")
    model.fit(data.X[old], data.y[old], groups=data.groups[old])
    model.admit(data.X[place], data.y[place], groups=data.groups[place])

    sensitive = np.repeat(data.sensitive, len(data.y) // len(data.learner_ids))
    with_it = np.column_stack([data.X, sensitive])
    one = LinearRegression().fit(data.X[old], data.y[old])
    oracle = LinearRegression().fit(with_it[old], data.y[old])
    stand_ins = in_the_nearest_coterie(model, data.groups[score])
    predictions = {
        "one model for all": one.predict(data.X[score]),
        "one model per coterie": model.predict(data.X[score], groups=stand_ins),
        "one model that sees it": oracle.predict(with_it[score]),
    }
    return {name: float(np.mean((p - data.y[score]) ** 2)) for name, p in predictions.items()}, model


def main(folder: Path) -> None:
    """Draw learners for each weight, compare, draw figures."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    curves: dict[str, list[float]] = {}
    for b in WEIGHTS:
        data = draw_learners(b)
        errors, model = one_draw(data)
        for name, error in errors.items():
            curves.setdefault(name, []).append(error)
        shown = ", ".join(f"{name} {error:.2f}" for name, error in errors.items())
        print(f"b = {b:4}: {model.n_clusters_} coteries; {shown}")
        if b == SHOWN:
            value = dict(zip(data.learner_ids.tolist(), data.sensitive.tolist(), strict=True))
            values = [value[learner] for learner in model.partition_.learner_ids.tolist()]
            right.scatter(values, model.partition_.labels, c=model.partition_.labels, cmap="tab10")
    for name, errors in curves.items():
        left.plot(WEIGHTS, errors, "o-", label=name)
    left.set(xlabel="weight b of the sensitive value", ylabel="mean squared error, newcomers", yscale="log")
    left.legend(frameon=False)
    right.set(xlabel="sensitive value, never given to a model", ylabel="coterie", title=f"b = {SHOWN:g}")
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "fairness.png", dpi=110)
    plt.close(figure)
    print(f"The figure is {folder / 'fairness.png'}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
