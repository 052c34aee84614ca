"""What a set of learners loses together on each learner: the one question behind Refine and the rules for K.

The question goes through the protocol `ClusterLosses`. Local rows answer it by arithmetic (`averages`,
`pooled`, `refits`); sites that keep their rows can answer it by messages of scalars. A learner's own
contribution is always left out of the model that predicts it; a learner alone in its cluster is predicted
by its own honest residuals.
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
        """Return mean losses of shape (K, L, 2): each cluster's model on both halves of each learner.

        Infinite where a cluster has nobody to predict with.
        """
        ...

    def paired_t(
        self, labels: Array, picks: Array, other_labels: Array, other_picks: Array
    ) -> tuple[Array, Array]:
        """Compare two forms of prediction, learner by learner, paired over rows.

        ``picks`` of shape (L, 2) says which cluster of ``labels`` predicts each half of each learner.
        Returns the mean excess of the first form over the second, and its standard error.
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
    """A costlier form of the losses, and whether it searches always or only if one model of it is as good."""

    losses: ClusterLosses
    local: LocalRows
    always: bool


def whole_losses(losses: ClusterLosses, labels: Array) -> Array:
    """Return mean losses of shape (K, L) over all rows of each learner."""
    sizes = losses.half_sizes
    halves = losses.on_halves(labels)
    counted = np.where(sizes > 0, halves, 0.0) * sizes
    whole: Array = counted.sum(axis=-1) / sizes.sum(axis=-1)
    return whole


def noise_ratios(losses: ClusterLosses, means: Array) -> Array:
    """Return mean losses (L,) in units of the learners' noise, bounded where that is required."""
    ratios: Array = means / losses.noise
    return bounded_ratios(ratios) if losses.bounded else ratios


class LocalLosses(ABC):
    """Answers from rows that are here. What differs between forms is how a cluster predicts.

    ``selection`` is of the same learners, in the same order. ``places`` of shape (L,) says where they stand
    among those who are labelled; None: they are all of them.
    """

    bounded = False

    def __init__(self, learners: Learners, selection: Selection, places: Array | None = None) -> None:
        """Sort the rows by learner and half, and prepare what losses are compared with."""
        second = np.concatenate([halves_of(folds) for folds in selection.folds])
        # Rows of a half lie together, so that means of halves are segmented sums.
        order = np.lexsort((second, learners.owner))
        self.order = order
        self.learners = learners.rearranged(order)
        self.selection, self.noise = selection, selection.noise
        self.typical_noise = float(np.median(self.noise))
        # Whose rows these are, among those who are labelled.
        self.holder = learners.owner if places is None else places[learners.owner]
        self.clips = selection.clips[learners.owner]
        self.second = second[order]
        counts = np.bincount(2 * learners.owner + second, minlength=2 * len(learners))
        self.half_sizes = counts.reshape(-1, 2)
        self._starts = np.r_[0, np.cumsum(counts)[:-1]]
        own = np.concatenate(selection.residuals)[order]
        losses = learners.loss.by_row(own)
        unknown = ~np.isfinite(own).all(axis=1)
        # Rows that no fold held out count as typical ones of their learner.
        losses[unknown] = selection.noise[learners.owner][unknown]
        self.own_losses = self._counted(np.minimum(losses, self.clips))
        # Rows that a learner's own honest model misses by more than the bound count less where rows are
        # pooled: one wild row must not drive the others out of its cluster.
        with np.errstate(divide="ignore"):
            self.tempering = np.minimum(1.0, self.clips / losses)
        self._remembered: dict[bytes, tuple[Array | None, Array]] = {}

    @abstractmethod
    def residuals(self, labels: Array, n_clusters: int) -> Array:
        """Return residuals of shape (K, N, C), own contributions left out, NaN where nobody is left."""

    def _counted(self, losses: Array, rows: slice = slice(None)) -> Array:
        """Let the losses of rows count by their weights, in place."""
        if self.learners.weights is not None:
            losses *= self.learners.weights[rows]
        return losses

    def residual_blocks(self, labels: Array, n_clusters: int) -> Iterator[tuple[int, int, Array]]:
        """Give out the residuals for runs of learners, where a form can make them piece by piece.

        Yields the first learner of a run, the first behind it, and residuals of shape (K, n, C).
        """
        yield 0, len(self.learners), self.residuals(labels, n_clusters)

    def _loss_blocks(self, labels: Array) -> Iterator[tuple[int, int, slice, Array]]:
        """Give out the losses by row for runs of learners, with the rows of the run."""
        n_clusters = int(labels.max()) + 1
        for start, stop, residuals in self.residual_blocks(labels, n_clusters):
            rows = self._rows_of(start, stop)
            losses = self._counted(self.learners.loss.by_row(residuals, self.clips[rows]), rows)
            empty = np.isnan(losses)
            losses[empty] = np.inf
            own_cluster = labels[self.holder[rows]], np.arange(losses.shape[1])
            losses[own_cluster] = np.where(empty[own_cluster], self.own_losses[rows], losses[own_cluster])
            yield start, stop, rows, losses

    def _blocks(self, labels: Array) -> Iterator[tuple[int, int, slice, Array]]:
        """Give out the same; all at once where they are remembered."""
        kept = self._answer(labels)[0]
        if kept is None:
            yield from self._loss_blocks(labels)
        else:
            yield 0, len(self.learners), slice(0, len(self.learners.y)), kept

    def _rows_of(self, start: int, stop: int) -> slice:
        return slice(int(self.learners.offsets[start]), int(self.learners.offsets[stop]))

    def runs(self, n_clusters: int) -> Iterator[tuple[int, int]]:
        """Cut the learners into runs whose losses with all clusters fit into one block."""
        return learner_blocks(self.learners, max(LIMITS.numbers // n_clusters, 1))

    def _answer(self, labels: Array) -> tuple[Array | None, Array]:
        """Return losses by row, of shape (K, N), if they are few, and by half; remember the last few."""
        key = labels.tobytes()
        if key not in self._remembered:
            n_clusters, n_rows = int(labels.max()) + 1, len(self.learners.y)
            halves = np.zeros((n_clusters, len(self.learners), 2))
            kept = None
            # More than these are computed again when they are needed.
            if n_clusters * n_rows <= LIMITS.numbers:
                kept = np.empty((n_clusters, n_rows))
            for start, stop, rows, losses in self._loss_blocks(labels):
                halves[:, start:stop] = self._halves(losses, start, stop)
                if kept is not None:
                    kept[:, rows] = losses
            if len(self._remembered) > 4:
                self._remembered.pop(next(iter(self._remembered)))
            self._remembered[key] = kept, halves
        return self._remembered[key]

    def _halves(self, rows: Array, start: int, stop: int) -> Array:
        """Return the mean losses by half of each learner's rows, of shape (K, L, 2)."""
        sizes = self.half_sizes[start:stop].reshape(-1)
        starts = self._starts[2 * start : 2 * stop] - self.learners.offsets[start]
        filled = np.flatnonzero(sizes)
        means = np.zeros((len(rows), len(sizes)))
        means[:, filled] = np.add.reduceat(rows, starts[filled], axis=1) / sizes[filled]
        return means.reshape(len(rows), -1, 2)

    def on_halves(self, labels: Array) -> Array:
        """Return mean losses of shape (K, L, 2)."""
        return self._answer(labels)[1]

    def by_row(self, labels: Array) -> Array:
        """Return losses of shape (K, N), the rows in the order of ``self.learners``."""
        return np.concatenate([losses for *_, losses in self._blocks(labels)], axis=1)

    def paired_t(
        self, labels: Array, picks: Array, other_labels: Array, other_picks: Array
    ) -> tuple[Array, Array]:
        """Return mean excess and standard error per learner.

        Forty zeros do not show that there are no others: a learner whose losses have no robust spread
        is taken to be as noisy as is typical. Predictions apart by d differ in loss by d squared where one of
        them is right, with a standard error of 2 d by its noise.
        """
        difference = self._picked(labels, picks) - self._picked(other_labels, other_picks)
        excess, error = self._means_and_errors(difference, 0, len(self.learners))
        typical = self.typical_noise / self.learners.sizes
        least = 2 * np.sqrt(np.maximum(excess, 0.0) * typical)
        spreadless = np.isinf(self.selection.clips)
        return excess, np.where(spreadless, np.maximum(error, least), error)

    def anybody_beyond(self, labels: Array, picks: Array, rate: float) -> bool:
        """Tell whether some learner loses more than its clusters' probabilities claim; `paired_t` for picks.

        The ``rate`` of false alarms is shared out among the learners. Who is alone in a cluster is nobody's.
        """
        chosen, n = picks[self.holder, self.second], len(self.learners)
        residuals = self.residuals(labels, int(labels.max()) + 1)[chosen, np.arange(len(chosen))]
        starts, inflation = self.learners.offsets[:-1], self.selection.inflation
        beyond = beyond_claims(residuals, self.learners.weights, starts, self.learners.loss, inflation)
        excess = self._means_and_errors(self._picked(labels, picks) - self.own_losses, 0, n)
        return bool(np.any(is_beyond(beyond, *excess, rate / n)))

    def _means_and_errors(self, rows: Array, start: int, stop: int) -> tuple[Array, Array]:
        """Return mean and standard error of row values for each of a run of learners."""
        first, sizes = self.learners.offsets[start], self.learners.sizes[start:stop]
        starts = self.learners.offsets[start:stop] - first
        owner = self.learners.owner[self._rows_of(start, stop)]
        mean = np.add.reduceat(rows, starts, axis=-1) / sizes
        spread = np.add.reduceat((rows - mean[..., owner - start]) ** 2, starts, axis=-1)
        # Neighbouring rows that are alike say less than as many independent ones.
        spread *= self.selection.inflation
        return mean, np.sqrt(spread / np.maximum(sizes - 1, 1) / sizes)

    def _no_worse(self, labels: Array, errors: float) -> Array:
        """Return (K, L), where learners lose at most ``errors`` standard errors more than at home."""
        result = np.ones((int(labels.max()) + 1, len(self.learners)), dtype=bool)
        for start, stop, rows, losses in self._blocks(labels):
            own_cluster = labels[self.holder[rows]], np.arange(losses.shape[1])
            excess, error = self._means_and_errors(losses - losses[own_cluster], start, stop)
            result[:, start:stop] = excess <= errors * error
        return result

    def _picked(self, labels: Array, picks: Array) -> Array:
        """Return each row's loss under the cluster that was picked for its half."""
        chosen = picks[self.holder, self.second]
        picked = np.empty(len(chosen))
        for _, _, rows, losses in self._blocks(labels):
            picked[rows] = losses[chosen[rows], np.arange(losses.shape[1])]
        return picked


def halves_of(folds: Array) -> Array:
    """Return 1 for the rows of the second half: those that the later folds hold out."""
    n_folds = int(folds.max()) + 1
    if n_folds < 2:
        return np.arange(len(folds)) % 2
    return (folds >= (n_folds + 1) // 2).astype(int)
