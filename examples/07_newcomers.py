"""Newcomers: how many rows does a new learner need before it is placed rightly, or turned away?

    python examples/07_newcomers.py [FOLDER]

Thirty learners of three truths shape the coteries. Then newcomers arrive with 2 to 120 rows each: sixty of
the same truths, and twenty strangers of another truth, for whom the right answer is "none of these". Saves
newcomers.png into FOLDER.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from coterie import CoterieRegressor
from coterie.datasets import make_linear_learners

ROWS = (2, 4, 8, 15, 30, 60, 120)
TEST_ROWS = 100


def main(folder: Path) -> None:
    """Fit, admit newcomers of each size, score them on further rows, draw."""
    coefficients = np.random.default_rng(1).standard_normal((4, 6))
    known, strange = coefficients[:3], coefficients[3:]
    old = make_linear_learners(n_learners=30, coefficients=known, noise_variance=3.0, random_state=0)
    model = CoterieRegressor(candidates="lr", collaboration="pooled").fit(old.X, old.y, groups=old.groups)
    truth_of = {int(k): int(t) for k, t in zip(model.learner_labels_, old.truth, strict=True)}
    print(f"{model.n_clusters_} coteries; learners need {model.min_rows_} rows for a model that is compared")

    right, errors, turned_away = [], [], []
    for n in ROWS:
        new = make_linear_learners(
            n_learners=60, coefficients=known, noise_variance=3.0, n_rows=n + TEST_ROWS, random_state=n
        )
        names = np.char.add(new.groups, f" with {n} rows")
        seen = np.arange(len(new.y)) % (n + TEST_ROWS) < n
        labels = model.admit(new.X[seen], new.y[seen], groups=names[seen])
        right.append(np.mean([truth_of.get(int(k)) == t for k, t in zip(labels, new.truth, strict=True)]))
        signal = model.predict(new.X[~seen], groups=names[~seen])
        errors.append(float(np.mean((signal - new.signal[~seen]) ** 2)))

        others = make_linear_learners(
            n_learners=20, coefficients=strange, noise_variance=3.0, n_rows=n, random_state=100 + n
        )
        names = np.char.add(others.groups, f", a stranger with {n} rows")
        turned_away.append(float(np.mean(model.admit(others.X, others.y, groups=names) == -1)))
        print(
            f"{n:2} rows: placed rightly {right[-1]:.2f}, error beyond the noise {errors[-1]:.2f}; "
            f"strangers turned away {turned_away[-1]:.2f}"
        )

    figure, (left, middle) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    left.semilogx(ROWS, right, "o-", base=2, label="placed rightly")
    left.semilogx(ROWS, turned_away, "s--", base=2, label="strangers turned away")
    left.set(xlabel="rows of the newcomer", ylabel="share", ylim=(-0.03, 1.03))
    left.legend(frameon=False)
    middle.semilogx(ROWS, errors, "o-", base=2, color="C1")
    middle.set(
        xlabel="rows of the newcomer", ylabel="squared error beyond the noise, new rows", ylim=(0, None)
    )
    for ax in (left, middle):
        ax.set_xticks(ROWS, [str(n) for n in ROWS])
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "newcomers.png", dpi=110)
    plt.close(figure)
    print(f"The figure is {folder / 'newcomers.png'}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
