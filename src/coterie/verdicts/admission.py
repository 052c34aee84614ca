"""Newcomers join the cluster with the largest sum of similarities to its members, as in the paper, or none.

A newcomer with rows enough for a model of its own is compared both ways. One with fewer is compared by the
members' models on its rows alone: its own fitted error is the same for all members and cancels. How sure the
placement is, resampling the newcomer's rows tells. The answer is "none of these" when every cluster predicts
the newcomer significantly worse than its own honest model does, beyond what the cluster's own estimation
error explains; a newcomer without a model has no such yardstick and is placed, but never surely.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import logsumexp

from coterie._arrays import Array
from coterie._seeds import generator_for
from coterie.dissimilarity import dissimilarity
from coterie.engines import Engine
from coterie.kernels.affine import affine_matrix
from coterie.kernels.losses import learner_blocks, loss_matrix, predict_rows
from coterie.loss import SQUARED_ERROR, Loss
from coterie.method.refine.averages import bounded_weights, membership, model_averages
from coterie.records import BY_LEARNER, Aligned, Collaboration, Partition, Selection
from coterie.rows.learners import Learners
from coterie.verdicts.bootstrap import resampled_counts
from coterie.verdicts.cluster_fit import FALSE_ALARMS, is_worse, paired_excess

NONE_OF_THESE = -1
# A placement is sure when this share of the replicates agrees with it.
SURE = 0.95
# Predictions of all members' models on newcomers' rows that are held at a time.
MOST_ENTRIES = 20_000_000
# Beyond this many rows, blocks of neighbouring rows are resampled together.
MOST_BLOCKS = 500
# With as many rows for fitting as for scoring, the honest error of a linear model lies above the noise twice
# as much as the fitted error lies below it: two thirds of the gap between them are the model's, not noise.
ABOVE_NOISE = 2 / 3
# How much a cluster errs by estimation is itself known badly where its members are few. So measured that a
# newcomer of the cluster's truth is turned away in one case of a hundred at most; see the tests.
UNSURE_OF_FEW = 2.0
UNSURE_OF_ONE = 3.0


@dataclass(frozen=True)
class Admission(Aligned):
    """Where newcomers were placed, and how surely.

    Parameters
    ----------
    learner_ids : ndarray of shape (M,)
        The newcomers.
    labels : ndarray of shape (M,)
        The cluster of each; -1: none of these.
    nearest : ndarray of shape (M,)
        The cluster with the largest similarity, also of those whom no cluster fits.
    similarities : ndarray of shape (M, K)
        Logarithm of the sum of similarities to each cluster's members.
    probabilities : ndarray of shape (M, K)
        Share of the replicates of the newcomer's rows in which each cluster is the nearest; NaN where
        there were none.
    sure : ndarray of bool, shape (M,)
        Whether nineteen of twenty replicates agree, and the newcomer had rows enough for a model of its
        own; or whether every cluster was turned down.
    """

    labels: Array = field(metadata=BY_LEARNER)
    nearest: Array = field(metadata=BY_LEARNER)
    similarities: Array = field(metadata=BY_LEARNER)
    probabilities: Array = field(metadata=BY_LEARNER)
    sure: Array = field(metadata=BY_LEARNER)

    def joined(self, other: Admission) -> Admission:
        """Return these newcomers followed by others."""
        parts = {
            name: np.concatenate([getattr(self, name), getattr(other, name)])
            for name in self.__dataclass_fields__
            if name != "learner_ids"
        }
        return Admission(learner_ids=joined_ids(self.learner_ids, other.learner_ids), **parts)


def second_clusters(admission: Admission) -> Array:
    """Return the nearest cluster that newcomers were not placed into; -1 where there is no other."""
    others = admission.similarities.copy()
    placed = np.flatnonzero(admission.labels >= 0)
    others[placed, admission.labels[placed]] = -np.inf
    lonely = (admission.labels >= 0) & (others.shape[1] == 1)
    return np.where(lonely, -1, others.argmax(axis=1))


def joined_ids(first: Array, second: Array) -> Array:
    """Return ids one after the other; numbers beside text stay numbers."""
    ids = [*first.tolist(), *second.tolist()]
    if len({type(learner) for learner in ids}) > 1:
        # As one array they would become text, and their owners strangers.
        return np.array([*ids, None], dtype=object)[:-1]
    return np.concatenate([first, second])


@dataclass(frozen=True)
class _Clusters:
    """The clusters as a newcomer meets them.

    ``shares`` (K, L) are the weights of the members in their cluster's average, ``lone_errors`` (K,) what
    the model of a cluster of one errs by on other rows of the same truth.
    """

    labels: Array
    scale: float
    shares: Array
    lone_errors: Array
    loss: Loss

    def __len__(self) -> int:
        return len(self.shares)

    def log_sums(self, dissimilarity: Array) -> Array:
        """Return the log of the sum of similarities to each cluster; v of shape (L, ...)."""
        # A model that fails on a newcomer's rows says nothing of whether the two belong together.
        v = np.where(np.isfinite(dissimilarity), dissimilarity, np.inf)
        with np.errstate(divide="ignore"):
            sums = [logsumexp(-self.scale * v[self.labels == k], axis=0) for k in range(len(self))]
        return np.array(sums)

    def estimation_error(self, predictions: Array, k: int) -> float:
        """Return the error of a cluster's average that its members' estimation alone explains."""
        selected = np.flatnonzero(self.labels == k)
        if len(selected) == 1:
            return float(self.lone_errors[k])
        share = self.shares[k, selected]
        theirs = predictions[selected]
        deviations = theirs - np.tensordot(share, theirs, 1)
        between = self.loss.by_row(share[:, None, None] * deviations).mean(axis=1).sum()
        others = len(selected) - 1
        return float(between * len(selected) / others * (1 + UNSURE_OF_FEW / others))


def _clusters_of(selection: Selection, partition: Partition, loss: Loss) -> _Clusters:
    """Return the clusters with the weights of their members' models."""
    labels, n_clusters = partition.labels, partition.n_clusters
    weights = membership(labels, n_clusters, bounded_weights(selection.n_rows / selection.noise))
    lone = np.zeros(n_clusters)
    # The fitted error lies below the noise by as much as the model errs on other rows.
    lone[labels] = UNSURE_OF_ONE * (1 - ABOVE_NOISE) * np.maximum(selection.noise - selection.errors, 0.0)
    return _Clusters(labels, partition.scale, weights / weights.sum(axis=1, keepdims=True), lone, loss)


@dataclass(frozen=True)
class _Newcomer:
    """One newcomer's rows and what was predicted on them.

    ``predictions`` (L, n, C) are those of the members' models, ``pooled`` (K, n, C) those of the clusters'
    pooled models. When it has a model, there are also ``fitted``, ``honest``, ``clip``, ``noise`` and
    ``there`` (L,), what its model loses on the members, ``errors`` (L,), what theirs lose there; ``linear``
    tells whether it is linear.
    """

    y: Array
    weights: Array
    predictions: Array
    pooled: Array | None
    fitted: Array | None = None
    honest: Array | None = None
    clip: float = np.inf
    noise: float = 0.0
    there: Array | None = None
    errors: Array | None = None
    linear: bool = False
    loss: Loss = SQUARED_ERROR

    def losses(self) -> Array:
        """Return the losses by row of the members' models, and of its own in the last row."""
        rows = self.predictions if self.fitted is None else np.vstack([self.predictions, self.fitted[None]])
        losses: Array = self.weights * self.loss.by_row(rows - self.y)
        return losses

    def dissimilarity(self, means: Array) -> Array:
        """Return v towards each member from means of `losses`, of shape (L or L + 1, ...)."""
        if self.there is None or self.errors is None:
            one_sided: Array = 2 * (means - np.nanmin(means, axis=0))
            return one_sided
        shape = -1, *[1] * (means.ndim - 1)
        own, theirs = self.there.reshape(shape), self.errors.reshape(shape)
        two_sided: Array = dissimilarity(means[:-1], own, theirs, means[-1])
        return two_sided

    def own_losses(self) -> Array:
        """Return what its own model loses on each row, less what a linear model's estimation adds to it."""
        assert self.honest is not None
        assert self.fitted is not None
        losses = self.loss.by_row(self.honest)
        known = np.isfinite(self.honest).all(axis=1)
        honest = np.minimum(np.where(known, losses, self.noise), self.clip)
        if not self.linear:
            return honest
        fitted = self.loss.by_row(self.y - self.fitted, self.clip)
        less: Array = honest - ABOVE_NOISE * (honest - fitted)
        return less

    def fits(self, clusters: _Clusters, k: int, own: Array) -> bool:
        """Tell whether a cluster predicts the newcomer as well as its own noise allows."""
        selected = clusters.labels == k
        if not np.isfinite(self.predictions[selected]).all():
            return False
        forms = [np.tensordot(clusters.shares[k, selected], self.predictions[selected], 1)]
        if self.pooled is not None:
            forms.append(self.pooled[k])
        losses = self.loss.by_row(self.y - np.array(forms), self.clip)
        best = losses[losses.mean(axis=1).argmin()]
        sizes = np.array([len(self.y)])
        excess, error = paired_excess(best, own, np.zeros(1, dtype=int), sizes)
        allowed = min(clusters.estimation_error(self.predictions, k), self.noise)
        return not is_worse(excess - allowed, error, sizes, np.array([self.noise]), FALSE_ALARMS)[0]


def _resampled_means(squares: Array, n_replicates: int, generator: np.random.Generator) -> Array:
    """Return means of shape (M, B) over resampled rows; ``squares`` of shape (M, n)."""
    n_rows = squares.shape[1]
    if n_rows > MOST_BLOCKS:
        starts = np.arange(MOST_BLOCKS) * n_rows // MOST_BLOCKS
        squares = np.add.reduceat(squares, starts, axis=1) * (MOST_BLOCKS / n_rows)
    counts = resampled_counts(squares.shape[1], n_replicates, generator)
    with np.errstate(invalid="ignore", over="ignore"):
        means: Array = squares @ counts / len(counts)
    return means


def _meet(
    newcomers: Learners,
    models: Selection | None,
    learners: Learners,
    selection: Selection,
    engine: Engine,
    collaboration: Collaboration | None,
) -> Iterator[list[_Newcomer]]:
    """Give out newcomers block by block, with everybody's predictions on their rows."""
    there, linear = None, np.zeros(len(newcomers), dtype=bool)
    if models is not None:
        there = loss_matrix(models.models, learners, engine)
        linear = affine_matrix(models.models, newcomers.n_features)[1]
    each = np.eye(len(selection.models))
    for start, stop in learner_blocks(newcomers, max(1, MOST_ENTRIES // len(each))):
        block = newcomers.take(np.arange(start, stop))
        with np.errstate(over="ignore", invalid="ignore"):
            predictions = model_averages(selection.models, block, engine).predict(each)
        pooled = None
        if collaboration is not None and collaboration.by_pooled_rows:
            weight_rows = collaboration.newcomer_weight_rows
            all_predictions = (np.full(len(block.X), weight_row) for weight_row in weight_rows)
            pooled = np.array(
                [collaboration.predict_columns(block.X, weight_row) for weight_row in all_predictions]
            )
        weights = np.ones(len(block.y)) if block.weights is None else block.weights
        met = []
        for m in range(start, stop):
            span = block.span(m - start)
            own: dict[str, Any] = {}
            if models is not None and there is not None:
                own = {
                    "fitted": predict_rows(models.models[m], block.X[span], block.loss),
                    "honest": models.residuals[m],
                    "clip": float(models.clips[m]),
                    "noise": float(models.noise[m]),
                    "there": there[m],
                    "errors": selection.errors,
                    "linear": bool(linear[m]),
                }
            beside = None if pooled is None else pooled[:, span]
            theirs = block.y[span], weights[span], predictions[:, span], beside
            met.append(_Newcomer(*theirs, loss=block.loss, **own))
        yield met


def place_newcomers(
    newcomers: Learners,
    models: Selection | None,
    learners: Learners,
    selection: Selection,
    partition: Partition,
    engine: Engine,
    *,
    collaboration: Collaboration | None = None,
    n_replicates: int = 100,
    entropy: int = 0,
) -> Admission:
    """Place newcomers into the clusters, at the cost of one loss per member and newcomer, both ways.

    ``models`` are the newcomers' own, in their order; None: they have too few rows for one. ``learners``,
    ``selection`` and ``partition`` are of the learners that were clustered, in the same order. Where clusters
    predict by pooled models, these count beside the average of the members' models.
    """
    clusters = _clusters_of(selection, partition, newcomers.loss)
    n, n_clusters = len(newcomers), len(clusters)
    if models is None and n_clusters == 1:
        # There is one place to be, and no model of their own to say that it is none.
        only = np.zeros(n, dtype=int)
        return Admission(newcomers.ids, only, only, np.zeros((n, 1)), np.ones((n, 1)), only > 0)
    similarities, probabilities = np.empty((n, n_clusters)), np.full((n, n_clusters), np.nan)
    fits = np.ones(n, dtype=bool)
    ids, single, start = newcomers.ids.tolist(), newcomers.sizes == 1, 0
    for block in _meet(newcomers, models, learners, selection, engine, collaboration):
        losses = [met.losses() for met in block]
        near = [met.dissimilarity(own.mean(axis=1)) for met, own in zip(block, losses, strict=True)]
        similarities[start : start + len(block)] = clusters.log_sums(np.array(near).T).T
        for m, (met, loss) in enumerate(zip(block, losses, strict=True), start):
            if n_replicates and not single[m]:
                generator = generator_for(entropy, f"bootstrap of {ids[m]}")
                means = _resampled_means(loss, n_replicates, generator)
                winners = clusters.log_sums(met.dissimilarity(means)).argmax(axis=0)
                probabilities[m] = np.bincount(winners, minlength=n_clusters) / n_replicates
            if met.honest is not None:
                own = met.own_losses()
                fits[m] = any(met.fits(clusters, k, own) for k in range(n_clusters))
        start += len(block)
    nearest = similarities.argmax(axis=1)
    if n_replicates:
        # A single row is drawn every time, so all replicates agree.
        probabilities[single] = np.eye(n_clusters)[nearest[single]]
    with np.errstate(invalid="ignore"):
        agreed = probabilities[np.arange(n), nearest] >= SURE
    sure = ~fits | (agreed & (models is not None))
    labels = np.where(fits, nearest, NONE_OF_THESE)
    return Admission(newcomers.ids, labels, nearest, similarities, probabilities, sure)
