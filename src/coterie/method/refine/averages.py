"""Clusters that predict by the weighted average of their members' models: no rows of others are needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie.engines import Engine
from coterie.kernels.affine import StandardizedColumns, affine_matrix
from coterie.kernels.limits import LIMITS
from coterie.kernels.losses import predict_rows
from coterie.loss import Loss
from coterie.method.refine.losses import LocalLosses
from coterie.method.refine.moment_starts import cluster_sums
from coterie.method.weight_limits import WEIGHT_LIMITS
from coterie.records import Exchange, Selection
from coterie.rows.learners import Learners

# A learner without noise would outweigh all others without end. This one leaves them half of their digits.
LARGEST_WEIGHT = float(np.sqrt(1 / LIMITS.rounding))


def membership(labels: Array, n_clusters: int, weights: Array) -> Array:
    """Return the weights as a matrix of shape (K, L), each learner's in the row of its cluster."""
    matrix = np.zeros((n_clusters, len(labels)))
    matrix[labels, np.arange(len(labels))] = weights
    return matrix


def _predict_everywhere(job: tuple[Any, Array, Loss]) -> Array:
    """Return a model's predictions of all rows, in blocks."""
    model, X, loss = job
    starts = range(0, len(X), LIMITS.rows)
    return np.concatenate([predict_rows(model, X[s : s + LIMITS.rows], loss) for s in starts])


class LinearAverages:
    """Sums of affine models, which are the affine models of the sums: no table is needed.

    ``vectors`` of shape (L, p + 1) are the models (w, b).
    """

    def __init__(self, vectors: Array, learners: Learners) -> None:
        frame = StandardizedColumns(learners)
        self._vectors, self._Z = frame.vectors(vectors), frame.rows(learners.X)
        self._middle, self._owner = frame.middle, learners.owner

    def predict(self, weights: Array) -> Array:
        """Return the predictions of shape (M, N, 1) of M sums of models, weights of shape (M, L)."""
        sums: Array = (weights @ self._vectors) @ self._Z.T + self._middle * weights.sum(axis=1)[:, None]
        return sums[..., None]

    def own(self) -> Array:
        """Return the prediction of each row, of shape (N, 1), by the model of the learner who holds it."""
        own: Array = np.einsum("nd,nd->n", self._Z, self._vectors[self._owner])[:, None] + self._middle
        return own


class TabledAverages:
    """Sums of models that have predicted already.

    ``table`` of shape (L, N, C) has the predictions of every learner's model, NaN where a model failed.
    ``owner`` of shape (N,) is the learner who holds each row.
    """

    def __init__(self, table: Array, owner: Array) -> None:
        failed = ~np.isfinite(table)
        self._failed = failed.astype(float) if failed.any() else None
        self._table = table if self._failed is None else np.where(failed, 0.0, table)
        self._owner = owner

    def predict(self, weights: Array) -> Array:
        """Return the predictions of shape (M, N, C) of M sums of models, weights of shape (M, L)."""
        sums = cluster_sums(weights, self._table)
        if self._failed is not None:
            # Zero times NaN is NaN: only those who weigh a failed model may get it.
            sums[cluster_sums((weights != 0).astype(float), self._failed) > 0] = np.nan
        return sums

    def own(self) -> Array:
        """Return the prediction of each row, of shape (N, C), by the model of the learner who holds it."""
        own_cluster = self._owner, np.arange(len(self._owner))
        own = self._table[own_cluster]
        if self._failed is not None:
            own[self._failed[own_cluster] > 0] = np.nan
        return own


# Predictions of weighted sums of the learners' models on everybody's rows.
ModelAverages = LinearAverages | TabledAverages


def model_averages(models: Sequence[Any], learners: Learners, engine: Engine) -> ModelAverages:
    """Return the sums of models, one per learner, on everybody's rows; the engine predicts if it must."""
    vectors, affine = affine_matrix(models, learners.n_features)
    if affine.all():
        return LinearAverages(vectors, learners)
    jobs = [(model, learners.X, learners.loss) for model in models]
    return TabledAverages(np.array(engine.map(_predict_everywhere, jobs)), learners.owner)


def bounded_weights(weights: Array) -> Array:
    """Return weights in units of their median, none so large that taking it out loses the others' digits."""
    bounded: Array = np.minimum(weights / np.median(weights), LARGEST_WEIGHT)
    return bounded


def how_models_travel(exchange: Exchange, block: int = 1024) -> Array:
    """Return the loss of each model on the learners that it suits best, in units of their noise.

    It is the median over the third of the other learners on whom the model loses least, and one where there
    are no others. Models are looked at in blocks.
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
    """Return what each model weighs in an average: its learner's precision, and how well it travels.

    A learner may state any number of rows and any noise level. More rows or less noise than the median
    learner's are not believed: how good a model is, the others' rows say. The median model weighs one, and
    none weighs more than twice as much.
    """
    precision = np.minimum(sizes, np.median(sizes)) / np.maximum(noise, np.median(noise))
    weights = bounded_weights(precision / np.maximum(how_models_travel(exchange), 1e-6) ** 2)
    return np.asarray(np.minimum(weights, WEIGHT_LIMITS.weight))


class AverageLosses(LocalLosses):
    """Losses of averages of models, each weighted by its learner's precision and by how well it travels.

    The weights are from `model_weights`. By precision alone, a cluster is spoilt by the models of those
    members who fitted badly, and splitting them off looks like a discovery.

    ``weights`` of shape (L,) are from `model_weights`; ``predict`` returns the averages of models on the rows
    of the learners in the order in which they are kept here. ``places`` is as for `LocalLosses`.
    """

    bounded = True

    def __init__(
        self,
        learners: Learners,
        selection: Selection,
        weights: Array,
        predict: Callable[[LocalLosses], ModelAverages],
        places: Array | None = None,
    ) -> None:
        """Remember the models' weights and how their predictions are made."""
        super().__init__(learners, selection, places)
        self._weights = weights
        self.averages = predict(self)
        self._own = self.averages.own()

    @classmethod
    def of_all(
        cls, learners: Learners, selection: Selection, exchange: Exchange, engine: Engine
    ) -> AverageLosses:
        """Return the losses among learners whose rows are all here; the engine predicts if it must."""
        weights = model_weights(learners.sizes, selection.noise, exchange)
        return cls(
            learners, selection, weights, lambda kept: model_averages(selection.models, kept.learners, engine)
        )

    @classmethod
    def of_one(
        cls, learner: Learners, selection: Selection, table: Array, weights: Array, place: int, noise: Array
    ) -> AverageLosses:
        """Return the losses on the rows of one learner, who knows others by their models alone.

        ``table`` of shape (L, n, C) has the predictions of everybody's models on these rows, ``place`` says
        where the learner stands among those with labels, and ``noise`` (L,) has their noise levels. Answers
        to labellings of L learners have the shape (K, 1, 2).
        """
        losses = cls(
            learner,
            selection,
            np.where(np.isfinite(table).all(axis=(1, 2)), weights, 0.0),
            lambda kept: TabledAverages(table[:, kept.order], kept.holder),
            np.array([place]),
        )
        losses.typical_noise = float(np.median(noise))
        return losses

    def residuals(self, labels: Array, n_clusters: int) -> Array:
        """Return residuals of shape (K, N, C), own contributions left out."""
        owner = self.holder
        weights = membership(labels, n_clusters, self._weights)
        counts, totals = np.bincount(labels, minlength=n_clusters), weights.sum(axis=1)
        sums = self.averages.predict(weights)
        residuals = self.learners.y - sums / np.where(totals > 0, totals, np.nan)[:, None, None]
        # What is left after taking oneself out of a cluster of one is rounding, not a weight; the same holds
        # where the others' models weigh next to nothing.
        rest = totals[labels] - self._weights
        somebody = (counts[labels] > 1) & (rest > LIMITS.rounding * totals[labels])
        rest = np.where(somebody, rest, np.nan)
        own_cluster = labels[owner], np.arange(len(owner))
        without = (sums[own_cluster] - self._weights[owner, None] * self._own) / rest[owner, None]
        residuals[own_cluster] = self.learners.y - without
        return residuals
