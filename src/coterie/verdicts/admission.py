"""Newcomers join the cluster with the largest sum of similarities to its members, as in the paper, or none.

A newcomer with rows enough for a model of its own is compared both ways. One with fewer is compared by the
members' models on its rows alone: its own fitted error is the same for all members and cancels. How sure the
placement is, a bootstrap of the newcomer's rows tells. The answer is "none of these" when every cluster
predicts the newcomer significantly worse than its own model does on held-out rows, beyond what the cluster's
own estimation error explains. A newcomer without a model has no such yardstick and is placed, but never
surely.
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
# A placement is sure when this share of the bootstrap replicates agrees with it.
SURE_SHARE = 0.95
# Predictions of all members' models on newcomers' rows that are held in memory at a time.
MAX_PREDICTIONS_HELD = 20_000_000
# Beyond this many rows, blocks of neighbouring rows are resampled together.
MAX_BOOTSTRAP_BLOCKS = 500
# With as many rows for fitting as for scoring, the held-out error of a linear model lies above the noise
# twice as much as the training error lies below it: two thirds of the gap are the model's, not noise.
ESTIMATION_SHARE_OF_GAP = 2 / 3
# How much a cluster errs by estimation is itself known badly where its members are few. So measured that a
# newcomer of the cluster's truth is turned away in one case of a hundred at most; see the tests.
ESTIMATION_FACTOR_OF_FEW = 2.0
ESTIMATION_FACTOR_OF_ONE = 3.0


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
    """Return each newcomer's second choice (M,): the nearest cluster that it was not placed into.

    It is -1 where the cluster of the newcomer is the only one there is.
    """
    similarities_elsewhere = admission.similarities.copy()
    placed = np.flatnonzero(admission.labels >= 0)
    similarities_elsewhere[placed, admission.labels[placed]] = -np.inf
    without_second = (admission.labels >= 0) & (similarities_elsewhere.shape[1] == 1)
    return np.where(without_second, -1, similarities_elsewhere.argmax(axis=1))


def joined_ids(first: Array, second: Array) -> Array:
    """Return the ids of two arrays in one array, each id with its own type."""
    ids = [*first.tolist(), *second.tolist()]
    if len({type(learner) for learner in ids}) > 1:
        # numpy would turn numbers beside text into text, and no id would be found again. The None at the end
        # keeps numpy from reading ids that are sequences as further dimensions.
        return np.array([*ids, None], dtype=object)[:-1]
    return np.concatenate([first, second])


@dataclass(frozen=True)
class _Clusters:
    """What is needed of K clusters of L learners to place newcomers.

    ``labels`` (L,) are the learners' clusters. Similarity is exp(-``scale`` x dissimilarity). ``shares``
    (K, L) are the weights of the members in their cluster's average model, each row summing to one.
    ``lone_errors`` (K,) bound the estimation error of a cluster of one member.
    """

    labels: Array
    scale: float
    shares: Array
    lone_errors: Array
    loss: Loss

    def __len__(self) -> int:
        return len(self.shares)

    def log_sums(self, dissimilarity: Array) -> Array:
        """Return the log of the sum of similarities to each cluster's members, of shape (K, ...).

        ``dissimilarity`` (L, ...) is that towards each learner. The log keeps tiny sums apart from zero.
        """
        # A model that fails on a newcomer's rows says nothing of whether the two belong together.
        finite_or_far = np.where(np.isfinite(dissimilarity), dissimilarity, np.inf)
        with np.errstate(divide="ignore"):
            log_sums = [
                logsumexp(-self.scale * finite_or_far[self.labels == k], axis=0) for k in range(len(self))
            ]
        return np.array(log_sums)

    def estimation_error(self, predictions: Array, k: int) -> float:
        """Return the estimation error of cluster k's average model on some rows, as a mean loss.

        ``predictions`` (L, n, C) are those of all learners' models. The scatter of the members' predictions
        around their average estimates it. A newcomer may lose that much more than alone and still belong.
        """
        members = np.flatnonzero(self.labels == k)
        if len(members) == 1:
            return float(self.lone_errors[k])
        member_shares = self.shares[k, members]
        member_predictions = predictions[members]
        deviations = member_predictions - np.tensordot(member_shares, member_predictions, 1)
        scatter = self.loss.by_row(member_shares[:, None, None] * deviations).mean(axis=1).sum()
        degrees_of_freedom = len(members) - 1
        return float(
            scatter * len(members) / degrees_of_freedom * (1 + ESTIMATION_FACTOR_OF_FEW / degrees_of_freedom)
        )


def _clusters_of(selection: Selection, partition: Partition, loss: Loss) -> _Clusters:
    """Return what is needed of the clusters to place newcomers; members count by their rows over their noise.

    Models of many rows with little noise are known best. No weight may dominate: they are bounded.
    """
    labels, n_clusters = partition.labels, partition.n_clusters
    weights = membership(labels, n_clusters, bounded_weights(selection.n_rows / selection.noise))
    lone_errors = np.zeros(n_clusters)
    # The training error lies below the noise by as much as the model errs on other rows. Of a cluster with
    # several members the last one's entry stays, which is not used.
    lone_errors[labels] = (
        ESTIMATION_FACTOR_OF_ONE
        * (1 - ESTIMATION_SHARE_OF_GAP)
        * np.maximum(selection.noise - selection.errors, 0.0)
    )
    return _Clusters(
        labels=labels,
        scale=partition.scale,
        shares=weights / weights.sum(axis=1, keepdims=True),
        lone_errors=lone_errors,
        loss=loss,
    )


@dataclass(frozen=True)
class _Newcomer:
    """One newcomer: its n rows, and what L learners in K clusters predict on them.

    ``y`` (n, C) and ``weights`` (n,) are of the rows. ``predictions`` (L, n, C) are those of the learners'
    models, ``cluster_predictions`` (K, n, C) those of the clusters' pooled models, if there are such.

    The others are known where the newcomer has a model. ``own_predictions`` (n, C) are the model's.
    ``held_out_residuals`` (n, C) are of models fitted without the row. Losses by row count up to ``clip``,
    and ``noise`` is their typical level. ``losses_on_learners`` (L,) is the mean loss of the newcomer's model
    on each learner's rows, ``errors_of_learners`` (L,) that of the learners' own models there. ``linear``
    tells whether the newcomer's model is linear.
    """

    y: Array
    weights: Array
    predictions: Array
    cluster_predictions: Array | None
    own_predictions: Array | None = None
    held_out_residuals: Array | None = None
    clip: float = np.inf
    noise: float = 0.0
    losses_on_learners: Array | None = None
    errors_of_learners: Array | None = None
    linear: bool = False
    loss: Loss = SQUARED_ERROR

    def losses(self) -> Array:
        """Return the weighted loss of each model on each row: the L learners', then its own if it has one.

        The shape is (L, n), or (L + 1, n).
        """
        predictions = self.predictions
        if self.own_predictions is not None:
            predictions = np.vstack([predictions, self.own_predictions[None]])
        losses: Array = self.weights * self.loss.by_row(predictions - self.y)
        return losses

    def dissimilarity(self, mean_losses: Array) -> Array:
        """Return the dissimilarity towards each learner, of shape (L, ...).

        ``mean_losses`` (L, ...) are means of `losses` over rows, or (L + 1, ...) with its own model's last.
        """
        if self.losses_on_learners is None or self.errors_of_learners is None:
            # Twice, as the other direction cannot be measured.
            one_sided: Array = 2 * (mean_losses - np.nanmin(mean_losses, axis=0))
            return one_sided
        shape = -1, *[1] * (mean_losses.ndim - 1)
        on_learners = self.losses_on_learners.reshape(shape)
        errors_of_learners = self.errors_of_learners.reshape(shape)
        two_sided: Array = dissimilarity(mean_losses[:-1], on_learners, errors_of_learners, mean_losses[-1])
        return two_sided

    def own_losses(self) -> Array:
        """Return what its own model loses on each row (n,), to compare clusters with.

        Held-out losses contain noise and the model's estimation error. Of a linear model the second part can
        be told from the training losses, and is taken away.
        """
        assert self.held_out_residuals is not None
        assert self.own_predictions is not None
        losses = self.loss.by_row(self.held_out_residuals)
        known = np.isfinite(self.held_out_residuals).all(axis=1)
        held_out_losses = np.minimum(np.where(known, losses, self.noise), self.clip)
        if not self.linear:
            return held_out_losses
        training_losses = self.loss.by_row(self.y - self.own_predictions, self.clip)
        noise_losses: Array = held_out_losses - ESTIMATION_SHARE_OF_GAP * (held_out_losses - training_losses)
        return noise_losses

    def fits(self, clusters: _Clusters, k: int, own_losses: Array) -> bool:
        """Tell whether cluster k predicts the newcomer as well as its own noise allows.

        The better of the cluster's average and pooled model is compared row by row with ``own_losses`` (n,),
        of the newcomer's own model. It fits unless its excess over the cluster's estimation error is
        significant: models of finitely many rows err a little, even on a true member. A failing model fits
        nobody.
        """
        members = clusters.labels == k
        if not np.isfinite(self.predictions[members]).all():
            return False
        predictions_by_form = [np.tensordot(clusters.shares[k, members], self.predictions[members], 1)]
        if self.cluster_predictions is not None:
            predictions_by_form.append(self.cluster_predictions[k])
        losses = self.loss.by_row(self.y - np.array(predictions_by_form), self.clip)
        best_losses = losses[losses.mean(axis=1).argmin()]
        sizes = np.array([len(self.y)])
        excess, error = paired_excess(best_losses, own_losses, np.zeros(1, dtype=int), sizes)
        allowed = min(clusters.estimation_error(self.predictions, k), self.noise)
        return not is_worse(excess - allowed, error, sizes, np.array([self.noise]), FALSE_ALARMS)[0]


def _resampled_means(losses: Array, n_replicates: int, generator: np.random.Generator) -> Array:
    """Return bootstrap means (M, B): the mean loss of M models over B replicates of resampled rows.

    ``losses`` (M, n) are by row. Of many rows, sums over blocks of neighbours are resampled.
    """
    n_rows = losses.shape[1]
    if n_rows > MAX_BOOTSTRAP_BLOCKS:
        block_starts = np.arange(MAX_BOOTSTRAP_BLOCKS) * n_rows // MAX_BOOTSTRAP_BLOCKS
        losses = np.add.reduceat(losses, block_starts, axis=1) * (MAX_BOOTSTRAP_BLOCKS / n_rows)
    counts = resampled_counts(losses.shape[1], n_replicates, generator)
    with np.errstate(invalid="ignore", over="ignore"):
        means: Array = losses @ counts / len(counts)
    return means


def _predict_newcomers(
    newcomers: Learners,
    models: Selection | None,
    learners: Learners,
    selection: Selection,
    engine: Engine,
    collaboration: Collaboration | None,
) -> Iterator[list[_Newcomer]]:
    """Let all learners' models predict the newcomers' rows, and yield newcomers in blocks that fit memory.

    ``models`` are the newcomers' own, None if they have none. ``selection`` has the models of ``learners``,
    in the same order. A ``collaboration`` by pooled rows adds the predictions of each cluster's pooled model.
    """
    losses_on_learners, linear = None, np.zeros(len(newcomers), dtype=bool)
    if models is not None:
        losses_on_learners = loss_matrix(models.models, learners, engine)
        linear = affine_matrix(models.models, newcomers.n_features)[1]
    # Averages in which one model has all the weight are the predictions of the single models.
    one_model_each = np.eye(len(selection.models))
    rows_at_once = max(1, MAX_PREDICTIONS_HELD // len(one_model_each))
    for start, stop in learner_blocks(newcomers, rows_at_once):
        block = newcomers.take(np.arange(start, stop))
        with np.errstate(over="ignore", invalid="ignore"):
            predictions = model_averages(selection.models, block, engine).predict(one_model_each)
        cluster_predictions = None
        if collaboration is not None and collaboration.by_pooled_rows:
            # One weight row per cluster, the same for all rows of the block.
            weight_rows = (np.full(len(block.X), row) for row in collaboration.newcomer_weight_rows)
            cluster_predictions = np.array(
                [collaboration.predict_columns(block.X, rows_of_cluster) for rows_of_cluster in weight_rows]
            )
        weights = np.ones(len(block.y)) if block.weights is None else block.weights
        newcomers_of_block = []
        for m in range(start, stop):
            span = block.span(m - start)
            of_own_model: dict[str, Any] = {}
            if models is not None and losses_on_learners is not None:
                of_own_model = {
                    "own_predictions": predict_rows(models.models[m], block.X[span], block.loss),
                    "held_out_residuals": models.residuals[m],
                    "clip": float(models.clips[m]),
                    "noise": float(models.noise[m]),
                    "losses_on_learners": losses_on_learners[m],
                    "errors_of_learners": selection.errors,
                    "linear": bool(linear[m]),
                }
            newcomers_of_block.append(
                _Newcomer(
                    y=block.y[span],
                    weights=weights[span],
                    predictions=predictions[:, span],
                    cluster_predictions=None if cluster_predictions is None else cluster_predictions[:, span],
                    loss=block.loss,
                    **of_own_model,
                )
            )
        yield newcomers_of_block


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
    """Place newcomers into the clusters, and tell for whom none of them fits.

    ``models`` are the newcomers' own, in their order; None: they have too few rows for one. ``learners``,
    ``selection`` and ``partition`` are of the learners that were clustered, in the same order. Where clusters
    predict by pooled models, the ``collaboration``'s count beside the average of the members' models.
    Newcomers' rows are resampled ``n_replicates`` times; the draws derive from ``entropy`` and the id.
    """
    clusters = _clusters_of(selection, partition, newcomers.loss)
    n, n_clusters = len(newcomers), len(clusters)
    if models is None and n_clusters == 1:
        # There is one place to be, and no model of their own to say that it is none.
        all_zero = np.zeros(n, dtype=int)
        return Admission(
            learner_ids=newcomers.ids,
            labels=all_zero,
            nearest=all_zero,
            similarities=np.zeros((n, 1)),
            probabilities=np.ones((n, 1)),
            sure=all_zero > 0,
        )
    similarities, probabilities = np.empty((n, n_clusters)), np.full((n, n_clusters), np.nan)
    fits = np.ones(n, dtype=bool)
    ids, single_row, n_placed = newcomers.ids.tolist(), newcomers.sizes == 1, 0
    for block in _predict_newcomers(newcomers, models, learners, selection, engine, collaboration):
        losses = [newcomer.losses() for newcomer in block]
        dissimilarities = [
            newcomer.dissimilarity(by_row.mean(axis=1))
            for newcomer, by_row in zip(block, losses, strict=True)
        ]
        similarities[n_placed : n_placed + len(block)] = clusters.log_sums(np.array(dissimilarities).T).T
        for m, (newcomer, losses_by_row) in enumerate(zip(block, losses, strict=True), n_placed):
            if n_replicates and not single_row[m]:
                generator = generator_for(entropy, f"bootstrap of {ids[m]}")
                mean_losses = _resampled_means(losses_by_row, n_replicates, generator)
                nearest_by_replicate = clusters.log_sums(newcomer.dissimilarity(mean_losses)).argmax(axis=0)
                probabilities[m] = np.bincount(nearest_by_replicate, minlength=n_clusters) / n_replicates
            if newcomer.held_out_residuals is not None:
                own_losses = newcomer.own_losses()
                fits[m] = any(newcomer.fits(clusters, k, own_losses) for k in range(n_clusters))
        n_placed += len(block)
    nearest = similarities.argmax(axis=1)
    if n_replicates:
        # A single row is drawn every time, so all replicates agree.
        probabilities[single_row] = np.eye(n_clusters)[nearest[single_row]]
    # NaN where nothing was resampled: nobody is sure then.
    with np.errstate(invalid="ignore"):
        replicates_agree = probabilities[np.arange(n), nearest] >= SURE_SHARE
    return Admission(
        learner_ids=newcomers.ids,
        labels=np.where(fits, nearest, NONE_OF_THESE),
        nearest=nearest,
        similarities=similarities,
        probabilities=probabilities,
        sure=~fits | (replicates_agree & (models is not None)),
    )
