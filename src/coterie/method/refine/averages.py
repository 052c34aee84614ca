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
    """Return a matrix (K, L) with each learner's weight in the row of its cluster, and zeros elsewhere.

    Multiplied with values (L, ...), it sums them by cluster.
    """
    matrix = np.zeros((n_clusters, len(labels)))
    matrix[labels, np.arange(len(labels))] = weights
    return matrix


def _predict_everywhere(job: tuple[Any, Array, Loss]) -> Array:
    """Return one model's predictions (N, C) of all rows, made in blocks that bound the memory.

    ``job`` holds the model, the rows X (N, p) and the loss, in one argument for the engine's ``map``.
    """
    model, X, loss = job
    block_starts = range(0, len(X), LIMITS.rows)
    return np.concatenate(
        [predict_rows(model, X[start : start + LIMITS.rows], loss) for start in block_starts]
    )


class LinearAverages:
    """Predictions of weighted sums of affine models on N rows, by summing the models' coefficients.

    ``vectors`` of shape (L, p + 1) are the models (w, b). A weighted sum of affine models is affine itself,
    so that no table of all models' predictions is needed.
    """

    def __init__(self, vectors: Array, learners: Learners) -> None:
        """Bring models and rows into one standardised frame, in which sums are accurate.

        ``_Z`` (N, p + 1) are the standardised rows and ``_vectors`` the models for them, ``_middle`` the mean
        response, which their predictions lack, and ``_owner`` (N,) who holds each row.
        """
        frame = StandardizedColumns(learners)
        self._vectors, self._Z = frame.vectors(vectors), frame.rows(learners.X)
        self._middle, self._owner = frame.middle, learners.owner

    def predict(self, weights: Array) -> Array:
        """Return the predictions of shape (M, N, 1) of M sums of models, weights of shape (M, L)."""
        predicted: Array = (weights @ self._vectors) @ self._Z.T + self._middle * weights.sum(axis=1)[:, None]
        return predicted[..., None]

    def own(self) -> Array:
        """Return the prediction of each row, of shape (N, 1), by the model of the learner who holds it."""
        predicted: Array = np.einsum("nd,nd->n", self._Z, self._vectors[self._owner])[:, None] + self._middle
        return predicted


class TabledAverages:
    """Predictions of weighted sums of any models on N rows, from a table of their predictions.

    ``table`` of shape (L, N, C) has the predictions of every learner's model, NaN where a model failed.
    ``owner`` of shape (N,) is the learner who holds each row.
    """

    def __init__(self, table: Array, owner: Array) -> None:
        """Keep the table with zeros for NaN, and remember where models failed."""
        failed = ~np.isfinite(table)
        self._failed = failed.astype(float) if failed.any() else None
        self._table = table if self._failed is None else np.where(failed, 0.0, table)
        self._owner = owner

    def predict(self, weights: Array) -> Array:
        """Return the predictions of shape (M, N, C) of M sums of models, weights of shape (M, L)."""
        predicted = cluster_sums(weights, self._table)
        if self._failed is not None:
            # Zero times NaN is NaN: only those who weigh a failed model may get it.
            predicted[cluster_sums((weights != 0).astype(float), self._failed) > 0] = np.nan
        return predicted

    def own(self) -> Array:
        """Return the prediction of each row, of shape (N, C), by the model of the learner who holds it."""
        own_entries = self._owner, np.arange(len(self._owner))
        predicted = self._table[own_entries]
        if self._failed is not None:
            predicted[self._failed[own_entries] > 0] = np.nan
        return predicted


# Predictions of weighted sums of the learners' models on everybody's rows.
ModelAverages = LinearAverages | TabledAverages


def model_averages(models: Sequence[Any], learners: Learners, engine: Engine) -> ModelAverages:
    """Return what predicts weighted sums of L models, one per learner, on the rows of all ``learners``.

    Affine models are summed by their coefficients; if any model is not affine, all predict every row once, by
    the engine.
    """
    vectors, is_affine = affine_matrix(models, learners.n_features)
    if is_affine.all():
        return LinearAverages(vectors, learners)
    jobs = [(model, learners.X, learners.loss) for model in models]
    return TabledAverages(np.array(engine.map(_predict_everywhere, jobs)), learners.owner)


def bounded_weights(weights: Array) -> Array:
    """Return positive weights (L,) in units of their median, bounded from above.

    Leaving a learner out is a subtraction from a sum: a weight too large would take the others' digits along.
    """
    bounded: Array = np.minimum(weights / np.median(weights), LARGEST_WEIGHT)
    return bounded


def how_models_travel(exchange: Exchange, block: int = 1024) -> Array:
    """Return how well each of L models predicts learners like its own: a loss in units of noise, (L,).

    It is the median loss over the third of the other learners on whom the model loses least, and one where
    there are no others. Models are looked at in blocks, so that no matrix of all pairs is needed.
    """
    n_learners = len(exchange.learner_ids)
    if n_learners == 1:
        return np.ones(1)
    n_nearest = max(1, round((n_learners - 1) / 3))
    typical_ratios = np.empty(n_learners)
    for block_start in range(0, n_learners, block):
        models = slice(block_start, min(block_start + block, n_learners))
        ratios = exchange.source.tile(models, slice(0, n_learners)) / exchange.noise
        # A model's own learner does not count.
        ratios[np.arange(len(ratios)), np.arange(block_start, block_start + len(ratios))] = np.inf
        typical_ratios[models] = np.median(np.partition(ratios, n_nearest - 1, axis=1)[:, :n_nearest], axis=1)
    return typical_ratios


def model_weights(sizes: Array, noise: Array, exchange: Exchange) -> Array:
    """Return the weights (L,) of models in an average: precision over the square of how well they travel.

    How well a model travels is how little it loses on the learners most like its own (`how_models_travel`).
    ``sizes`` and ``noise`` (L,) are the learners' numbers of rows and noise levels. A learner may state any.
    More rows or less noise than the median learner's are not believed: how good a model is, the others' rows
    say. The median model weighs one, and none weighs more than twice as much.
    """
    # Security: a liar gains nothing by claiming many rows or little noise.
    precision = np.minimum(sizes, np.median(sizes)) / np.maximum(noise, np.median(noise))
    weights = bounded_weights(precision / np.maximum(how_models_travel(exchange), 1e-6) ** 2)
    return np.asarray(np.minimum(weights, WEIGHT_LIMITS.weight))


class AverageLosses(LocalLosses):
    """Losses of clusters that predict by the weighted average of their members' models.

    A model weighs by its learner's precision and by how well it predicts others' rows, as in `model_weights`.
    By precision alone, members who fitted badly spoil a cluster's average, and splitting them off looks like
    a discovery.

    ``weights`` of shape (L,) are these weights; ``predict`` returns the averages of models on the rows of the
    learners in the order in which they are kept here. ``places`` is as for `LocalLosses`.
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
        """Remember the models' weights, and have their averages and own predictions prepared.

        The base class sorts rows by learner and half; ``predict`` is called after that, so that its rows are
        in the same order.
        """
        super().__init__(learners, selection, places)
        self._weights = weights
        self.averages = predict(self)
        self._own = self.averages.own()

    @classmethod
    def of_all(
        cls, learners: Learners, selection: Selection, exchange: Exchange, engine: Engine
    ) -> AverageLosses:
        """Return the losses among L learners whose rows are all here.

        Models that are not affine predict everybody's rows by the engine.
        """
        weights = model_weights(learners.sizes, selection.noise, exchange)
        return cls(
            learners,
            selection,
            weights,
            lambda arranged: model_averages(selection.models, arranged.learners, engine),
        )

    @classmethod
    def of_one(
        cls, learner: Learners, selection: Selection, table: Array, weights: Array, place: int, noise: Array
    ) -> AverageLosses:
        """Return the losses on the rows of one learner, who knows others by their models alone.

        ``table`` of shape (L, n, C) has the predictions of everybody's models on these n rows, and
        ``weights`` and ``noise`` (L,) the models' weights and the learners' noise levels. ``place`` is the
        learner's position among the L learners that a labelling labels. Losses for labels (L,) then have the
        shape (K, 1, 2).
        """
        # A model that failed on one of these rows has no weight here.
        losses = cls(
            learner,
            selection,
            np.where(np.isfinite(table).all(axis=(1, 2)), weights, 0.0),
            lambda arranged: TabledAverages(table[:, arranged.order], arranged.holder),
            np.array([place]),
        )
        losses.typical_noise = float(np.median(noise))
        return losses

    def residuals(self, labels: Array, n_clusters: int) -> Array:
        """Return residuals (K, N, C) of each cluster's average on each row, the row's owner left out.

        Where nobody else is in the owner's cluster, they are NaN.
        """
        owner = self.holder
        weights = membership(labels, n_clusters, self._weights)
        n_members, total_weights = np.bincount(labels, minlength=n_clusters), weights.sum(axis=1)
        weighted_sums = self.averages.predict(weights)
        residuals = (
            self.learners.y
            - weighted_sums / np.where(total_weights > 0, total_weights, np.nan)[:, None, None]
        )
        # What is left after taking oneself out of a cluster of one is rounding, not a weight; the same holds
        # where the others' models weigh next to nothing.
        weight_of_others = total_weights[labels] - self._weights
        has_others = (n_members[labels] > 1) & (weight_of_others > LIMITS.rounding * total_weights[labels])
        weight_of_others = np.where(has_others, weight_of_others, np.nan)
        own_entries = labels[owner], np.arange(len(owner))
        average_of_others = (
            weighted_sums[own_entries] - self._weights[owner, None] * self._own
        ) / weight_of_others[owner, None]
        residuals[own_entries] = self.learners.y - average_of_others
        return residuals
