"""Draw the time against the number of learners, with the double loop extrapolated.

    python benchmarks/speed/plot.py

Reads ``million.csv`` (GPU), ``growth.csv`` (processor) and the double loop of ``results.csv``, each as far as
it is there, and writes ``million.svg``.
"""

from __future__ import annotations

import csv
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

HERE = Path(__file__).parent


def rows_of(name: str) -> list[dict[str, str]]:
    """Return the rows of a table, none where it is missing."""
    path = HERE / name
    if not path.exists():
        return []
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def main() -> None:
    """Draw and write."""
    # Without a date and with fixed names the same numbers give the same file.
    mpl.rcParams["svg.hashsalt"] = "coterie"
    figure, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
    series = {
        "one H200, five clusters given": [
            (float(r["learners"]), float(r["seconds"]))
            for r in rows_of("million.csv")
            if (r["clusters"], r["way"]) == ("5", "exact")
        ],
        "one H200, number of clusters by rules": [
            (float(r["learners"]), float(r["seconds"]))
            for r in rows_of("million.csv")
            if (r["clusters"], r["width"]) == ("automatic", "16")
        ],
        "one H200, 1,500 landmarks (nine labels of ten right)": [
            (float(r["learners"]), float(r["seconds"]))
            for r in rows_of("million.csv")
            if r["way"] == "landmarks"
        ],
        "processor, number by the held-out rule": [
            (float(r["learners"]), float(r["exchange"]) + float(r["cluster"])) for r in rows_of("growth.csv")
        ],
    }
    for marker, (name, points) in zip("osD^", series.items(), strict=True):
        if points:
            ax.plot(*np.transpose(sorted(points)), marker=marker, label=name)
    loop = [r for r in rows_of("results.csv") if "L=1000 linear" in r["what"] and "double loop" in r["what"]]
    if loop:
        sizes = np.array([1e3, 1e7])
        seconds = float(loop[0]["baseline"]) * (sizes / 1e3) ** 2
        ax.plot(sizes, seconds, "k--", label="double loop on two cores, extrapolated")
        ax.text(1.3e6, seconds[1] / 40, f"{seconds[1] / 3600 / 24 / 365:.0f} years at 10⁷", ha="right")
    ax.set(xscale="log", yscale="log", xlabel="learners", ylabel="seconds, Exchange and Cluster")
    ax.grid(alpha=0.3)
    ax.legend(fontsize=8)
    figure.savefig(HERE / "million.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
