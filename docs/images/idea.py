"""Draw the picture of the start page and the README: ``python docs/images/idea.py``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt

from coterie import CoterieRegressor

# Three panels beside each other; below each other for a phone.
TARGETS = {"idea.svg": (1, 3, (9.6, 2.6)), "idea-narrow.svg": (3, 1, (3.6, 6.6))}
SLOPES = np.tile([1.8, -1.2, 0.25], 6)
N_ROWS, NOISE = 10, 1.0
# Readable on white and on black, for a picture without a background.
COLOURS, GREY = ("#e0862b", "#3f8fd2", "#35a27f"), "#7d8590"


def rows(n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw rows of eighteen sites whose lines have one of three slopes."""
    rng = np.random.default_rng(seed)
    sites = np.repeat([f"site {site + 1:02d}" for site in range(len(SLOPES))], n_rows)
    x = rng.uniform(-2, 2, size=len(sites))
    y = np.repeat(SLOPES, n_rows) * x + NOISE * rng.normal(size=len(sites))
    return x[:, None], y, sites


def draw(name: str, panels: dict[str, Any], ends: np.ndarray) -> None:
    """Draw the panels: a line per site, in the colour of its coterie, and the rows behind it."""
    n_rows, n_columns, size = TARGETS[name]
    shared = {"sharex": True, "sharey": True, "layout": "constrained"}
    figure, axes = plt.subplots(n_rows, n_columns, figsize=size, **shared)
    for ax, (title, sites) in zip(axes, panels.items(), strict=True):
        for x, y, line, colour in sites:
            ax.plot(x, y, ".", color=colour, alpha=0.35, markersize=4)
            ax.plot(ends, line, color=colour, linewidth=1.6)
        ax.set_title(title, color=GREY, fontsize=12)
        ax.set_axis_off()
    figure.savefig(Path(__file__).with_name(name), transparent=True, metadata={"Date": None})


def main() -> None:
    """Fit three forms to the same rows and draw their lines with their errors on new rows."""
    mpl.rcParams.update({"svg.hashsalt": "coterie"})
    X, y, sites = rows(N_ROWS, seed=0)
    new_X, new_y, new_sites = rows(1_000, seed=1)
    model = CoterieRegressor(candidates="lr").fit(X, y, groups=sites)
    everybody = CoterieRegressor(candidates="lr", collaboration="global").fit(X, y, groups=sites)
    labels = dict(zip(model.learner_ids_, model.learner_labels_, strict=True))
    ends = np.linspace(-2, 2, 9)
    panels = {}
    for title, fitted, using in (
        ("Each site alone", model, "alone"),
        ("One model for all", everybody, "verdict"),
        ("coterie", model, "verdict"),
    ):
        error = np.sqrt(np.mean((new_y - fitted.predict(new_X, groups=new_sites, using=using)) ** 2))
        panels[f"{title}\nerror on new rows {error:.2f}"] = [
            (
                X[sites == site, 0],
                y[sites == site],
                fitted.predict(ends[:, None], groups=np.repeat(site, len(ends)), using=using),
                COLOURS[labels[site]] if title == "coterie" else GREY,
            )
            for site in model.learner_ids_
        ]
    for name in TARGETS:
        draw(name, panels, ends)


if __name__ == "__main__":
    main()
