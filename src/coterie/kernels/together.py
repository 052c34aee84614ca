"""What a set of learners loses together on each learner: the one question behind Refine and the rules for K.

The question goes through the protocol `TogetherLosses`. Local rows answer it by arithmetic (`averages`,
`pooled`, `refits`); parties that keep their rows can answer it by messages of scalars. A learner's own
contribution is always left out of the model that predicts it; a learner alone in its cluster is predicted
by its own honest residuals.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from coterie._rows import Learners
from coterie.records import Selection

Array = NDArray[Any]


class TogetherLosses(Protocol):
    """Answers what the clusters of a labelling lose on each learner."""

    @property
    def proxy(self) -> TogetherLosses | None:
        """A cheaper form to search with before this one decides, or None."""
        ...

    @property
    def costlier(self) -> TogetherLosses | None:
        """A form that is asked whether the clusters found by this one are needed at all, or None."""
        ...

    @property
    def noise(self) -> Array:
        """Noise level of each learner."""
        ...

    @property
    def half_sizes(self) -> Array:
        """Number of rows in the two halves of each learner, of shape (L, 2)."""
        ...

    def suggest(self, n_clusters: int, seed: int) -> list[Array]:
        """Return labellings worth refining; none where there is no cheap way to find any."""
        ...

    def estimation_price(self, labels: Array) -> Array:
        """Return what each learner loses because its cluster's model is estimated, per unit of noise.

        NaN where that is not known.
        """
        ...

    def on_halves(self, labels: Array) -> Array:
        """Return mean losses of shape (K, L, 2): each cluster's model on both halves of each learner.

        Infinite where a cluster has nobody to predict with.
        """
        ...

    def paired_t(
        self, labels: Array, picks: Array, other_labels: Array, other_picks: Array
    ) -> tuple[Array, Array]:
        """Compare two ways of predicting, learner by learner, paired over rows.

        ``picks`` of shape (L, 2) says which cluster of ``labels`` predicts each half of each learner.
        Returns the mean excess of the first way over the second, and its standard error.
        """
        ...


def whole_losses(losses: TogetherLosses, labels: Array) -> Array:
    """Return mean losses of shape (K, L) over all rows of each learner."""
    sizes = losses.half_sizes
    halves = losses.on_halves(labels)
    counted = np.where(sizes > 0, halves, 0.0) * sizes
    whole: Array = counted.sum(axis=-1) / sizes.sum(axis=-1)
    return whole


class LocalLosses(ABC):
    """Answers from rows that are here. What differs between forms is how a cluster predicts.

    Parameters
    ----------
    learners : Learners
        Everybody's rows.
    selection : Selection
        Of the same learners, in the same order.
    places : ndarray of shape (L,) or None, default=None
        Where these learners stand among those who are labelled; None: they are all of them.
    """

    # A cheaper form, which does most of the searching.
    proxy: LocalLosses | None = None
    # A form that is asked whether the clusters found by this one are needed at all.
    costlier: LocalLosses | None = None

    def __init__(self, learners: Learners, selection: Selection, places: Array | None = None) -> None:
        second = np.concatenate([halves_of(folds) for folds in selection.folds])
        # Rows of a half lie together, so that means of halves are segmented sums.
        order = np.lexsort((second, learners.owner))
        self.order = order
        self.learners = learners.rearranged(order)
        self.selection = selection
        # Whose rows these are, among those who are labelled.
        self.holder = learners.owner if places is None else places[learners.owner]
        self.clips = selection.clips[learners.owner]
        self.second = second[order]
        counts = np.bincount(2 * learners.owner + second, minlength=2 * len(learners))
        self._half_sizes = counts.reshape(-1, 2)
        self._starts = np.r_[0, np.cumsum(counts)[:-1]]
        own = np.concatenate(selection.residuals)[order]
        own = np.where(np.isfinite(own), own, np.sqrt(selection.noise)[learners.owner])
        self.own_losses = self._loss(own)
        # Rows that a learner's own honest model misses by more than the bound count less where rows are
        # pooled: one wild row must not drive the others out of its cluster.
        with np.errstate(divide="ignore"):
            self.tempering = np.minimum(1.0, self.clips / np.square(own))
        self._remembered: dict[bytes, tuple[Array, Array]] = {}

    @property
    def noise(self) -> Array:
        """Noise level of each learner."""
        return self.selection.noise

    @property
    def half_sizes(self) -> Array:
        """Number of rows in the two halves of each learner."""
        return self._half_sizes

    @abstractmethod
    def residuals(self, labels: Array, n_clusters: int) -> Array:
        """Return residuals of shape (K, N), own contributions left out, NaN where nobody is left."""

    def _loss(self, residuals: Array) -> Array:
        with np.errstate(over="ignore"):
            losses = np.minimum(np.square(residuals), self.clips)
        return losses if self.learners.weights is None else losses * self.learners.weights

    def _answer(self, labels: Array) -> tuple[Array, Array]:
        """Return losses by row, of shape (K, N), and by half, remembering the last few labellings."""
        key = labels.tobytes()
        if key not in self._remembered:
            n_clusters = int(labels.max()) + 1
            losses = self._loss(self.residuals(labels, n_clusters))
            empty = np.isnan(losses)
            losses[empty] = np.inf
            mine = labels[self.holder], np.arange(len(self.holder))
            losses[mine] = np.where(empty[mine], self.own_losses, losses[mine])
            if len(self._remembered) > 4:
                self._remembered.pop(next(iter(self._remembered)))
            self._remembered[key] = losses, self._halves(losses)
        return self._remembered[key]

    def _halves(self, rows: Array) -> Array:
        sizes = self._half_sizes.reshape(-1)
        filled = np.flatnonzero(sizes)
        means = np.zeros((len(rows), len(sizes)))
        means[:, filled] = np.add.reduceat(rows, self._starts[filled], axis=1) / sizes[filled]
        return means.reshape(len(rows), -1, 2)

    def suggest(self, n_clusters: int, seed: int) -> list[Array]:
        """Return labellings worth refining: none, unless a form knows a cheap way to find some."""
        return []

    def estimation_price(self, labels: Array) -> Array:
        """Return what estimating a cluster's model costs each learner: not known, unless a form knows."""
        return np.full(len(labels), np.nan)

    def on_halves(self, labels: Array) -> Array:
        """Return mean losses of shape (K, L, 2)."""
        return self._answer(labels)[1]

    def by_row(self, labels: Array) -> Array:
        """Return losses of shape (K, N), the rows in the order of ``self.learners``."""
        return self._answer(labels)[0]

    def paired_t(
        self, labels: Array, picks: Array, other_labels: Array, other_picks: Array
    ) -> tuple[Array, Array]:
        """Return mean excess and standard error per learner."""
        difference = self._picked(labels, picks) - self._picked(other_labels, other_picks)
        starts, sizes = self.learners.offsets[:-1], self.learners.sizes
        mean = np.add.reduceat(difference, starts) / sizes
        spread = np.add.reduceat((difference - mean[self.learners.owner]) ** 2, starts)
        return mean, np.sqrt(spread / np.maximum(sizes - 1, 1) / sizes)

    def _picked(self, labels: Array, picks: Array) -> Array:
        rows = self._answer(labels)[0]
        chosen = picks[self.holder, self.second]
        picked: Array = rows[chosen, np.arange(rows.shape[1])]
        return picked


def halves_of(folds: Array) -> Array:
    """Return 1 for the rows of the second half: those that the later folds hold out."""
    n_folds = int(folds.max()) + 1
    if n_folds < 2:
        return np.arange(len(folds)) % 2
    return (folds >= (n_folds + 1) // 2).astype(int)
