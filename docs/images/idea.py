"""Draw the picture of the start page and the README: ``python docs/images/idea.py``."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt

from coterie import CoterieRegressor

TARGET = Path(__file__).with_name("idea.svg")
SLOPES = np.tile([1.8, -1.2, 0.25], 5)
N_ROWS, NOISE = 12, 1.0
# Readable on white and on black, for a picture without a background.
COLOURS, GREY = ("#e0862b", "#3f8fd2", "#35a27f"), "#7d8590"
FORMS = {
    "alone": "Each site alone",
    "global": "One model for all",
    "auto": "coterie",
}


def rows(n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw rows of fifteen sites whose lines have one of three slopes."""
    rng = np.random.default_rng(seed)
    sites = np.repeat([f"site {site + 1:02d}" for site in range(len(SLOPES))], n_rows)
    x = rng.uniform(-2, 2, size=len(sites))
    y = np.repeat(SLOPES, n_rows) * x + NOISE * rng.normal(size=len(sites))
    return x[:, None], y, sites


def main() -> None:
    """Fit three forms to the same rows and draw their lines with their errors on new rows."""
    mpl.rcParams.update({"svg.hashsalt": "coterie", "svg.fonttype": "path", "text.color": GREY})
    X, y, sites = rows(N_ROWS, seed=0)
    new_X, new_y, new_sites = rows(1_000, seed=1)
    model = CoterieRegressor(candidates="lr").fit(X, y, groups=sites)
    everybody = CoterieRegressor(candidates="lr", collaboration="global").fit(X, y, groups=sites)
    predict = {
        "alone": lambda X, groups: model.predict(X, groups=groups, using="alone"),
        "global": lambda X, groups: everybody.predict(X, groups=groups),
        "auto": lambda X, groups: model.predict(X, groups=groups),
    }
    labels = dict(zip(model.learner_ids_, model.learner_labels_, strict=True))
    ends = np.linspace(-2, 2, 9)[:, None]
    figure, axes = plt.subplots(1, 3, figsize=(9.6, 3.1), sharex=True, sharey=True, layout="constrained")
    for ax, (form, title) in zip(axes, FORMS.items(), strict=True):
        error = np.sqrt(np.mean((new_y - predict[form](new_X, new_sites)) ** 2))
        for site in model.learner_ids_:
            mine = sites == site
            colour = COLOURS[labels[site] % len(COLOURS)] if form == "auto" else GREY
            ax.plot(X[mine, 0], y[mine], ".", color=colour, alpha=0.35, markersize=4)
            ax.plot(ends[:, 0], predict[form](ends, np.repeat(site, len(ends))), color=colour, linewidth=1.6)
        ax.set_title(f"{title}\nerror on new rows {error:.2f}", color=GREY, fontsize=12)
        ax.set_axis_off()
    figure.savefig(TARGET, transparent=True, metadata={"Date": None})
    print(f"{model.n_clusters_} coteries; the noise is {NOISE}: {TARGET}")


if __name__ == "__main__":
    main()
