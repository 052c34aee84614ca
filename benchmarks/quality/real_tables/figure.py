"""The picture: errors over the best rival's, a line of dots for each table."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from summarise import VERSIONS, Results

mpl.use("Agg")

import matplotlib.pyplot as plt

CUT = 1.5
COLOURS = {
    "LightGBM with id": "#D55E00",
    "LightGBM with id and level": "#E69F00",
    "HistGradientBoosting with id": "#009E73",
    "CatBoost with id": "#CC79A7",
    "GPBoost, random intercepts": "#56B4E9",
    "GPBoost, random slopes": "#117733",
    "alone": "#222222",
}


def draw(results: Results, path: Path) -> None:
    """Draw each method's error over the best rival's, a line of dots for each table."""
    tables = results.tables()
    figure, ax = plt.subplots(figsize=(8.5, 0.32 * len(tables) + 1.8), layout="constrained")
    for method in reversed(results.methods()):
        ours = method in VERSIONS
        ratios = np.array([results.ratio(table, method)[0] for table in tables])
        named = ours or method in COLOURS
        ax.scatter(
            np.minimum(ratios, CUT),
            range(len(tables)),
            s=60 if ours else 22,
            marker="D" if ours else "o",
            color="#0072B2" if ours else COLOURS.get(method, "#C8C8C8"),
            label=method if named else None,
            zorder=3 if ours else 2 if named else 1,
        )
    ax.axvline(1.0, color="#222222", linewidth=0.8, linestyle=(0, (4, 3)))
    ax.set_yticks(range(len(tables)), tables, fontsize=8)
    ax.invert_yaxis()
    ax.set_xlabel(f"error / best rival's (cut at {CUT:g}); grey: other methods", fontsize=9)
    ax.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside right upper", fontsize=8, frameon=False, reverse=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)
