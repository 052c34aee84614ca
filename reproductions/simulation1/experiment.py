"""Simulation 1: how often all clusters are found (the paper's Figures A1, A2 and A3).

Twenty learners with two linear truths. The share of draws in which the number of clusters and every label are
right is measured against the noise, for three numbers of predictors. The oracle knows both functions and only
assigns learners to them: no method can do better.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from coterie.rows.learners import gather_learners
from reproductions.harness.cells import cell, column, mean_and_error
from reproductions.harness.experiment import Experiment, Record, Table
from reproductions.harness.pages import written_readme
from reproductions.harness.recovery import is_exact
from reproductions.simulation1.data import make_simulation1
from reproductions.simulation1.figures import draw
from reproductions.simulation1.variants import HEADS, coterie_labels, oracle_labels, paper_labels

SETTINGS: dict[str, Any] = {
    "p": [5, 10, 20],
    "snr": [1, 2, 4, 8, 16, 32, 64, 128],
    "paper": {"trees": 50, "depth": 3, "penalties": 30, "scale": 1.0, "rule": "gap-jump"},
    "coterie": {"candidates": ["ridge", "lasso", "rf"]},
    "illustration": {"p": 5, "snr": 16, "seed": 0},
}
QUICK_SETTINGS: dict[str, Any] = {"p": [5, 20], "snr": [16]}


def _one_cell(p: int, snr: float, seed: int, settings: Mapping[str, Any]) -> Record:
    drawn = make_simulation1(p, snr, random_state=seed)
    assert drawn.truth is not None
    learners = gather_learners(drawn.X, drawn.y, drawn.groups, caller="reproduce")
    labels = {
        **paper_labels(learners, settings["paper"], seed),
        **coterie_labels(learners, settings["coterie"], seed),
        "oracle": oracle_labels(drawn),
    }
    record: dict[str, Any] = {"p": p, "snr": snr}
    for variant in HEADS:
        record[f"exact_{variant}"] = int(is_exact(labels[variant], drawn.truth))
        record[f"k_{variant}"] = len(np.unique(labels[variant]))
    return record


def replicate(seed: int, settings: Mapping[str, Any]) -> list[Record]:
    """Draw the learners for every p and SNR and cluster them in every way.

    Parameters
    ----------
    seed : int
        Of this replication. Draws of one p share it over SNR: the noise differs in its size alone.
    settings : mapping
        As `SETTINGS`.

    Returns
    -------
    list of mapping
        A record per p and SNR.
    """
    return [_one_cell(p, snr, seed, settings) for p in settings["p"] for snr in settings["snr"]]


def _published(p: int, snr: float) -> str:
    if (p, snr) == (5, 16):
        return "near 1"
    return "flat" if snr > 32 else "rising"


def tabulate(records: Sequence[Record], settings: Mapping[str, Any]) -> list[Table]:
    """Put the ways of clustering side by side.

    Parameters
    ----------
    records : sequence of mapping
        Of all replications.
    settings : mapping
        As `SETTINGS`.

    Returns
    -------
    list of Table
        Shares of exact recovery, and mean numbers of clusters.
    """
    cells = [(p, snr) for p in settings["p"] for snr in settings["snr"]]
    unknown = ("paper", "first", "refined", "coterie")
    given = ("paper_2", "refined_2", "coterie_2", "oracle")

    def rows(quantity: str, variants: Sequence[str], published: bool) -> tuple[tuple[str, ...], ...]:
        return tuple(
            (
                str(p),
                f"{snr:g}",
                *((_published(p, snr),) if published else ()),
                *(
                    cell(mean_and_error(column(records, f"{quantity}_{variant}", p=p, snr=snr)), 2)
                    for variant in variants
                ),
            )
            for p, snr in cells
        )

    heads = ("p", "SNR")
    return [
        Table(
            "Share of draws with K and every label right, K unknown (standard error)",
            (*heads, "published", *(HEADS[variant] for variant in unknown)),
            rows("exact", unknown, True),
            (
                "The paper shows a curve without numbers: it says that accuracy rises with SNR, is higher "
                "for smaller p, is flat beyond SNR 32, and is near 1 at p = 5 and SNR 16.",
            ),
        ),
        Table(
            "Share of draws with every label right, K = 2 given (standard error)",
            (
                *heads,
                "paper's settings (ours)",
                "paper's settings with Refine",
                "coterie's defaults (ours)",
                "oracle",
            ),
            rows("exact", given, False),
            ("The oracle knows both functions and only assigns.",),
        ),
        Table(
            "Number of clusters found (standard error); the truth is 2",
            (*heads, *(HEADS[variant] for variant in unknown)),
            rows("k", unknown, False),
        ),
    ]


EXPERIMENT = Experiment(
    name="simulation1",
    title="Simulation 1: clustering accuracy",
    settings=SETTINGS,
    quick_settings=QUICK_SETTINGS,
    replications=100,
    quick_replications=2,
    replicate=replicate,
    tabulate=tabulate,
    draw=draw,
    readme=written_readme(Path(__file__).parent),
)
