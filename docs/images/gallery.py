"""Draw the figures of the gallery from the committed results: ``python docs/images/gallery.py``."""

from __future__ import annotations

import csv
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.ticker import NullLocator

HERE = Path(__file__).parent
RESULTS = HERE.parents[1] / "benchmarks" / "quality" / "real_tables" / "learners.csv"
TABLES = ("produc", "ames", "gapminder", "school_ilea", "parkinsons_telemonitoring")
SEED = "0"
TICKS = (0.02, 0.05, 0.1, 0.25, 0.5, 0.75, 1, 1.25, 2, 4)
GREY, BETTER, WORSE = "#7d8590", "#3f8fd2", "#d9822b"


def read() -> dict[tuple[str, str], np.ndarray]:
    """Return the errors of learners on test rows, by table and method."""
    with RESULTS.open(newline="") as file:
        return {
            (row["table"], row["method"]): np.array(row["errors"].split(), dtype=float)
            for row in csv.DictReader(file)
            if row["table"] in TABLES and row["seed"] == SEED
        }


def draw(table: str, ratios: np.ndarray) -> None:
    """Draw a learner as a dot: its error on test rows with others, as a share of its error alone."""
    ratios = np.sort(ratios)
    figure, ax = plt.subplots(figsize=(7.2, 2.1), layout="constrained")
    ax.axhline(1, color=GREY, linewidth=0.8)
    ax.scatter(range(len(ratios)), ratios, s=16, color=np.where(ratios <= 1, BETTER, WORSE))
    ax.set_yscale("log")
    ax.set_ylim(min(ratios[0] / 1.1, 0.7), max(ratios[-1] * 1.1, 1.4))
    ax.set_yticks([tick for tick in TICKS if ax.get_ylim()[0] < tick < ax.get_ylim()[1]])
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_locator(NullLocator())
    title = "error with others / error alone, a dot for each learner"
    ax.set_title(title, color=GREY, fontsize=10, loc="left")
    ax.set_xticks([])
    ax.tick_params(colors=GREY, which="both")
    ax.spines[:].set_visible(False)
    figure.savefig(HERE / f"gallery-{table}.svg", transparent=True, metadata={"Date": None})


def main() -> None:
    """Draw the first split of each table."""
    mpl.rcParams.update({"svg.hashsalt": "coterie"})
    errors = read()
    for table in TABLES:
        draw(table, errors[table, "coterie"] / errors[table, "alone"])


if __name__ == "__main__":
    main()
