"""The picture: promised beside true gains, a dot for each federation and for each table."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from cells import Line, number
from tables_page import numbers_by_table

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

COLOURS = {"auto": "#0072B2", "nested averages": "#009E73", "average": "#D55E00"}
# Losses beyond this are drawn at the edge.
LOWEST = -1.0


def _dots(ax: Axes, form: str, promised: list[float], gained: list[float], label: str | None = None) -> None:
    x, y = np.maximum(promised, LOWEST), np.maximum(gained, LOWEST)
    ax.scatter(100 * x, 100 * y, s=14, alpha=0.7, color=COLOURS[form], label=label, linewidths=0)


def draw(simulated: list[Line], tables: list[Line], path: Path) -> None:
    """Draw mean gains of learners with the verdict *collaborate*, promised and true."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
    for form in COLOURS:
        mine = [line for line in simulated if line["form"] == form and line["promised"]]
        both = [[number(line, name) for line in mine] for name in ("promised", "realised")]
        _dots(left, form, *both, label=form)
        found = numbers_by_table([line for line in tables if line["form"] == form]).values()
        _dots(right, form, [n["promised"] for n in found], [n["gain"] for n in found])
    for ax, title, name in (
        (left, "simulated federations", "true"),
        (right, "real tables", "realised"),
    ):
        ax.axline((0, 0), slope=1, color="#222222", linewidth=0.8, linestyle=(0, (4, 3)))
        ax.axhline(0, color="#222222", linewidth=0.5)
        ax.set_title(title, fontsize=10)
        ax.set_xlabel("promised gain, %", fontsize=9)
        ax.set_ylabel(f"{name} gain, %", fontsize=9)
        ax.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper right", ncols=3, fontsize=8, frameon=False)
    figure.savefig(path, dpi=130)
    plt.close(figure)
