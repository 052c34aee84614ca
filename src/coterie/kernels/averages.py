"""Clusters that predict by the weighted average of their members' models: no rows of others are needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie._rows import Learners
from coterie.engines import Engine
from coterie.kernels.affine import Frame, affine_matrix
from coterie.kernels.blocks import BLOCK_ROWS, predict_rows
from coterie.kernels.together import LocalLosses
from coterie.records import Selection

Array = NDArray[Any]


def membership(labels: Array, n_clusters: int, weights: Array) -> Array:
    """Return the weights as a matrix of shape (K, L), each learner's in the row of its cluster."""
    matrix = np.zeros((n_clusters, len(labels)))
    matrix[labels, np.arange(len(labels))] = weights
    return matrix


def _predict_everywhere(job: tuple[Any, Array]) -> Array:
    model, X = job
    starts = range(0, len(X), BLOCK_ROWS)
    return np.concatenate([predict_rows(model, X[s : s + BLOCK_ROWS]) for s in starts])


class ModelAverages:
    """Predictions of weighted sums of the learners' models on everybody's rows.

    Parameters
    ----------
    models : sequence of estimators
        One per learner.
    learners : Learners
        On whose rows they predict.
    engine : Engine
        Who predicts, where models are not affine.
    """

    def __init__(self, models: Sequence[Any], learners: Learners, engine: Engine) -> None:
        self._owner = learners.owner
        vectors, affine = affine_matrix(models, learners.n_features)
        self._table: Array | None = None
        if affine.all():
            # A sum of affine models is the affine model of the sums: no table is needed.
            frame = Frame(learners)
            self._vectors, self._Z = frame.vectors(vectors), frame.rows(learners.X)
            self._middle = frame.middle
        else:
            jobs = [(model, learners.X) for model in models]
            self._table = np.array(engine.map(_predict_everywhere, jobs))

    def predict(self, weights: Array) -> Array:
        """Return the predictions of shape (M, N) of M sums of models, weights of shape (M, L)."""
        if self._table is not None:
            sums: Array = weights @ self._table
            return sums
        linear: Array = (weights @ self._vectors) @ self._Z.T + self._middle * weights.sum(axis=1)[:, None]
        return linear

    def own(self) -> Array:
        """Return the prediction of each row by the model of the learner who holds it."""
        if self._table is not None:
            mine: Array = self._table[self._owner, np.arange(len(self._owner))]
            return mine
        own: Array = np.einsum("nd,nd->n", self._Z, self._vectors[self._owner]) + self._middle
        return own


class AverageLosses(LocalLosses):
    """Losses of averages of models, members weighted by their precision n_j / h_j.

    Parameters
    ----------
    learners : Learners
        Everybody's rows.
    selection : Selection
        Of the same learners, in the same order.
    engine : Engine
        Who predicts, where models are not affine.
    """

    def __init__(self, learners: Learners, selection: Selection, engine: Engine) -> None:
        super().__init__(learners, selection)
        precision = learners.sizes / selection.noise
        self._precision = precision / precision.mean()
        self._averages = ModelAverages(selection.models, learners, engine)
        self._own = self._averages.own()

    def residuals(self, labels: Array, n_clusters: int) -> Array:
        """Return residuals of shape (K, N), own contributions left out."""
        owner = self.learners.owner
        weights = membership(labels, n_clusters, self._precision)
        counts, totals = np.bincount(labels, minlength=n_clusters), weights.sum(axis=1)
        sums = self._averages.predict(weights)
        residuals = self.learners.y - sums / np.where(counts > 0, totals, np.nan)[:, None]
        # What is left after taking oneself out of a cluster of one is rounding, not a weight.
        rest = np.where(counts[labels] > 1, totals[labels] - self._precision, np.nan)
        mine = labels[owner], np.arange(len(owner))
        without = (sums[mine] - self._precision[owner] * self._own) / rest[owner]
        residuals[mine] = self.learners.y - without
        return residuals
