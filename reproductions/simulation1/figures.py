"""The figures of Simulation 1: recovery against noise, and the spectrum of one draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from coterie.displays import EigenvaluesDisplay, EmbeddingDisplay
from coterie.displays._look import INK, PALETTE, calm
from coterie.method.cluster import cluster_learners
from coterie.rows.learners import gather_learners
from reproductions.harness.cells import column, mean_and_error
from reproductions.harness.experiment import Record
from reproductions.harness.figures import new_figure, save_figure
from reproductions.simulation1.data import make_simulation1
from reproductions.simulation1.variants import exchanged, paper_candidates

# One panel each: the way with K unknown, and the same with K given.
PANELS = {
    "paper's settings": ("paper", "paper_2"),
    "with Refine": ("refined", "refined_2"),
    "coterie's defaults": ("coterie", "coterie_2"),
}


def _draw_recovery(records: Sequence[Record], settings: Mapping[str, Any], folder: Path) -> list[Path]:
    figure = new_figure(10.0, 3.6)
    axes = figure.subplots(1, len(PANELS), sharey=True)
    places = np.log2(settings["snr"])
    for ax, (title, variants) in zip(axes, PANELS.items(), strict=True):
        for p, colour in zip(settings["p"], PALETTE, strict=False):
            for variant, line, label in (
                (variants[0], "o-", f"p = {p}"),
                (variants[1], ":", None),
                ("oracle", "--", None),
            ):
                measured = [
                    mean_and_error(column(records, f"exact_{variant}", p=p, snr=snr))
                    for snr in settings["snr"]
                ]
                shares, errors = np.array(measured).T
                bars = np.nan_to_num(2 * errors) if line == "o-" else None
                faint = 1.0 if line == "o-" else 0.6
                ax.errorbar(
                    places, shares, bars, fmt=line, color=colour, ms=3.5, lw=1.2, alpha=faint, label=label
                )
        ax.set_xticks(places, [f"{snr:g}" for snr in settings["snr"]])
        ax.set_xlabel("SNR")
        ax.set_title(title, fontsize=10)
        calm(ax)
    axes[0].plot([], [], ":", color=INK, label="K = 2 given")
    axes[0].plot([], [], "--", color=INK, label="oracle")
    axes[0].set_ylabel("share of draws recovered exactly")
    axes[0].legend(frameon=False, fontsize=8)
    return save_figure(figure, folder, "recovery")


def _draw_spectrum(settings: Mapping[str, Any], folder: Path) -> list[Path]:
    """Draw the eigenvalues of one draw, and its learners in the eigenvectors, coloured by truth."""
    one, paper = settings["illustration"], settings["paper"]
    drawn = make_simulation1(one["p"], one["snr"], random_state=one["seed"])
    learners = gather_learners(drawn.X, drawn.y, drawn.groups, caller="reproduce").standardized()[0]
    exchange = exchanged(learners, paper_candidates(paper), one["seed"])[1]
    partition = cluster_learners(
        exchange, n_clusters=2, scale=paper["scale"], refine=None, random_state=one["seed"]
    )
    figure = new_figure(9.0, 3.6)
    left, right = figure.subplots(1, 2)
    EigenvaluesDisplay(partition.eigenvalues, n_clusters=2).plot(ax=left)
    assert drawn.truth is not None
    truth = dict(zip(drawn.learner_ids.tolist(), drawn.truth.tolist(), strict=True))
    labels = [truth[learner] for learner in partition.learner_ids.tolist()]
    EmbeddingDisplay(partition.embedding, labels=labels, learner_ids=partition.learner_ids).plot(ax=right)
    left.set_title(f"Eigenvalues, one draw with p = {one['p']}, SNR = {one['snr']}", fontsize=10)
    right.set_title("Rows of the eigenvectors, coloured by truth", fontsize=10)
    return save_figure(figure, folder, "spectrum")


def draw(records: Sequence[Record], settings: Mapping[str, Any], folder: Path) -> list[Path]:
    """Draw recovery against SNR, and the spectrum of one draw.

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
    return [*_draw_recovery(records, settings, folder), *_draw_spectrum(settings, folder)]
