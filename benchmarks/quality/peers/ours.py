"""coterie as a user would run it, and the paper's SEC on the same exchange, K by the gap statistic.

`CoterieRegressor` is these stages in a row. Here they are called one by one, so that learners select and
exchange once for all four answers; a test holds the two to the same labels and predictions.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from problem import Answer, Array

from coterie import cluster_learners, collaborate, cross_evaluate, select_models
from coterie.rows.learners import gather_learners


@dataclass(frozen=True)
class Rows:
    """Rows as they came, and whether each learner's are to be standardised."""

    X: Array
    y: Array
    groups: Array
    standardize: bool


def run(
    train: Rows, X_test: Array, groups_test: Array, k: int, candidates: object, name: str
) -> list[Answer]:
    """Return coterie's answers and plain SEC's, each for a given and for an unknown number of clusters."""
    start = time.perf_counter()
    learners = gather_learners(train.X, train.y, train.groups, caller="benchmark")
    units = None
    if train.standardize:
        learners, units = learners.standardized()
    selection = select_models(learners, candidates=candidates)
    exchange = cross_evaluate(selection, learners)
    shared = time.perf_counter() - start
    position = {learner: j for j, learner in enumerate(learners.ids.tolist())}
    owner = np.array([position[g] for g in groups_test.tolist()])
    shown = {learner: j for j, learner in enumerate(selection.learner_ids.tolist())}
    places = np.array([shown[g] for g in groups_test.tolist()])
    inside = X_test if units is None else units.forward_X(X_test, owner)
    answers = []
    for suffix, count in (("K given", k), ("auto", "auto")):
        start = time.perf_counter()
        partition = cluster_learners(
            exchange, learners, selection=selection, n_clusters=count, candidates=candidates
        )
        collaboration = collaborate(selection, partition, learners, candidates=candidates)
        predicted = collaboration.predict(inside, collaboration.weight_rows[places])
        if units is not None:
            predicted = units.backward_y(predicted[:, None], owner)[:, 0]
        seconds = shared + time.perf_counter() - start
        answers.append(Answer(f"{name}, {suffix}", partition.labels, seconds, predicted))
    for suffix, count in (("K given", k), ("gap", "gap")):
        start = time.perf_counter()
        partition = cluster_learners(exchange, n_clusters=count, refine=None)
        seconds = shared + time.perf_counter() - start
        answers.append(Answer(f"SEC of the paper, {suffix}", partition.labels, seconds))
    return answers
