"""What a set of learners loses together on each learner: the one question behind Refine and the rules for K.

The question goes through the protocol `ClusterLosses`. Local rows answer it by arithmetic (`averages`,
`pooled`, `refits`); sites that keep their rows can answer it by messages of scalars. A learner's own
contribution is always left out of the model that predicts it; a learner alone in its cluster is predicted
by the residuals of its own model, out of fold.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from coterie._arrays import Array
from coterie.kernels.limits import LIMITS
from coterie.kernels.losses import learner_blocks
from coterie.method.claims import beyond_claims, is_beyond
from coterie.method.weight_limits import bounded_ratios
from coterie.records import Curve, Selection
from coterie.rows.learners import Learners


class ClusterLosses(Protocol):
    """Answers what the clusters of a labelling lose on each learner, from rows or by messages.

    Where they are ``bounded``, no single learner decides for the others; see `weight_limits`.
    """

    bounded: bool

    @property
    def noise(self) -> Array:
        """Noise level of each learner."""
        ...

    @property
    def half_sizes(self) -> Array:
        """Number of rows in the two halves of each learner, of shape (L, 2)."""
        ...

    def on_halves(self, labels: Array) -> Array:
        """Return mean losses (K, L, 2) of each of K clusters' models on both halves of each learner's rows.

        ``labels`` (L,) say who is in which cluster. A learner's own rows are left out of its cluster's model.
        The loss is infinite where a cluster has nobody to predict with.
        """
        ...

    def paired_t(
        self, labels: Array, picks: Array, other_labels: Array, other_picks: Array
    ) -> tuple[Array, Array]:
        """Compare the losses under two labellings, learner by learner, paired over rows.

        ``picks`` of shape (L, 2) says which cluster of ``labels`` (L,) predicts each half of each learner;
        likewise ``other_picks`` of ``other_labels``. Returns the mean excess of the first loss over the
        second, and its standard error, both of shape (L,).
        """
        ...


@dataclass(frozen=True)
class LocalRows:
    """What only rows that are here can add to a search. Sites that keep their rows have none of it.

    ``quick`` is a cheaper form of the losses that searches before they decide. ``suggest``, given a number
    of clusters and a seed, returns labellings worth refining. ``one_truth_test``, given a seed, returns by
    how much two clusters explain more than they would of one truth: in standard deviations, and as a share
    of what one model leaves unexplained. ``reassign`` returns who most probably belongs where. ``second`` is
    a form that may explain the learners better. ``cross_validate``, given the evidence, returns the curve of
    that rule. ``anybody_beyond``, given a labelling, which clusters predict and a rate of false alarms, tells
    whether some learner loses more than probabilities claim. Where only landmarks exchanged,
    ``check_landmarks`` says how far labels and scale are from the exact answer.
    """

    quick: ClusterLosses | None = None
    suggest: Callable[[int, int], list[Array]] = lambda n_clusters, seed: []
    one_truth_test: Callable[[int], tuple[float, float]] = lambda seed: (math.nan, math.nan)
    reassign: Callable[[Array], Array] = lambda labels: labels
    second: SecondForm | None = None
    cross_validate: Callable[[Any], Curve] | None = None
    check_landmarks: Callable[[Array, float], str] | None = None
    anybody_beyond: Callable[[Array, Array, float], bool] = lambda labels, picks, rate: False


@dataclass(frozen=True)
class SecondForm:
    """A costlier form of the losses; ``always`` says whether it searches in any case.

    Otherwise it searches only if one model of it predicts as well as the first form's clusters.
    """

    losses: ClusterLosses
    local: LocalRows
    always: bool


def whole_losses(losses: ClusterLosses, labels: Array) -> Array:
    """Return mean losses (K, L) of each cluster's model over all rows of each learner.

    They are the means of the two halves, weighted by their rows; an empty half does not count.
    """
    half_sizes = losses.half_sizes
    losses_on_halves = losses.on_halves(labels)
    loss_sums = np.where(half_sizes > 0, losses_on_halves, 0.0) * half_sizes
    mean_losses: Array = loss_sums.sum(axis=-1) / half_sizes.sum(axis=-1)
    return mean_losses


def noise_ratios(losses: ClusterLosses, means: Array) -> Array:
    """Return mean losses (L,) in units of the learners' noise, bounded where that is required."""
    ratios: Array = means / losses.noise
    return bounded_ratios(ratios) if losses.bounded else ratios


class LocalLosses(ABC):
    """What clusters lose on learners whose rows are here; subclasses say how a cluster predicts.

    ``selection`` is of the same learners, in the same order. ``places`` of shape (L,) gives each learner's
    position among those who are labelled; None: they are all of them.
    """

    bounded = False

    def __init__(self, learners: Learners, selection: Selection, places: Array | None = None) -> None:
        """Sort the rows by learner and half, and compute the losses of learners' own models.

        The latter are out of fold and clipped; they stand for a learner that is alone in its cluster.
        ``tempering`` is the weight, at most one, of a row where rows are pooled.
        """
        is_second_half = np.concatenate([halves_of(folds) for folds in selection.folds])
        # Rows of a half lie together, so that means of halves are segmented sums.
        order = np.lexsort((is_second_half, learners.owner))
        self.order = order
        self.learners = learners.rearranged(order)
        self.selection, self.noise = selection, selection.noise
        self.typical_noise = float(np.median(self.noise))
        # Whose rows these are, among those who are labelled; see `places`.
        self.holder = learners.owner if places is None else places[learners.owner]
        # Bounds of rows' losses: nine robust variances of the learner's noise, as Select found them.
        self.clips = selection.clips[learners.owner]
        self.second = is_second_half[order]
        rows_per_half = np.bincount(2 * learners.owner + is_second_half, minlength=2 * len(learners))
        self.half_sizes = rows_per_half.reshape(-1, 2)
        # Where each half of each learner begins among the sorted rows, (2 L,).
        self._starts = np.r_[0, np.cumsum(rows_per_half)[:-1]]
        own_residuals = np.concatenate(selection.residuals)[order]
        own_losses = learners.loss.by_row(own_residuals)
        is_never_held_out = ~np.isfinite(own_residuals).all(axis=1)
        # Rows that no fold held out count as typical ones of their learner.
        own_losses[is_never_held_out] = selection.noise[learners.owner][is_never_held_out]
        self.own_losses = self._counted(np.minimum(own_losses, self.clips))
        # Rows whose out-of-fold loss exceeds the bound count less where rows are pooled: one wild row must
        # not drive the others out of its cluster.
        with np.errstate(divide="ignore"):
            self.tempering = np.minimum(1.0, self.clips / own_losses)
        # The last few answers by labelling, as bytes: losses by row (K, N), or None, and by half (K, L, 2).
        self._remembered: dict[bytes, tuple[Array | None, Array]] = {}

    @abstractmethod
    def residuals(self, labels: Array, n_clusters: int) -> Array:
        """Return residuals (K, N, C) of each of K clusters' models on all N rows.

        A learner's own rows are left out of the model that predicts it. Residuals are NaN where nobody is
        left.
        """

    def _counted(self, losses: Array, rows: slice = slice(None)) -> Array:
        """Multiply the losses (..., n) of some rows by the rows' weights, in place, and return them."""
        if self.learners.weights is not None:
            losses *= self.learners.weights[rows]
        return losses

    def residual_blocks(self, labels: Array, n_clusters: int) -> Iterator[tuple[int, int, Array]]:
        """Yield the residuals for runs of learners, for forms that can make them piece by piece.

        Each item is the first learner of a run, the first one after it, and the residuals (K, n, C) of its n
        rows.
        """
        yield 0, len(self.learners), self.residuals(labels, n_clusters)

    def _loss_blocks(self, labels: Array) -> Iterator[tuple[int, int, slice, Array]]:
        """Yield the clipped loss of each row under each cluster, for runs of learners.

        Each item is the first learner of a run, the first one after it, the slice of its n rows, and losses
        (K, n). Where a cluster has nobody to predict with, the loss is infinite; a learner alone in its
        cluster has the out-of-fold losses of its own model there.
        """
        n_clusters = int(labels.max()) + 1
        for first_learner, next_learner, residuals in self.residual_blocks(labels, n_clusters):
            rows = self._rows_of(first_learner, next_learner)
            losses = self._counted(self.learners.loss.by_row(residuals, self.clips[rows]), rows)
            is_unpredicted = np.isnan(losses)
            losses[is_unpredicted] = np.inf
            own_entries = labels[self.holder[rows]], np.arange(losses.shape[1])
            losses[own_entries] = np.where(
                is_unpredicted[own_entries], self.own_losses[rows], losses[own_entries]
            )
            yield first_learner, next_learner, rows, losses

    def _blocks(self, labels: Array) -> Iterator[tuple[int, int, slice, Array]]:
        """Yield the same items as `_loss_blocks`: all rows at once if their losses are remembered."""
        remembered_losses = self._answer(labels)[0]
        if remembered_losses is None:
            yield from self._loss_blocks(labels)
        else:
            yield 0, len(self.learners), slice(0, len(self.learners.y)), remembered_losses

    def _rows_of(self, start: int, stop: int) -> slice:
        """Return the rows of a run of learners, from ``start`` up to but not including ``stop``."""
        return slice(int(self.learners.offsets[start]), int(self.learners.offsets[stop]))

    def runs(self, n_clusters: int) -> Iterator[tuple[int, int]]:
        """Yield first and last-plus-one learner of runs whose losses with K clusters fit into one block."""
        return learner_blocks(self.learners, max(LIMITS.numbers // n_clusters, 1))

    def _answer(self, labels: Array) -> tuple[Array | None, Array]:
        """Return the losses of a labelling by row (K, N) and by half (K, L, 2), and remember the last few.

        Losses by row are None where they are too many to be remembered.
        """
        key = labels.tobytes()
        if key not in self._remembered:
            n_clusters, n_rows = int(labels.max()) + 1, len(self.learners.y)
            losses_on_halves = np.zeros((n_clusters, len(self.learners), 2))
            losses_by_row = None
            # More than these are computed again when they are needed.
            if n_clusters * n_rows <= LIMITS.numbers:
                losses_by_row = np.empty((n_clusters, n_rows))
            for first_learner, next_learner, rows, losses in self._loss_blocks(labels):
                losses_on_halves[:, first_learner:next_learner] = self._halves(
                    losses, first_learner, next_learner
                )
                if losses_by_row is not None:
                    losses_by_row[:, rows] = losses
            if len(self._remembered) > 4:
                self._remembered.pop(next(iter(self._remembered)))
            self._remembered[key] = losses_by_row, losses_on_halves
        return self._remembered[key]

    def _halves(self, losses_by_row: Array, start: int, stop: int) -> Array:
        """Return mean losses (K, learners, 2) by half of each learner's rows, for a run of learners.

        ``losses_by_row`` (K, n) are of the run's rows; ``start`` is its first learner, ``stop`` the first one
        after it. An empty half has the loss zero.
        """
        sizes = self.half_sizes[start:stop].reshape(-1)
        starts = self._starts[2 * start : 2 * stop] - self.learners.offsets[start]
        filled_halves = np.flatnonzero(sizes)
        means = np.zeros((len(losses_by_row), len(sizes)))
        means[:, filled_halves] = (
            np.add.reduceat(losses_by_row, starts[filled_halves], axis=1) / sizes[filled_halves]
        )
        return means.reshape(len(losses_by_row), -1, 2)

    def on_halves(self, labels: Array) -> Array:
        """Return mean losses (K, L, 2) of each cluster's model on both halves of each learner's rows."""
        return self._answer(labels)[1]

    def by_row(self, labels: Array) -> Array:
        """Return losses of shape (K, N), the rows in the order of ``self.learners``."""
        return np.concatenate([losses for *_, losses in self._blocks(labels)], axis=1)

    def paired_t(
        self, labels: Array, picks: Array, other_labels: Array, other_picks: Array
    ) -> tuple[Array, Array]:
        """Return the mean difference of two losses and its standard error, by learner, of shape (L,) each.

        Arguments are as for `ClusterLosses.paired_t`.

        A learner whose losses have no robust spread, most of them zero, gets a standard error at least as
        large as under typical noise: forty zeros do not show that there are no others. Predictions apart by d
        differ in loss by d squared where one of them is right, with a standard error of 2 d by its noise.
        """
        loss_differences = self._picked(labels, picks) - self._picked(other_labels, other_picks)
        excess, standard_error = self._means_and_errors(loss_differences, 0, len(self.learners))
        typical_variance = self.typical_noise / self.learners.sizes
        least_error = 2 * np.sqrt(np.maximum(excess, 0.0) * typical_variance)
        has_no_spread = np.isinf(self.selection.clips)
        return excess, np.where(has_no_spread, np.maximum(standard_error, least_error), standard_error)

    def anybody_beyond(self, labels: Array, picks: Array, rate: float) -> bool:
        """Tell whether some learner loses significantly more than its clusters' probabilities claim.

        What a class should cost follows from its probability; more than that is too much. ``picks`` (L, 2)
        says which cluster of ``labels`` (L,) predicts each half of a learner. The ``rate`` of false alarms is
        shared out among the learners. A learner alone in its cluster does not count.
        """
        cluster_of_row, n_learners = picks[self.holder, self.second], len(self.learners)
        residuals = self.residuals(labels, int(labels.max()) + 1)[
            cluster_of_row, np.arange(len(cluster_of_row))
        ]
        starts, inflation = self.learners.offsets[:-1], self.selection.inflation
        deviations = beyond_claims(residuals, self.learners.weights, starts, self.learners.loss, inflation)
        excess_over_own = self._means_and_errors(self._picked(labels, picks) - self.own_losses, 0, n_learners)
        return bool(np.any(is_beyond(deviations, *excess_over_own, rate / n_learners)))

    def _means_and_errors(self, row_values: Array, start: int, stop: int) -> tuple[Array, Array]:
        """Return mean and standard error (..., learners) of values by row (..., n), for a run of learners.

        ``start`` is the run's first learner, ``stop`` the first one after it. Dependence between rows
        inflates the standard error.
        """
        first_row, sizes = self.learners.offsets[start], self.learners.sizes[start:stop]
        starts = self.learners.offsets[start:stop] - first_row
        owner = self.learners.owner[self._rows_of(start, stop)]
        mean = np.add.reduceat(row_values, starts, axis=-1) / sizes
        squared_deviations = np.add.reduceat((row_values - mean[..., owner - start]) ** 2, starts, axis=-1)
        # Neighbouring rows that are alike say less than as many independent ones.
        squared_deviations *= self.selection.inflation
        return mean, np.sqrt(squared_deviations / np.maximum(sizes - 1, 1) / sizes)

    def _no_worse(self, labels: Array, errors: float) -> Array:
        """Return a mask (K, L): clusters in which a learner loses hardly more than in its own.

        A loss counts as hardly more up to ``errors`` standard errors, paired over rows.
        """
        is_no_worse = np.ones((int(labels.max()) + 1, len(self.learners)), dtype=bool)
        for first_learner, next_learner, rows, losses in self._blocks(labels):
            own_entries = labels[self.holder[rows]], np.arange(losses.shape[1])
            excess, standard_error = self._means_and_errors(
                losses - losses[own_entries], first_learner, next_learner
            )
            is_no_worse[:, first_learner:next_learner] = excess <= errors * standard_error
        return is_no_worse

    def _picked(self, labels: Array, picks: Array) -> Array:
        """Return each row's loss (N,) under the cluster that ``picks`` (L, 2) names for its half."""
        cluster_of_row = picks[self.holder, self.second]
        picked_losses = np.empty(len(cluster_of_row))
        for _, _, rows, losses in self._blocks(labels):
            picked_losses[rows] = losses[cluster_of_row[rows], np.arange(losses.shape[1])]
        return picked_losses


def halves_of(folds: Array) -> Array:
    """Return 0 or 1 for each row: 1 if it belongs to the second half, which the later folds hold out.

    On one half of its rows a learner chooses its cluster, and the other half judges it. ``folds`` (n,) is the
    fold that holds each row out, -1: none does. With fewer than two folds, rows alternate.
    """
    n_folds = int(folds.max()) + 1
    if n_folds < 2:
        return np.arange(len(folds)) % 2
    return (folds >= (n_folds + 1) // 2).astype(int)
