"""CT slices (the paper's Table 3): where in the body a slice lies, for patients whom no model has seen.

A learner is a patient's scan. 64 of them are clustered; the other 33 are placed by half of their slices,
and their other half is predicted by forests: one for all, one per cluster on pooled rows, or the average of
the cluster's own ones. Where the real file cannot be had, a generated table of the same shape stands in and
is named everywhere.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import RandomForestRegressor

from coterie.candidates import make_candidates
from coterie.engines import resolve_engine
from coterie.kernels.losses import loss_matrix
from coterie.method.cluster import cluster_learners
from coterie.method.exchange import cross_evaluate
from coterie.method.select import select_models
from coterie.records import Exchange, Partition, Selection
from coterie.rows.learners import Learners, gather_learners
from reproductions.ct.data import load_ct_slices
from reproductions.ct.standin import make_standin
from reproductions.ct.tables import GENERATED, REAL, data_of, draw, tabulate
from reproductions.download.transfer import DatasetUnavailable
from reproductions.harness.experiment import Experiment, Record
from reproductions.harness.pages import written_readme

Array = NDArray[Any]
logger = logging.getLogger(__name__)

SETTINGS: dict[str, Any] = {
    # "auto": the real file where it can be had, else the generated table; "generated": the latter.
    "data": "auto",
    "standin": {"n_patients": 97, "n_rows": 53_500, "n_features": 384, "random_state": 0},
    "training_learners": 64,
    # Slices taken of each patient; None: all of them.
    "slices": None,
    "forest": {"n_estimators": 50, "max_features": "sqrt", "min_samples_leaf": 5},
    "ways": {
        "paper": {"n_clusters": "gap-jump", "refine": None, "scale": "median"},
        "coterie": {"n_clusters": "auto", "refine": "pooled", "scale": "noise"},
    },
}
QUICK_SETTINGS: dict[str, Any] = {
    "standin": {"n_patients": 40, "n_rows": 4_000, "n_features": 64, "random_state": 0},
    "training_learners": 26,
    "slices": 100,
}


@dataclass(frozen=True, eq=False)
class _Slices:
    X: Array
    y: Array
    patients: Array

    def only(self, rows: Array) -> _Slices:
        return _Slices(self.X[rows], self.y[rows], self.patients[rows])

    def gathered(self) -> Learners:
        return gather_learners(self.X, self.y, self.patients, caller="reproduce")


# A table is made or read once per process: replications differ in how they split it.
@lru_cache(maxsize=1)
def _generated(**shape: int) -> _Slices:
    made = make_standin(**shape)
    return _Slices(made.X, made.y, made.groups)


@lru_cache(maxsize=1)
def _real() -> _Slices | None:
    try:
        table = load_ct_slices()
    except DatasetUnavailable as cause:
        logger.warning("The CT slices cannot be had, a generated table stands in: %s", cause)
        return None
    return _Slices(table.X, table.y, table.groups)


def _table(settings: Mapping[str, Any]) -> tuple[_Slices, str]:
    """Return the slices and what they are."""
    real = _real() if settings["data"] == "auto" else None
    return (_generated(**settings["standin"]), GENERATED) if real is None else (real, REAL)


def _split(
    slices: _Slices, settings: Mapping[str, Any], generator: np.random.Generator
) -> tuple[_Slices, _Slices, _Slices]:
    """Return the slices of the training patients, and those that place and that score the others."""
    patients = generator.permutation(np.unique(slices.patients))
    testing = np.isin(slices.patients, patients[settings["training_learners"] :])
    # A slice's place in its patient's own random order, from 0 to 1.
    order = np.lexsort((generator.random(len(slices.y)), slices.patients))
    _, starts, sizes = np.unique(slices.patients[order], return_index=True, return_counts=True)
    place = np.empty(len(slices.y), dtype=int)
    place[order] = np.arange(len(order)) - np.repeat(starts, sizes)
    most = np.empty(len(slices.y), dtype=int)
    most[order] = np.repeat(sizes, sizes)
    if settings["slices"] is not None:
        most = np.minimum(most, settings["slices"])
    kept, first = place < most, place < most // 2
    return (
        slices.only(kept & ~testing),
        slices.only(kept & testing & first),
        slices.only(kept & testing & ~first),
    )


def newcomer_dissimilarities(
    newcomers: Learners, theirs: Selection, learners: Learners, selection: Selection
) -> Array:
    """Return the dissimilarities of newcomers to the learners that were clustered.

    Parameters
    ----------
    newcomers : Learners
        Their rows.
    theirs : Selection
        Their models, in the same order.
    learners : Learners
        The rows of those that were clustered.
    selection : Selection
        Their models, in the same order.

    Returns
    -------
    ndarray of shape (M, L)
        The paper's v.
    """
    engine = resolve_engine()
    there = loss_matrix(selection.models, newcomers, engine).T
    back = loss_matrix(theirs.models, learners, engine)
    v: Array = np.abs(there - theirs.errors[:, None]) + np.abs(back - selection.errors)
    return v


def nearest_clusters(v: Array, labels: Array, scale: float) -> Array:
    """Return the cluster with the largest sum of similarities to its members, for each newcomer.

    Parameters
    ----------
    v : ndarray of shape (M, L)
        Dissimilarities.
    labels : ndarray of shape (L,)
        Clusters of the learners.
    scale : float
        The factor a of exp(-a v).

    Returns
    -------
    ndarray of shape (M,)
        Clusters of the newcomers.
    """
    # In logarithms, where sums of tiny similarities still differ.
    sums = [logsumexp(-scale * v[:, labels == k], axis=1) for k in range(int(labels.max()) + 1)]
    nearest: Array = np.argmax(sums, axis=0)
    return nearest


def _pooled_predictions(
    forest: BaseEstimator, training: Learners, labels: Array, scoring: Learners, placed: Array
) -> Array:
    predicted = np.empty(len(scoring.scalar_y))
    for k in np.unique(placed):
        mine, theirs = labels[training.owner] == k, placed[scoring.owner] == k
        predicted[theirs] = (
            clone(forest).fit(training.X[mine], training.scalar_y[mine]).predict(scoring.X[theirs])
        )
    return predicted


def _own_forests(forest: BaseEstimator, training: Learners, selection: Selection) -> list[BaseEstimator]:
    """Return a forest per learner: the selected one, or one fitted where lasso was selected."""
    spans = [training.span(j) for j in range(len(training))]
    return [
        model if name == "rf" else clone(forest).fit(training.X[span], training.scalar_y[span])
        for model, name, span in zip(selection.models, selection.names, spans, strict=True)
    ]


def _averaged_predictions(table: Array, sizes: Array, labels: Array, placed: Array) -> Array:
    """Average the rows of ``table``, the learners' predictions, over the cluster of each column's owner."""
    weights = np.where(labels == placed[:, None], sizes, 0).astype(float)
    weights /= weights.sum(axis=1, keepdims=True)
    averaged: Array = np.einsum("nl,ln->n", weights, table)
    return averaged


def _clustered(
    exchange: Exchange, training: Learners, selection: Selection, variant: Mapping[str, Any], seed: int
) -> Partition:
    if variant["refine"] is None:
        # A rule that looks at losses alone gives the same clusters without the rows, in less time.
        partition = cluster_learners(exchange, **variant, random_state=seed)
    else:
        partition = cluster_learners(exchange, training, selection=selection, **variant, random_state=seed)
    aligned: Partition = partition.aligned_to(training.ids)
    return aligned


def replicate(seed: int, settings: Mapping[str, Any]) -> list[Record]:
    """Split the patients anew and predict the test patients in every way.

    Parameters
    ----------
    seed : int
        Of this replication.
    settings : mapping
        As `SETTINGS`.

    Returns
    -------
    list of mapping
        One record.
    """
    slices, data = _table(settings)
    split = _split(slices, settings, np.random.default_rng(seed))
    training, placing, scoring = (part.gathered() for part in split)
    forest = RandomForestRegressor(**settings["forest"], random_state=seed)
    candidates = {"rf": RandomForestRegressor(**settings["forest"]), **make_candidates(["lasso"])}
    # Random halves, as in the paper.
    how: dict[str, Any] = {"candidates": candidates, "order": None, "random_state": seed}
    selection = select_models(training, **how).aligned_to(training.ids)
    theirs = select_models(placing, **how).aligned_to(placing.ids)
    exchange = cross_evaluate(selection, training)
    v = newcomer_dissimilarities(placing, theirs, training, selection)
    table = np.stack([model.predict(scoring.X) for model in _own_forests(forest, training, selection)])

    def error(predicted: Array) -> float:
        return float(np.mean((scoring.scalar_y - predicted) ** 2))

    everybody = clone(forest).fit(training.X, training.scalar_y)
    record: dict[str, Any] = {"data": data, "mse_none": error(everybody.predict(scoring.X))}
    for name, variant in settings["ways"].items():
        partition = _clustered(exchange, training, selection, variant, seed)
        labels, placed = partition.labels, nearest_clusters(v, partition.labels, partition.scale)
        record[f"k_{name}"] = partition.n_clusters
        record[f"mse_pooled_{name}"] = error(_pooled_predictions(forest, training, labels, scoring, placed))
        averaged = _averaged_predictions(table, training.sizes, labels, placed[scoring.owner])
        record[f"mse_unpooled_{name}"] = error(averaged)
    return [record]


def check_earlier(records: Sequence[Record], settings: Mapping[str, Any]) -> None:
    """Raise an error where earlier replications ran on other data than are to be had now.

    Parameters
    ----------
    records : sequence of mapping
        Of the replications that are there.
    settings : mapping
        As `SETTINGS`.
    """
    then, now = data_of(records), _table(settings)[1]
    if then != now:
        raise ValueError(
            f"The replications that are there ran on other data ({then}) than those that are missing would "
            f"({now}): give --force to begin anew, or another folder by --out."
        )


EXPERIMENT = Experiment(
    name="ct",
    title="Application 1: CT image data",
    settings=SETTINGS,
    quick_settings=QUICK_SETTINGS,
    replications=10,
    quick_replications=3,
    replicate=replicate,
    tabulate=tabulate,
    draw=draw,
    readme=written_readme(Path(__file__).parent),
    check_earlier=check_earlier,
)
