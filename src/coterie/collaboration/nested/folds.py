"""Rows held out in turn, so that nothing is weighed by what it has been fitted on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coterie._arrays import Array
from coterie._seeds import generator_for
from coterie.records import Selection
from coterie.rows.learners import Learners


@dataclass(frozen=True)
class Folds:
    """Which rows each fold holds out and trains on.

    ``held_out`` (N,) is the fold that holds each row out, -1 where none does; ``training`` (F, N) marks the
    rows that each fold trains on. ``forecasts``: folds train on what came before what they hold out.
    """

    held_out: Array
    training: Array
    forecasts: bool = False

    def __len__(self) -> int:
        return len(self.training)


def random_folds(learners: Learners, n_folds: int, entropy: int) -> Folds:
    """Return folds that cut every learner's rows at random, by its own id; every row is held out once."""
    held_out = np.empty(len(learners.y), dtype=int)
    for j in range(len(learners)):
        order = generator_for(entropy, f"folds of {learners.ids[j]}").permutation(learners.sizes[j])
        held_out[learners.span(j)] = order % n_folds
    return Folds(held_out, held_out != np.arange(n_folds)[:, None])


def block_folds(learners: Learners, n_folds: int) -> Folds:
    """Return folds that cut every learner's rows into blocks of neighbours, for rows in order."""
    index = np.arange(len(learners.y)) - np.repeat(learners.offsets[:-1], learners.sizes)
    held_out = index * n_folds // learners.sizes[learners.owner]
    return Folds(held_out, held_out != np.arange(n_folds)[:, None])


def selected_folds(selection: Selection) -> Folds:
    """Return the folds that a splitter made in Select, for rows that are not independent.

    A learner with fewer folds than others trains with all its rows in the folds that it lacks.
    """
    n_folds = max(len(training) for training in selection.training)
    padded = [
        np.pad(training, ((0, n_folds - len(training)), (0, 0)), constant_values=True)
        for training in selection.training
    ]
    return Folds(np.concatenate(selection.folds), np.hstack(padded))


def forecast_folds(learners: Learners, n_folds: int) -> Folds:
    """Return folds that hold out blocks of the later half of rows, and train on what came before."""
    index = np.arange(len(learners.y)) - np.repeat(learners.offsets[:-1], learners.sizes)
    passed = (2 * index + 1) / learners.sizes[learners.owner] - 1
    held_out = np.where(passed < 0, -1, np.floor(passed * n_folds)).astype(int)
    return Folds(held_out, held_out < np.arange(n_folds)[:, None])


def joined_folds(folds: Folds, others: Learners, entropy: int, *, in_order: bool) -> Folds:
    """Return the folds with the rows of other learners behind, cut into as many."""
    n_folds = len(folds)
    if folds.forecasts:
        theirs = forecast_folds(others, n_folds)
    else:
        theirs = block_folds(others, n_folds) if in_order else random_folds(others, n_folds, entropy)
    return Folds(np.r_[folds.held_out, theirs.held_out], np.hstack([folds.training, theirs.training]))
