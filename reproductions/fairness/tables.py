"""What the fairness experiment prints and draws: the published table beside ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.displays._look import INK, PALETTE, calm
from reproductions.harness.cells import cell, column, mean_and_error, ratio_and_error
from reproductions.harness.experiment import Record, Table
from reproductions.harness.figures import new_figure, save_figure

Array = NDArray[Any]

# b: SEC-Fairness with its standard error, K with its standard deviation, Fairness and Oracle with theirs.
PUBLISHED: dict[float, tuple[tuple[float, float], ...]] = {
    0.01: ((1.03, 0.005), (1.0, 0.0), (1.03, 0.005), (1.03, 0.005)),
    0.5: ((1.12, 0.007), (2.25, 0.59), (1.20, 0.007), (1.03, 0.005)),
    1: ((1.41, 0.02), (2.65, 0.59), (2.04, 0.03), (0.92, 0.005)),
    2: ((1.96, 0.04), (2.64, 0.48), (5.19, 0.09), (1.06, 0.005)),
    3: ((4.31, 0.22), (2.77, 0.44), (12.55, 0.27), (0.96, 0.005)),
    4: ((4.79, 0.28), (2.86, 0.37), (15.16, 0.36), (1.00, 0.005)),
    5: ((4.21, 0.12), (2.97, 0.17), (18.89, 0.36), (0.99, 0.005)),
    6: ((12.03, 0.60), (2.81, 0.39), (50.58, 1.04), (1.06, 0.004)),
    20: ((80.47, 4.90), (2.91, 0.29), (438.64, 9.38), (1.07, 0.006)),
}

HEADS = {
    "paper": "paper's settings (ours)",
    "coterie": "coterie's defaults (ours)",
    "cv": "defaults, cross-validated K",
    "ten": "paper's settings, K = 10",
}


def _deviation(values: Array) -> tuple[float, float]:
    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")


def _ratios(records: Sequence[Record], b: float, variant: str) -> tuple[float, float]:
    return ratio_and_error(column(records, f"mse_{variant}", b=b), column(records, "mse_fairness", b=b))


def _published_ratio(b: float) -> float:
    return PUBLISHED[b][0][0] / PUBLISHED[b][2][0]


def tabulate(records: Sequence[Record], settings: Mapping[str, Any]) -> list[Table]:
    """Put the published numbers beside ours.

    Parameters
    ----------
    records : sequence of mapping
        Of all replications.
    settings : mapping
        As `SETTINGS`.

    Returns
    -------
    list of Table
        Ratios, errors, numbers of clusters, and the two methods that do not cluster.
    """
    weights, variants = settings["b"], list(settings["ways"])
    heads = ("b", "published", *(HEADS[variant] for variant in variants))
    ratios = [
        (
            f"{b:g}",
            f"{_published_ratio(b):.2f}",
            *(cell(_ratios(records, b, variant), 3) for variant in variants),
        )
        for b in weights
    ]
    errors = [
        (
            f"{b:g}",
            cell(PUBLISHED[b][0], 3),
            *(cell(mean_and_error(column(records, f"mse_{variant}", b=b)), 3) for variant in variants),
        )
        for b in weights
    ]
    counts = [
        (
            f"{b:g}",
            cell(PUBLISHED[b][1], 2),
            *(cell(_deviation(column(records, f"k_{variant}", b=b)), 2) for variant in variants),
        )
        for b in weights
    ]
    others = [
        (
            f"{b:g}",
            cell(PUBLISHED[b][2], 3),
            cell(mean_and_error(column(records, "mse_fairness", b=b)), 3),
            cell(PUBLISHED[b][3], 3),
            cell(mean_and_error(column(records, "mse_oracle", b=b)), 3),
        )
        for b in weights
    ]
    return [
        Table(
            "Mean squared error of SEC-Fairness divided by that of Fairness (standard error)",
            heads,
            tuple(ratios),
            ("This ratio is what compares: the paper seems to have drawn its learners once per b.",),
        ),
        Table("Mean squared error of SEC-Fairness (standard error)", heads, tuple(errors)),
        Table("Number of clusters (standard deviation)", heads, tuple(counts)),
        Table(
            "Mean squared error without clustering (standard error)",
            ("b", "Fairness, published", "Fairness (ours)", "Oracle, published", "Oracle (ours)"),
            tuple(others),
        ),
    ]


def draw(records: Sequence[Record], settings: Mapping[str, Any], folder: Path) -> list[Path]:
    """Draw the ratios to Fairness against b.

    Parameters
    ----------
    records : sequence of mapping
        Of all replications.
    settings : mapping
        As `SETTINGS`.
    folder : Path
        Where to.

    Returns
    -------
    list of Path
        The files.
    """
    figure = new_figure()
    ax = figure.add_subplot()
    weights = settings["b"]
    places = np.arange(len(weights))
    ax.plot(places, [_published_ratio(b) for b in weights], "o--", color=INK, label="published")
    for variant, colour, marker in zip(settings["ways"], PALETTE, "s^Dv", strict=False):
        ratios, errors = np.array([_ratios(records, b, variant) for b in weights]).T
        bars = np.nan_to_num(2 * errors)
        ax.errorbar(places, ratios, bars, marker=marker, color=colour, capsize=2, label=HEADS[variant])
    ax.set_yscale("log")
    ticks = (0.05, 0.1, 0.2, 0.5, 1.0)
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.set_xticks(places, [f"{b:g}" for b in weights])
    ax.set_xlabel("weight b of the sensitive variable")
    ax.set_ylabel("error relative to one model for all")
    ax.set_title("SEC-Fairness against Fairness (bars: two standard errors)", fontsize=10)
    ax.legend(frameon=False, fontsize=8)
    calm(ax)
    return save_figure(figure, folder, "ratio")
