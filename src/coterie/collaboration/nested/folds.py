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
    """Return folds that cut every learner's rows at random into equal parts; each row is held out once.

    A learner's cut depends on its own id and the seed ``entropy`` only, so that other learners do not
    change it.
    """
    held_out = np.empty(len(learners.y), dtype=int)
    for learner in range(len(learners)):
        order = generator_for(entropy, f"folds of {learners.ids[learner]}").permutation(
            learners.sizes[learner]
        )
        held_out[learners.span(learner)] = order % n_folds
    return Folds(held_out, held_out != np.arange(n_folds)[:, None])


def block_folds(learners: Learners, n_folds: int) -> Folds:
    """Return folds that cut every learner's rows into blocks of neighbours; each row is held out once.

    Neighbouring rows that depend on each other, as in time, then are mostly on the same side.
    """
    position_in_learner = np.arange(len(learners.y)) - np.repeat(learners.offsets[:-1], learners.sizes)
    held_out = position_in_learner * n_folds // learners.sizes[learners.owner]
    return Folds(held_out, held_out != np.arange(n_folds)[:, None])


def selected_folds(selection: Selection) -> Folds:
    """Return the folds of all rows that a user's splitter made for each learner in Select.

    Folds of different learners with the same number are one fold: what is shared is fitted without all of
    them. A learner with fewer folds than others trains on all its rows in the folds that it lacks.
    """
    n_folds = max(len(training) for training in selection.training)
    padded_training = [
        np.pad(training, ((0, n_folds - len(training)), (0, 0)), constant_values=True)
        for training in selection.training
    ]
    return Folds(np.concatenate(selection.folds), np.hstack(padded_training))


def forecast_folds(learners: Learners, n_folds: int) -> Folds:
    """Return folds for forecasts: each holds out a block of rows and trains on all rows before it.

    The blocks cut the later half of every learner's rows; the earlier half is never held out (-1), as too few
    rows would lie before it.
    """
    position_in_learner = np.arange(len(learners.y)) - np.repeat(learners.offsets[:-1], learners.sizes)
    time_in_later_half = (2 * position_in_learner + 1) / learners.sizes[learners.owner] - 1
    # From 0 to 1 in the later half of a learner's rows, negative in the earlier half.
    held_out = np.where(time_in_later_half < 0, -1, np.floor(time_in_later_half * n_folds)).astype(int)
    return Folds(held_out, held_out < np.arange(n_folds)[:, None])


def joined_folds(folds: Folds, others: Learners, entropy: int, *, in_order: bool) -> Folds:
    """Return ``folds`` with the rows of other learners appended, cut into as many folds of the same kind.

    ``in_order`` says that neighbouring rows depend on each other, so that blocks are cut.
    """
    n_folds = len(folds)
    if folds.forecasts:
        folds_of_others = forecast_folds(others, n_folds)
    else:
        folds_of_others = block_folds(others, n_folds) if in_order else random_folds(others, n_folds, entropy)
    return Folds(
        np.r_[folds.held_out, folds_of_others.held_out], np.hstack([folds.training, folds_of_others.training])
    )
