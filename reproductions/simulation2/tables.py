"""The tables of Simulation 2, published beside ours, and their figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import ttest_ind

from coterie.displays._look import INK, PALETTE, calm
from reproductions.harness.cells import cell, column, mean_and_error
from reproductions.harness.experiment import Record, Table
from reproductions.harness.figures import new_figure, save_figure

# Those whose shares the paper prints, in its order.
SHOWN_FAMILIES = ("gb", "rf", "lasso")


@dataclass(frozen=True)
class _Published:
    selected: tuple[float, float, float]
    accuracy: float
    with_coterie: tuple[float, float]
    own: tuple[float, float]


PUBLISHED = {
    1: _Published((1, 0, 0), 0.66, (0.100, 0.0056), (0.133, 0.0038)),
    3: _Published((0.56, 0.11, 0.33), 0.74, (0.095, 0.0053), (0.131, 0.0042)),
    5: _Published((0.56, 0.10, 0.34), 0.58, (0.087, 0.0049), (0.125, 0.0044)),
    7: _Published((0.57, 0.11, 0.32), 0.70, (0.096, 0.0056), (0.134, 0.0051)),
    9: _Published((0.57, 0.10, 0.33), 0.64, (0.060, 0.0018), (0.112, 0.0034)),
}
VARIANTS = {"paper": "paper's settings (ours)", "coterie": "coterie's defaults (ours)"}


def p_value(records: Sequence[Record], size: int, variant: str) -> float:
    """Return the p-value of the right-sided two-sample t-test of alone against together.

    Parameters
    ----------
    records : sequence of mapping
        Of all replications.
    size : int
        Of the set of candidates.
    variant : str
        One of `VARIANTS`.

    Returns
    -------
    float
        NaN where there are fewer than two replications.
    """
    alone = column(records, "alone", size=size)
    if len(alone) < 2:
        return float("nan")
    test = ttest_ind(alone, column(records, f"together_{variant}", size=size), alternative="greater")
    return float(test.pvalue)


def _measured(records: Sequence[Record], name: str, size: int, digits: int) -> str:
    return cell(mean_and_error(column(records, name, size=size)), digits)


def _triple(values: Sequence[float]) -> str:
    return "(" + ", ".join(f"{value:.2f}" for value in values) + ")"


def tabulate(records: Sequence[Record], settings: Mapping[str, Any]) -> list[Table]:
    """Put the published numbers beside ours.

    Parameters
    ----------
    records : sequence of mapping
        Of all replications.
    settings : mapping
        As the experiment's settings.

    Returns
    -------
    list of Table
        Clusters, selected families, and the first learner's errors.
    """
    sizes = [len(names) for names in settings["sets"]]
    clusters = [
        (
            str(size),
            f"{PUBLISHED[size].accuracy:.2f}",
            *(_measured(records, f"exact_{variant}", size, 2) for variant in VARIANTS),
            "2",
            *(_measured(records, f"k_{variant}", size, 2) for variant in VARIANTS),
        )
        for size in sizes
    ]
    selected = [
        (
            str(size),
            _triple(PUBLISHED[size].selected),
            _triple([float(np.mean(column(records, f"selected_{n}", size=size))) for n in SHOWN_FAMILIES]),
        )
        for size in sizes
    ]
    errors = [
        (
            str(size),
            cell(PUBLISHED[size].own, 4),
            _measured(records, "alone", size, 4),
            cell(PUBLISHED[size].with_coterie, 4),
            *(
                text
                for variant in VARIANTS
                for text in (
                    _measured(records, f"together_{variant}", size, 4),
                    f"{p_value(records, size, variant):.1e}",
                )
            ),
        )
        for size in sizes
    ]
    accuracy = [f"accuracy, {who}" for who in ("published", *VARIANTS.values())]
    return [
        Table(
            "Share of draws with K and every label right, and K (standard error)",
            ("candidates", *accuracy, "K, published", *(f"K, {who}" for who in VARIANTS.values())),
            tuple(clusters),
        ),
        Table(
            "Share of learners that select boosting, forest and lasso",
            ("candidates", "published", "ours"),
            tuple(selected),
            ("The rest select other candidates of the set. Selection is the same under both settings.",),
        ),
        Table(
            "Mean squared error of the first learner on its test rows (standard error)",
            (
                "candidates",
                "alone, published",
                "alone (ours)",
                "together, published",
                "together, paper's settings (ours)",
                "p",
                "together, coterie's defaults (ours)",
                "p",
            ),
            tuple(errors),
            (
                "p: right-sided two-sample t-test of alone against together; the paper gives 2.1e-06 for one "
                "candidate. Together is the average of the coterie's models in the paper's settings, and one "
                "model on the coterie's rows in coterie's defaults.",
            ),
        ),
    ]


def draw(records: Sequence[Record], settings: Mapping[str, Any], folder: Path) -> list[Path]:
    """Draw accuracy and errors against the number of candidates.

    Parameters
    ----------
    records : sequence of mapping
        Of all replications.
    settings : mapping
        As the experiment's settings.
    folder : Path
        Where to.

    Returns
    -------
    list of Path
        The files.
    """
    figure = new_figure(9.0, 3.8)
    left, right = figure.subplots(1, 2)
    sizes = [len(names) for names in settings["sets"]]
    places = np.arange(len(sizes))

    def ours(ax: Any, name: str, shift: float, **look: Any) -> None:
        means, spreads = np.array([mean_and_error(column(records, name, size=size)) for size in sizes]).T
        ax.errorbar(places + shift, means, np.nan_to_num(2 * spreads), ls="", capsize=2, ms=5, **look)

    def theirs(ax: Any, values: Sequence[float], **look: Any) -> None:
        ax.plot(places - 0.15, values, ls="", mfc="none", ms=5, **look)

    theirs(left, [PUBLISHED[s].accuracy for s in sizes], marker="o", color=INK, label="published")
    ours(left, "exact_paper", 0.0, marker="s", color=PALETTE[0], label=VARIANTS["paper"])
    ours(left, "exact_coterie", 0.15, marker="^", color=PALETTE[1], label=VARIANTS["coterie"])
    left.set_ylabel("share of draws recovered exactly")
    left.set_ylim(0, 1.05)
    theirs(right, [PUBLISHED[s].own[0] for s in sizes], marker="D", color=INK, label="alone, published")
    theirs(
        right,
        [PUBLISHED[s].with_coterie[0] for s in sizes],
        marker="o",
        color=INK,
        label="together, published",
    )
    ours(right, "alone", -0.05, marker="D", color=PALETTE[2], label="alone (ours)")
    ours(
        right, "together_paper", 0.05, marker="s", color=PALETTE[0], label="together, paper's settings (ours)"
    )
    ours(right, "together_coterie", 0.15, marker="^", color=PALETTE[1], label="together, defaults (ours)")
    right.set_yscale("log")
    right.set_ylabel("test error of the first learner")
    for ax in (left, right):
        ax.set_xticks(places, [str(size) for size in sizes])
        ax.set_xlabel("number of candidates (bars: two standard errors)")
        ax.legend(frameon=False, fontsize=7)
        calm(ax)
    return save_figure(figure, folder, "candidates")
