"""The table of the CT slices, published beside ours, and its figure; both say which data they are of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import ttest_rel

from coterie.displays._look import INK, PALETTE, calm
from reproductions.harness.cells import cell, column, mean_and_error
from reproductions.harness.experiment import Record, Table
from reproductions.harness.figures import new_figure, save_figure

REAL = "UCI CT slices"
GENERATED = "generated stand-in, not the CT slices"

PUBLISHED = {"pooled": (94.09, 4.18), "unpooled": (103.07, 3.79), "none": (150.52, 2.10)}
PUBLISHED_K = "2 (6 times), 3 (94 times)"
PUBLISHED_P = {"pooled": 1.77e-14, "unpooled": 1.43e-13}
VARIANTS = {"paper": "paper's settings (ours)", "coterie": "coterie's defaults (ours)"}
FORMS = {"pooled": "clusters, pooled", "unpooled": "clusters, unpooled"}


def data_of(records: Sequence[Record]) -> str:
    """Return which data the records are of.

    Parameters
    ----------
    records : sequence of mapping
        Of all replications.

    Returns
    -------
    str
        `REAL` or `GENERATED`.

    Raises
    ------
    ValueError
        Where they are of both.
    """
    found = {str(record["data"]) for record in records}
    if len(found) > 1:
        raise ValueError(
            "Some of the replications ran on the CT slices and some on the generated table: "
            "run all of them again with --force."
        )
    return found.pop()


def p_value(records: Sequence[Record], form: str, variant: str) -> float:
    """Return the p-value of the right-sided paired t-test of no clustering against clusters.

    Parameters
    ----------
    records : sequence of mapping
        Of all replications.
    form : str
        One of `FORMS`.
    variant : str
        One of `VARIANTS`.

    Returns
    -------
    float
        NaN where there are fewer than two replications.
    """
    without = column(records, "mse_none")
    if len(without) < 2:
        return float("nan")
    test = ttest_rel(without, column(records, f"mse_{form}_{variant}"), alternative="greater")
    return float(test.pvalue)


def _counts(records: Sequence[Record], variant: str) -> str:
    counts = Counter(int(k) for k in column(records, f"k_{variant}"))
    return ", ".join(f"{k} ({times} times)" for k, times in sorted(counts.items()))


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
        One table.
    """
    data = data_of(records)
    measured = {
        (form, variant): cell(mean_and_error(column(records, f"mse_{form}_{variant}")), 2)
        for form in FORMS
        for variant in VARIANTS
    }
    without = cell(mean_and_error(column(records, "mse_none")), 2)
    rows: list[tuple[str, ...]] = [
        (text, cell(PUBLISHED[form], 2), *(measured[form, variant] for variant in VARIANTS))
        for form, text in FORMS.items()
    ]
    rows.append(("no clustering", cell(PUBLISHED["none"], 2), without, without))
    rows.append(("number of clusters", PUBLISHED_K, *(_counts(records, variant) for variant in VARIANTS)))
    rows.extend(
        (
            f"p, {text} against none",
            f"{PUBLISHED_P[form]:.1e}",
            *(f"{p_value(records, form, variant):.1e}" for variant in VARIANTS),
        )
        for form, text in FORMS.items()
    )
    notes = ["p: right-sided paired t-test over replications."]
    if data != REAL:
        notes.insert(
            0, "These are not the CT slices: the published column is of other data and is no target."
        )
    return [
        Table(
            f"Mean squared error on the test learners' second halves (standard error). Data: {data}",
            ("measure", "published (CT slices)", *(f"{who}, {data}" for who in VARIANTS.values())),
            tuple(rows),
            tuple(notes),
        )
    ]


def draw(records: Sequence[Record], settings: Mapping[str, Any], folder: Path) -> list[Path]:
    """Draw each replication's errors with clusters against its error without.

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
    data = data_of(records)
    figure = new_figure(7.5, 4.2)
    ax = figure.add_subplot()
    places = {"no clustering": "mse_none"}
    for form, text in FORMS.items():
        for variant, who in VARIANTS.items():
            places[f"{text},\n{who}"] = f"mse_{form}_{variant}"
    values = np.stack([column(records, name) for name in places.values()])
    ax.plot(np.arange(len(values)), values, "-", color=INK, alpha=0.15, lw=0.8)
    for place, (mine, colour) in enumerate(zip(values, (INK, *PALETTE), strict=False)):
        mean, error = mean_and_error(mine)
        ax.plot(np.full(len(mine), place), mine, ".", color=colour, alpha=0.4)
        ax.errorbar(place, mean, np.nan_to_num(2 * error), fmt="o", color=colour, capsize=3)
    ax.set_xticks(np.arange(len(places)), list(places), fontsize=7)
    ax.set_ylabel("mean squared error")
    ax.set_title(f"Test learners, one line a replication. Data: {data}", fontsize=9)
    calm(ax)
    return save_figure(figure, folder, "errors")
