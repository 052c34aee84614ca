"""How learners predict classes with averages of each other's models, weighed and moved in log-odds."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from coterie._arrays import Array
from coterie.collaboration.classes.own_lines import OwnClassRows, OwnLines, chances_of, log_odds_of
from coterie.collaboration.nested.guard import guarded_columns
from coterie.collaboration.nested.record import NestedForm
from coterie.records import BY_LEARNER
from coterie.rows.learners import Learners


def mixed_chances(X: Array, averages: Array, shares: Array, own: OwnLines) -> Array:
    """Return the probabilities (n, C) of one mixture.

    ``averages`` (n, E + 1, C) are those of the own model and of E averages; ``shares`` (2 E + 1,) weigh the
    own model, the averages with an offset and those with offset and slopes, whose lines are ``own``.
    """
    base = log_odds_of(averages[:, 1:])
    moved = chances_of(own.added(X, np.concatenate([base, base], axis=1)))
    mixture: Array = shares[0] * averages[:, 0] + np.einsum("k,nkc->nc", shares[1:], moved)
    return mixture


@dataclass(frozen=True)
class ClassAverages(NestedForm):
    """What nested coteries of averages hand on for classes.

    The first fields, up to ``residuals``, are those of `coterie.records.Collaboration`.

    Parameters
    ----------
    parts : ndarray of shape (M, E + 1, L)
        Weights of the models in the own model, and in each of E averages, for each row of ``weights``.
    part_shares : ndarray of shape (M, 2 E + 1)
        Shares of the own model, of the averages with an offset, and of those with offset and slopes.
    lines : ndarray of shape (M, 2 E, C, p + 1)
        What is added to the log-odds of the averages: slopes and intercept for each class.
    limits : ndarray of shape (M, 2 E, C, 2)
        What the values of lines are kept within.
    bounds : ndarray of shape (L, 2)
        What the probabilities of each model are kept within.
    plain_residuals, all_residuals : tuple of ndarray
        Honest residual of each row under what its coterie shares, and under what all learners share.
    all_row : int
        The row of ``weights`` that predicts with what all learners share; so predicts an unseen learner.
    share_names : tuple of str
        Whom learners take from.
    shares : ndarray of shape (L, len(share_names))
        How much each learner takes from each of them; rows sum to one.
    shrinkage : float
        Pseudo-rows of the average learner that each learner's own rows were weighed against.
    ratios : ndarray of shape (2,)
        Variances of newcomers' offsets and slopes.
    units : ndarray of shape (p,)
        Common units of the predictors.
    """

    parts: Array = field(repr=False)
    part_shares: Array = field(repr=False)
    lines: Array = field(repr=False)
    limits: Array = field(repr=False)
    bounds: Array = field(repr=False)
    plain_residuals: tuple[Array, ...] = field(metadata=BY_LEARNER, repr=False)
    all_residuals: tuple[Array, ...] = field(metadata=BY_LEARNER, repr=False)
    all_row: int
    share_names: tuple[str, ...]
    shares: Array = field(metadata=BY_LEARNER)
    shrinkage: float
    ratios: Array
    units: Array = field(repr=False)

    @staticmethod
    def totals(parts: Array, part_shares: Array) -> Array:
        """Return what models weigh in all, of shape (M, L)."""
        n_shared = parts.shape[1] - 1
        both = part_shares[:, 1:].reshape(len(parts), 2, n_shared).sum(axis=1)
        total: Array = np.einsum("we,wem->wm", np.column_stack([part_shares[:, 0], both]), parts)
        return total

    @property
    def of_averages(self) -> bool:
        """Whether shared predictors are averages of the learners' models."""
        return True

    def with_newcomers(self, newcomers: Learners, labels: Array) -> tuple[ClassAverages, Array]:
        """Add newcomers, who predict with their cluster and a line of their own; return their rows, too."""
        assert self.plausible is not None
        joined, weight_rows = self.newcomer_weight_rows[labels], len(self.weights) + np.arange(len(newcomers))
        lines, limits = self.lines[joined].copy(), self.limits[joined].copy()
        shared = self.predict_columns(newcomers.X, joined[newcomers.owner])
        for index in range(len(newcomers)):
            span = newcomers.span(index)
            weights = None if newcomers.weights is None else newcomers.weights[span]
            rows = OwnClassRows.of(newcomers.X[span], newcomers.y[span], weights, self.units)
            own = rows.lines(log_odds_of(shared[span])[:, None], self.ratios[None])
            lines[index, 0, :, : own.lines.shape[-1] - 1] = own.lines[0, :, :-1]
            lines[index, 0, :, -1], limits[index, 0] = own.lines[0, :, -1], own.limits[0]
        bounds = np.array([self.loss.own_bounds(n) for n in newcomers.sizes.tolist()])
        added = replace(
            self,
            plausible=np.vstack([self.plausible, bounds]),
            weights=np.vstack([self.weights, self.weights[joined]]),
            parts=np.concatenate([self.parts, self.parts[joined]]),
            part_shares=np.vstack([self.part_shares, self.part_shares[joined]]),
            lines=np.concatenate([self.lines, lines]),
            limits=np.concatenate([self.limits, limits]),
        )
        return added, weight_rows

    def predict_columns(self, X: Array, weight_rows: Array) -> Array:
        """Predict the columns of the response, of shape (N, C), each row with its learner's weights."""
        n_parts, n_columns = self.parts.shape[1], self.loss.n_columns
        averages = np.zeros((len(X), n_parts, n_columns))
        used, indices = np.unique(weight_rows, return_inverse=True)
        # Each model predicts once, for the rows of all who take something from it.
        for position in np.flatnonzero(self.parts[used].any(axis=(0, 1))).tolist():
            share = self.parts[used, :, position][indices]
            selected = np.flatnonzero(share.any(axis=1))
            part = guarded_columns(self.models[position], X[selected], self.bounds[position], self.loss)
            averages[selected] += share[selected, :, None] * part[:, None]
        prediction = np.empty((len(X), n_columns))
        for index, row in enumerate(used.tolist()):
            selected = np.flatnonzero(indices == index)
            own = OwnLines(self.lines[row], self.limits[row])
            prediction[selected] = mixed_chances(X[selected], averages[selected], self.part_shares[row], own)
        return self._clipped_to_plausible(prediction, weight_rows)
