"""What the grid experiment prints and draws: the published curve beside ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.displays._look import INK, PALETTE, QUIET, calm
from coterie.reproduce.cells import cell, column, mean_and_error
from coterie.reproduce.experiment import Record, Table
from coterie.reproduce.figures import new_figure, save_figure

Array = NDArray[Any]

# The paper gives two numbers of its red curve, "with all"; the rest of its figure is only drawn.
PUBLISHED_WITH_ALL = {0: -7.65, 49: -5.25}

HEADS = {"paper": "paper's settings (ours)", "coterie": "coterie's defaults (ours)"}
# The rows of the tables; the curves and results.csv have every d.
SHOWN = (0, 1, 5, 10, 20, 25, 30, 40, 45, 48, 49)


def _estimate(records: Sequence[Record], name: str, d: int) -> tuple[float, float]:
    return mean_and_error(column(records, name, d=d))


def _shown(settings: Mapping[str, Any]) -> list[int]:
    return [d for d in settings["attacked"] if d in SHOWN]


def _summary(records: Sequence[Record], settings: Mapping[str, Any], name: str) -> str:
    excess = {
        d: float(np.mean(column(records, f"sec_{name}", d=d) - column(records, "oracle", d=d)))
        for d in settings["attacked"]
    }
    worst = max(excess, key=lambda d: abs(excess[d]))
    exact = [np.mean(column(records, f"exact_{name}", d=d)) for d in settings["attacked"] if d > 0]
    found = (
        f"; the attacked were found exactly in {100 * np.mean(exact):.1f} % of runs with d > 0"
        if exact
        else ""
    )
    return (
        f"{HEADS[name]}: furthest from the oracle's curve at d = {worst}, "
        f"by {excess[worst]:+.4f} in log error{found}."
    )


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
        The curves at some d, and who was found.
    """
    ways = list(settings["ways"])
    curves = ("with_all", "alone", *(f"sec_{name}" for name in ways), "oracle")
    errors = [
        (
            str(d),
            f"{PUBLISHED_WITH_ALL[d]:.2f}" if d in PUBLISHED_WITH_ALL else "",
            *(cell(_estimate(records, name, d), 3) for name in curves),
        )
        for d in _shown(settings)
    ]
    found = []
    for d in _shown(settings):
        cells = [str(d)]
        for name in ways:
            cells += [
                f"{100 * np.mean(column(records, f'exact_{name}', d=d)):.0f} %",
                f"{np.mean(column(records, f'precision_{name}', d=d)):.3f}",
                f"{np.mean(column(records, f'recall_{name}', d=d)):.3f}",
                f"{np.mean(column(records, f'k_{name}', d=d)):.2f}",
            ]
        found.append(tuple(cells))
    sec_heads = tuple(f"SEC, {HEADS[name]}" for name in ways)
    found_heads = [
        f"{measure}, {HEADS[name]}" for name in ways for measure in ("exact", "precision", "recall", "mean K")
    ]
    return [
        Table(
            "Log mean squared error on the test rows for the fiftieth learner (standard error)",
            ("d", "with all, published", "with all (ours)", "alone (ours)", *sec_heads, "oracle (ours)"),
            tuple(errors),
            (
                "Of the other curves the paper says in words that SEC overlaps with the oracle.",
                *(_summary(records, settings, name) for name in ways),
            ),
        ),
        Table("Attacked learners found", ("d", *found_heads), tuple(found)),
    ]


def _draw_curves(ax: Any, records: Sequence[Record], settings: Mapping[str, Any]) -> None:
    d = np.array(settings["attacked"])
    looks = {
        "with_all": ("with all", PALETTE[1], "-", 1.5),
        "alone": ("alone", QUIET, "-", 1.5),
        "oracle": ("oracle", INK, "-", 4.0),
        "sec_paper": ("SEC, paper's settings", PALETTE[4], "-", 1.8),
        "sec_coterie": ("SEC, coterie's defaults", PALETTE[5], "--", 1.8),
    }
    for name, (label, colour, dashes, width) in looks.items():
        means = [_estimate(records, name, int(value))[0] for value in d]
        ax.plot(d, means, dashes, color=colour, linewidth=width, label=label)
    ends = [value for value in PUBLISHED_WITH_ALL if value in d]
    published = [PUBLISHED_WITH_ALL[value] for value in ends]
    ax.plot(ends, published, "o", color=PALETTE[1], label="with all, published", clip_on=False)
    ax.set_ylabel("log test error of the 50th learner")


def _draw_found(ax: Any, records: Sequence[Record], settings: Mapping[str, Any]) -> None:
    d = np.array([value for value in settings["attacked"] if value > 0])
    for name, colour, dashes in zip(settings["ways"], (PALETTE[4], PALETTE[5]), "-:", strict=True):
        for measure, marker in (("precision", "o"), ("recall", "x")):
            means = [np.mean(column(records, f"{measure}_{name}", d=int(value))) for value in d]
            label = f"{measure}, {'paper' if name == 'paper' else 'coterie'}"
            ax.plot(d, means, dashes, marker=marker, markersize=3, color=colour, label=label)
    ax.set_ylim(-0.02, 1.04)
    ax.set_ylabel("attacked learners found")


def draw(records: Sequence[Record], settings: Mapping[str, Any], folder: Path) -> list[Path]:
    """Draw the log errors against the number of attacked learners, and who was found.

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
    paths = []
    for name, painter in (("attack", _draw_curves), ("found", _draw_found)):
        figure = new_figure()
        ax = figure.add_subplot()
        painter(ax, records, settings)
        ax.set_xlabel("number d of attacked learners")
        ax.legend(frameon=False, fontsize=8)
        calm(ax)
        paths += save_figure(figure, folder, name)
    return paths
