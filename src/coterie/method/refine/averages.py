"""Clusters that predict by the weighted average of their members' models: no rows of others are needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.engines import Engine
from coterie.kernels.affine import Frame, affine_matrix
from coterie.kernels.blocks import predict_rows
from coterie.kernels.limits import LIMITS
from coterie.method.refine.losses import LocalLosses
from coterie.records import Exchange, Selection
from coterie.rows.learners import Learners

Array = NDArray[Any]

# A learner without noise would outweigh all others without end. This one leaves them half of their digits.
LARGEST_WEIGHT = float(np.sqrt(1 / LIMITS.rounding))


def membership(labels: Array, n_clusters: int, weights: Array) -> Array:
    """Return the weights as a matrix of shape (K, L), each learner's in the row of its cluster."""
    matrix = np.zeros((n_clusters, len(labels)))
    matrix[labels, np.arange(len(labels))] = weights
    return matrix


def _predict_everywhere(job: tuple[Any, Array]) -> Array:
    model, X = job
    starts = range(0, len(X), LIMITS.rows)
    return np.concatenate([predict_rows(model, X[s : s + LIMITS.rows]) for s in starts])


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

    _table: Array | None = None
    _failed: Array | None = None

    def __init__(self, models: Sequence[Any], learners: Learners, engine: Engine) -> None:
        self._owner = learners.owner
        vectors, affine = affine_matrix(models, learners.n_features)
        if affine.all():
            # A sum of affine models is the affine model of the sums: no table is needed.
            frame = Frame(learners)
            self._vectors, self._Z = frame.vectors(vectors), frame.rows(learners.X)
            self._middle = frame.middle
        else:
            jobs = [(model, learners.X) for model in models]
            self._keep(np.array(engine.map(_predict_everywhere, jobs)))

    @classmethod
    def of_predictions(cls, table: Array, owner: Array) -> ModelAverages:
        """Return the sums of models that have predicted already.

        Parameters
        ----------
        table : ndarray of shape (L, N)
            Predictions of every learner's model; NaN where a model failed.
        owner : ndarray of shape (N,)
            The learner who holds each row.

        Returns
        -------
        ModelAverages
            Of these predictions.
        """
        averages = cls.__new__(cls)
        averages._owner = owner
        averages._keep(table)
        return averages

    def _keep(self, table: Array) -> None:
        failed = ~np.isfinite(table)
        if failed.any():
            table = np.where(failed, 0.0, table)
            self._failed = failed.astype(float)
        self._table = table

    def predict(self, weights: Array) -> Array:
        """Return the predictions of shape (M, N) of M sums of models, weights of shape (M, L)."""
        if self._table is not None:
            sums: Array = weights @ self._table
            if self._failed is not None:
                # Zero times NaN is NaN: only those who weigh a failed model may hear of it.
                sums[(weights != 0).astype(float) @ self._failed > 0] = np.nan
            return sums
        linear: Array = (weights @ self._vectors) @ self._Z.T + self._middle * weights.sum(axis=1)[:, None]
        return linear

    def own(self) -> Array:
        """Return the prediction of each row by the model of the learner who holds it."""
        if self._table is not None:
            mine = self._owner, np.arange(len(self._owner))
            own = self._table[mine].copy()
            if self._failed is not None:
                own[self._failed[mine] > 0] = np.nan
            return own
        linear: Array = np.einsum("nd,nd->n", self._Z, self._vectors[self._owner]) + self._middle
        return linear


def bounded_weights(weights: Array) -> Array:
    """Return weights in units of their median, none so large that taking it out loses the others' digits."""
    bounded: Array = np.minimum(weights / np.median(weights), LARGEST_WEIGHT)
    return bounded


def how_models_travel(exchange: Exchange, block: int = 1024) -> Array:
    """Return the loss of each model on the learners that it suits best, in units of their noise.

    Parameters
    ----------
    exchange : Exchange
        Losses among the learners.
    block : int, default=1024
        Models looked at together.

    Returns
    -------
    ndarray of shape (L,)
        Median over the third of the other learners on whom the model loses least; one where there are
        no others.
    """
    n = len(exchange.learner_ids)
    if n == 1:
        return np.ones(1)
    nearest = max(1, round((n - 1) / 3))
    travel = np.empty(n)
    for start in range(0, n, block):
        models = slice(start, min(start + block, n))
        ratios = exchange.source.tile(models, slice(0, n)) / exchange.noise
        ratios[np.arange(len(ratios)), np.arange(start, start + len(ratios))] = np.inf
        travel[models] = np.median(np.partition(ratios, nearest - 1, axis=1)[:, :nearest], axis=1)
    return travel


def model_weights(sizes: Array, noise: Array, exchange: Exchange) -> Array:
    """Return what each model weighs in an average: its learner's precision, and how well it travels."""
    return bounded_weights(sizes / noise / np.maximum(how_models_travel(exchange), 1e-6) ** 2)


class AverageLosses(LocalLosses):
    """Losses of averages of models, each weighted by its learner's precision and by how well it travels.

    The weight is n_j / h_j / t_j^2, with t_j from `how_models_travel`. By precision alone, a cluster is
    spoilt by the models of those members who fitted badly, and splitting them off looks like a discovery.

    Parameters
    ----------
    learners : Learners
        Everybody's rows.
    selection : Selection
        Of the same learners, in the same order.
    exchange : Exchange
        Of the same learners, in the same order.
    engine : Engine
        Who predicts, where models are not affine.
    """

    def __init__(self, learners: Learners, selection: Selection, exchange: Exchange, engine: Engine) -> None:
        super().__init__(learners, selection)
        self._weights = model_weights(learners.sizes, selection.noise, exchange)
        self.averages = ModelAverages(selection.models, self.learners, engine)
        self._own = self.averages.own()

    @classmethod
    def of_one(
        cls, learner: Learners, selection: Selection, table: Array, weights: Array, place: int
    ) -> AverageLosses:
        """Return the losses on the rows of one learner, who knows others by their models alone.

        Parameters
        ----------
        learner : Learners
            The one learner's rows.
        selection : Selection
            Of this learner.
        table : ndarray of shape (L, n)
            What everybody's models predict on these rows.
        weights : ndarray of shape (L,)
            From `model_weights`.
        place : int
            Where the learner stands among those who are labelled.

        Returns
        -------
        AverageLosses
            Answers of shape (K, 1, 2) to labellings of L learners.
        """
        losses = cls.__new__(cls)
        LocalLosses.__init__(losses, learner, selection, np.array([place]))
        losses._weights = weights
        losses.averages = ModelAverages.of_predictions(table[:, losses.order], losses.holder)
        losses._own = losses.averages.own()
        return losses

    def residuals(self, labels: Array, n_clusters: int) -> Array:
        """Return residuals of shape (K, N), own contributions left out."""
        owner = self.holder
        weights = membership(labels, n_clusters, self._weights)
        counts, totals = np.bincount(labels, minlength=n_clusters), weights.sum(axis=1)
        sums = self.averages.predict(weights)
        residuals = self.learners.y - sums / np.where(counts > 0, totals, np.nan)[:, None]
        # What is left after taking oneself out of a cluster of one is rounding, not a weight; the same holds
        # where the others' models weigh next to nothing.
        rest = totals[labels] - self._weights
        somebody = (counts[labels] > 1) & (rest > LIMITS.rounding * totals[labels])
        rest = np.where(somebody, rest, np.nan)
        mine = labels[owner], np.arange(len(owner))
        without = (sums[mine] - self._weights[owner] * self._own) / rest[owner]
        residuals[mine] = self.learners.y - without
        return residuals
