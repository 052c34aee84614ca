"""Fairness without the sensitive variable (the paper's Table 1).

Learners differ in one value that no model may see. Clustering them by their models lets each be predicted by
a model of those who are like it. A cluster predicts with one pooled linear model and nothing of the learner's
own: an offset per learner would rebuild the effect of the sensitive variable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LinearRegression

from coterie.engines import resolve_engine
from coterie.method.cluster import cluster_learners
from coterie.method.exchange import cross_evaluate
from coterie.method.select import select_models
from coterie.records import Partition, Selection
from coterie.rows.learners import gather_learners
from coterie.verdicts import place_newcomers
from reproductions.fairness.data import FairnessLearners, make_fairness
from reproductions.fairness.tables import draw, tabulate
from reproductions.harness.experiment import Experiment, Record
from reproductions.harness.pages import written_readme

Array = NDArray[Any]

SETTINGS: dict[str, Any] = {
    "b": [0.01, 0.5, 1, 2, 3, 4, 5, 6, 20],
    "learners": 50,
    "training_learners": 30,
    "rows": 50,
    "candidates": ["rf", "lr"],
    "ways": {
        "paper": {"n_clusters": "gap-jump", "scale": "median", "refine": None},
        "coterie": {"n_clusters": "auto", "scale": "noise", "refine": "pooled"},
        "cv": {"n_clusters": "cv", "scale": "noise", "refine": "pooled"},
        "ten": {"n_clusters": 10, "scale": "median", "refine": None},
    },
}


@dataclass(frozen=True)
class _Rows:
    X: Array
    y: Array
    groups: Array

    def only(self, rows: Array) -> _Rows:
        return _Rows(self.X[rows], self.y[rows], self.groups[rows])


def _split(drawn: FairnessLearners, settings: Mapping[str, Any]) -> tuple[_Rows, _Rows, _Rows]:
    """Return the rows of the training learners, and those that place and that score the other learners."""
    everything = _Rows(drawn.X, drawn.y, drawn.groups)
    n_rows = settings["rows"]
    number, row = np.divmod(np.arange(len(drawn.y)), n_rows)
    testing = number >= settings["training_learners"]
    first = row < n_rows // 2
    return everything.only(~testing), everything.only(testing & first), everything.only(testing & ~first)


def _error(model: LinearRegression, X: Array, y: Array) -> float:
    return float(np.mean((y - model.predict(X)) ** 2))


def _oracle_error(drawn: FairnessLearners, training: _Rows, scoring: _Rows) -> float:
    known = dict(zip(drawn.learner_ids.tolist(), drawn.sensitive.tolist(), strict=True))

    def seen(rows: _Rows) -> Array:
        return np.column_stack([rows.X, [known[learner] for learner in rows.groups.tolist()]])

    return _error(LinearRegression().fit(seen(training), training.y), seen(scoring), scoring.y)


def _clustered_error(
    partition: Partition,
    selection: Selection,
    training: _Rows,
    placing: _Rows,
    newcomers: Selection,
    scoring: _Rows,
) -> float:
    """Place the test learners by their first halves and predict their second halves."""
    learners = gather_learners(training.X, training.y, training.groups, caller="reproduce")
    strangers = gather_learners(placing.X, placing.y, placing.groups, caller="reproduce")
    placed = place_newcomers(
        strangers,
        newcomers.aligned_to(strangers.ids),
        learners,
        selection.aligned_to(learners.ids),
        partition.aligned_to(learners.ids),
        resolve_engine(),
    )
    cluster_of = dict(zip(partition.learner_ids.tolist(), partition.labels.tolist(), strict=True))
    # The nearest cluster, as in the paper, also for those whom no cluster predicts well.
    cluster_of.update(zip(placed.learner_ids.tolist(), placed.nearest.tolist(), strict=True))
    mine = np.array([cluster_of[learner] for learner in training.groups.tolist()])
    theirs = np.array([cluster_of[learner] for learner in scoring.groups.tolist()])
    predicted = np.empty(len(scoring.y))
    for k in np.unique(theirs):
        model = LinearRegression().fit(training.X[mine == k], training.y[mine == k])
        predicted[theirs == k] = model.predict(scoring.X[theirs == k])
    return float(np.mean((scoring.y - predicted) ** 2))


def _one_weight(b: float, seed: int, settings: Mapping[str, Any]) -> Record:
    drawn = make_fairness(b, settings["learners"], settings["rows"], random_state=seed)
    training, placing, scoring = _split(drawn, settings)
    rows = (training.X, training.y, training.groups)
    how: dict[str, Any] = {"candidates": settings["candidates"], "order": None, "random_state": seed}
    selection = select_models(*rows, **how)
    newcomers = select_models(placing.X, placing.y, placing.groups, **how)
    exchange = cross_evaluate(selection, *rows)
    fairness = LinearRegression().fit(training.X, training.y)
    record: dict[str, Any] = {
        "b": b,
        "mse_oracle": _oracle_error(drawn, training, scoring),
        "mse_fairness": _error(fairness, scoring.X, scoring.y),
    }
    for name, variant in settings["ways"].items():
        options = {**variant, "random_state": seed}
        if variant["refine"] is None and variant["n_clusters"] not in ("auto", "held-out", "cv"):
            # What looks at losses alone gives the same clusters without the rows, in less time.
            partition = cluster_learners(exchange, **options)
        else:
            partition = cluster_learners(
                exchange, *rows, selection=selection, candidates=settings["candidates"], **options
            )
        record[f"mse_{name}"] = _clustered_error(partition, selection, training, placing, newcomers, scoring)
        record[f"k_{name}"] = partition.n_clusters
    return record


def replicate(seed: int, settings: Mapping[str, Any]) -> list[Record]:
    """Draw the learners anew for every weight b and measure all methods on the same test rows.

    Parameters
    ----------
    seed : int
        Of this replication.
    settings : mapping
        As `SETTINGS`.

    Returns
    -------
    list of mapping
        A record per weight.
    """
    weights = settings["b"]
    seeds = np.random.SeedSequence(seed).generate_state(len(weights))
    return [_one_weight(b, int(own), settings) for b, own in zip(weights, seeds, strict=True)]


EXPERIMENT = Experiment(
    name="fairness",
    title="Fairness without the sensitive variable (Table 1)",
    settings=SETTINGS,
    quick_settings={"b": [0.01, 1, 6]},
    replications=100,
    quick_replications=2,
    replicate=replicate,
    tabulate=tabulate,
    draw=draw,
    readme=written_readme(Path(__file__).parent),
)
