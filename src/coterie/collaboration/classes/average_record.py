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
    """Return the probabilities (n, C) of one learner's mixture of models for rows X (n, p).

    ``averages`` (n, E + 1, C) are probabilities by the own model and by E averages of models. ``shares``
    (2 E + 1,) weigh the own model, the averages with an offset, and those with offset and slopes. ``own``
    has the lines that are added to the log-odds of the averages, which move these towards the learner.
    """
    # Each of the E averages takes part twice: moved by an offset, and by an offset and slopes.
    log_odds = log_odds_of(averages[:, 1:])
    moved_probabilities = chances_of(own.added(X, np.concatenate([log_odds, log_odds], axis=1)))
    mixed_probabilities: Array = shares[0] * averages[:, 0] + np.einsum(
        "k,nkc->nc", shares[1:], moved_probabilities
    )
    return mixed_probabilities


@dataclass(frozen=True)
class ClassAverages(NestedForm):
    """How learners predict classes with averages of classifiers, where rows may not move.

    Each mixes its own classifier with averages over clusters, coarse and fine, moved by lines of its own. The
    first fields, up to ``residuals``, are those of `coterie.records.Collaboration`.

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
        Out-of-fold residuals of rows under what their coterie shares, and under what all learners share.
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
        """Return each model's total weight in the mixture of each of M rows of weights, of shape (M, L).

        ``parts`` (M, E + 1, L) are weights of models in the own model and in E averages,
        ``part_shares`` (M, 2 E + 1) the shares of these, with an offset and with slopes.
        """
        n_shared = parts.shape[1] - 1
        shares_of_averages = part_shares[:, 1:].reshape(len(parts), 2, n_shared).sum(axis=1)
        model_weights: Array = np.einsum(
            "we,wem->wm", np.column_stack([part_shares[:, 0], shares_of_averages]), parts
        )
        return model_weights

    @property
    def of_averages(self) -> bool:
        """Whether shared predictors are averages of the learners' models."""
        return True

    def with_newcomers(self, newcomers: Learners, labels: Array) -> tuple[ClassAverages, Array]:
        """Add newcomers, on whose rows no model was fitted; return the record and their rows of ``weights``.

        ``labels`` (M,) gives the cluster that each newcomer joins. It takes that cluster's average, moved in
        log-odds by a shrunken offset and slopes of the newcomer's own rows. The record itself stays as it is.
        """
        assert self.plausible is not None
        coterie_rows, weight_rows = (
            self.newcomer_weight_rows[labels],
            len(self.weights) + np.arange(len(newcomers)),
        )
        lines, limits = self.lines[coterie_rows].copy(), self.limits[coterie_rows].copy()
        coterie_predictions = self.predict_columns(newcomers.X, coterie_rows[newcomers.owner])
        for newcomer in range(len(newcomers)):
            span = newcomers.span(newcomer)
            weights = None if newcomers.weights is None else newcomers.weights[span]
            newcomer_rows = OwnClassRows.of(newcomers.X[span], newcomers.y[span], weights, self.units)
            own_lines = newcomer_rows.lines(
                log_odds_of(coterie_predictions[span])[:, None], self.ratios[None]
            )
            # Of many predictors lines have an intercept only: the slopes stay zero.
            lines[newcomer, 0, :, : own_lines.lines.shape[-1] - 1] = own_lines.lines[0, :, :-1]
            lines[newcomer, 0, :, -1], limits[newcomer, 0] = own_lines.lines[0, :, -1], own_lines.limits[0]
        # Few rows do not show that a class never comes: they keep probabilities further from nought and one.
        bounds = np.array([self.loss.own_bounds(n_rows) for n_rows in newcomers.sizes.tolist()])
        added = replace(
            self,
            plausible=np.vstack([self.plausible, bounds]),
            weights=np.vstack([self.weights, self.weights[coterie_rows]]),
            parts=np.concatenate([self.parts, self.parts[coterie_rows]]),
            part_shares=np.vstack([self.part_shares, self.part_shares[coterie_rows]]),
            lines=np.concatenate([self.lines, lines]),
            limits=np.concatenate([self.limits, limits]),
        )
        return added, weight_rows

    def predict_columns(self, X: Array, weight_rows: Array) -> Array:
        """Predict the columns of the response, (N, C), for rows X (N, p).

        ``weight_rows`` (N,) says which row of ``weights`` predicts each row: that of its learner or
        coterie. Models are averaged first, then the averages are moved by lines and mixed.
        """
        n_parts, n_columns = self.parts.shape[1], self.loss.n_columns
        averages = np.zeros((len(X), n_parts, n_columns))
        distinct_rows, index_of_row = np.unique(weight_rows, return_inverse=True)
        # Each model predicts once, for the rows of all who take something from it.
        for model_position in np.flatnonzero(self.parts[distinct_rows].any(axis=(0, 1))).tolist():
            weights_in_parts = self.parts[distinct_rows, :, model_position][index_of_row]
            used_positions = np.flatnonzero(weights_in_parts.any(axis=1))
            model_probabilities = guarded_columns(
                self.models[model_position], X[used_positions], self.bounds[model_position], self.loss
            )
            averages[used_positions] += (
                weights_in_parts[used_positions, :, None] * model_probabilities[:, None]
            )
        prediction = np.empty((len(X), n_columns))
        for index, row in enumerate(distinct_rows.tolist()):
            used_positions = np.flatnonzero(index_of_row == index)
            own_lines = OwnLines(self.lines[row], self.limits[row])
            prediction[used_positions] = mixed_chances(
                X[used_positions], averages[used_positions], self.part_shares[row], own_lines
            )
        return self._clipped_to_plausible(prediction, weight_rows)
