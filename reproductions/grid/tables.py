"""What the grid experiment prints and draws: the published curve beside ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.displays._look import INK, PALETTE, QUIET, calm
from reproductions.harness.cells import cell, column, mean_and_error
from reproductions.harness.experiment import Record, Table
from reproductions.harness.figures import new_figure, save_figure

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


def _found_table(records: Sequence[Record], settings: Mapping[str, Any], name: str) -> Table:
    rows = []
    for d in _shown(settings):
        exact, precision, recall, count = (
            np.mean(column(records, f"{measure}_{name}", d=d))
            for measure in ("exact", "precision", "recall", "k")
        )
        rows.append(
            (
                str(d),
                "all" if d else "",
                f"{100 * exact:.0f} %",
                f"{precision:.3f}",
                f"{recall:.3f}",
                f"{count:.2f}",
            )
        )
    return Table(
        f"Attacked learners found, {HEADS[name]}",
        ("d", "published", "exactly the attacked", "precision", "recall", "mean K"),
        tuple(rows),
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
    variants = list(settings["ways"])
    curves = ("with_all", "alone", *(f"sec_{name}" for name in variants), "oracle")
    errors = [
        (
            str(d),
            f"{PUBLISHED_WITH_ALL[d]:.2f}" if d in PUBLISHED_WITH_ALL else "",
            *(cell(_estimate(records, name, d), 3) for name in curves),
        )
        for d in _shown(settings)
    ]
    sec_heads = tuple(f"SEC, {HEADS[name]}" for name in variants)
    curve_table = Table(
        "Log mean squared error on the test rows for the fiftieth learner (standard error)",
        ("d", "with all, published", "with all (ours)", "alone (ours)", *sec_heads, "oracle (ours)"),
        tuple(errors),
        (
            "Of the other curves the paper gives no numbers; it says that SEC overlaps with the oracle.",
            *(_summary(records, settings, name) for name in variants),
        ),
    )
    return [curve_table, *(_found_table(records, settings, name) for name in variants)]


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
    ax.plot(ends, published, "o", color=PALETTE[1], label="with all, published")


def _zoom(ax: Any, records: Sequence[Record], settings: Mapping[str, Any]) -> None:
    """Show only the heights at which the other curves differ, as the paper's figure does."""
    names = ("alone", "oracle", "sec_paper", "sec_coterie")
    means = [_estimate(records, name, d)[0] for name in names for d in settings["attacked"]]
    margin = 0.15 * (max(means) - min(means)) + 0.002
    ax.set_ylim(min(means) - margin, max(means) + margin)


def _draw_found(ax: Any, records: Sequence[Record], settings: Mapping[str, Any]) -> None:
    d = settings["attacked"]
    for name, colour, dashes in zip(settings["ways"], (PALETTE[4], PALETTE[5]), "-:", strict=True):
        for measure, marker in (("precision", "o"), ("recall", "x")):
            means = [np.mean(column(records, f"{measure}_{name}", d=value)) for value in d]
            label = f"{measure}, {HEADS[name].removesuffix(' (ours)')}"
            ax.plot(d, means, dashes, marker=marker, markersize=4, color=colour, label=label)
    ax.set_ylim(-0.02, 1.04)


def draw(records: Sequence[Record], settings: Mapping[str, Any], folder: Path) -> list[Path]:
    """Draw the log errors against the number of attacked learners, and who was found.

    Parameters
    ----------
    records : sequence of mapping
        Of all replications.
    settings : mapping
        As `reproductions.grid.experiment.SETTINGS`.
    folder : Path
        Where to.

    Returns
    -------
    list of Path
        The files.
    """
    attack = new_figure(10.0, 4.2)
    whole, near = attack.subplots(1, 2)
    for ax in (whole, near):
        _draw_curves(ax, records, settings)
    whole.set_ylabel("log test error of the 50th learner")
    whole.legend(frameon=False, fontsize=8)
    near.set_title("the same, near the oracle", fontsize=10)
    _zoom(near, records, settings)
    found = new_figure()
    accused = found.subplots()
    _draw_found(accused, records, settings)
    accused.set_ylabel("precision and recall of those found attacked")
    accused.legend(frameon=False, fontsize=8)
    for ax in (whole, near, accused):
        ax.set_xlabel("number d of attacked learners")
        calm(ax)
    return [*save_figure(attack, folder, "attack"), *save_figure(found, folder, "found")]
