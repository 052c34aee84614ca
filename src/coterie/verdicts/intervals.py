"""Prediction intervals: where new responses of a learner will lie, with a given probability.

An interval reaches from the prediction to quantiles of residuals. These are out of fold: no model had been
fitted on the row (cross-conformal prediction). A learner with ten rows has ten of them, which is too few for
a quantile of its own. So residuals are taken in units of each learner's scale
(`coterie.verdicts.spread`). The quantiles of a learner are shrunken to those of its coterie, and these to
those of all learners. Each residual is divided by the scale that its learner would have without it, so that
the quantiles allow for not knowing the scale.

Both ends have quantiles of their own, since many responses are skewed. A learner that the fit has not seen
gets quantiles of the residuals under what all learners share, in which all learners count equally.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from coterie._arrays import Array
from coterie.records import BY_LEARNER, Aligned
from coterie.verdicts.admission import joined_ids
from coterie.verdicts.quantiles import (
    CHOICE_COVERAGE,
    by_learner,
    shrinkage_rows,
    shrunken_quantiles,
    upper_quantiles,
)
from coterie.verdicts.spread import Residuals, Scales, Spread, learn_scales, learn_spread

# Pseudo-rows of the coterie for the scale of newcomers, at most: models have not been fitted to their rows,
# so that they may be predicted worse than learners of the fit are, however alike these are.
MAX_PSEUDO_ROWS_OF_NEWCOMERS = 4.0


@dataclass(frozen=True)
class Intervals(Aligned):
    """The out-of-fold residuals and scales from which prediction intervals are made.

    Parameters
    ----------
    learner_ids : ndarray of shape (M,)
        Learners of the fit, then those that were placed later.
    scales : ndarray of shape (M,)
        The unit of each learner's residuals.
    clusters : ndarray of shape (M,)
        The cluster of each; -1: none.
    counted : ndarray of bool, shape (M,)
        Whose residuals are pooled with those of others: not those of newcomers.
    residuals : tuple of ndarray of shape (n_j, 2)
        Out-of-fold residuals of each learner's n_j rows in units of its scale, and the weights of the rows.
    shared : ndarray of shape (N, 2)
        The same under the model that all learners share, in units of the response; the weights of each
        learner's rows sum to one.
    base : Scales
        What the scales of newcomers are shrunken to.
    spread : Spread
        How far residuals scatter from row to row.
    pseudo_rows : float
        Rows of the coterie that each learner's quantiles are shrunken by.
    """

    scales: Array = field(metadata=BY_LEARNER)
    clusters: Array = field(metadata=BY_LEARNER)
    counted: Array = field(metadata=BY_LEARNER)
    residuals: tuple[Array, ...] = field(metadata=BY_LEARNER, repr=False)
    shared: Array = field(repr=False)
    base: Scales = field(repr=False)
    spread: Spread = field(repr=False)
    pseudo_rows: float

    def tails(self, coverage: float) -> Array:
        """Return the quantiles of residuals at which intervals end, of shape (M + 1, 2): lower, upper.

        They are in units of each learner's scale. With a ``coverage`` of .9 they are those at .05 and .95.
        The last row is for a learner that the fit has not seen.
        """
        level = (1 + coverage) / 2
        values, weights = np.concatenate(self.residuals).T
        owner = np.repeat(np.arange(len(self.residuals)), [len(part) for part in self.residuals])
        ends = []
        # The lower end is the upper quantile of the residuals with the other sign.
        for sign in (-1.0, 1.0):
            of_learners = shrunken_quantiles(
                values=sign * values,
                weights=weights,
                owner=owner,
                clusters=self.clusters,
                counted=self.counted,
                pseudo_rows=self.pseudo_rows,
                level=level,
            )
            # All rows are one group: it does not matter whose they are.
            one_group = np.zeros(len(self.shared), dtype=int)
            of_unseen = upper_quantiles(
                values=sign * self.shared[:, 0],
                weights=self.shared[:, 1],
                owner=one_group,
                size=1,
                level=level,
            )
            # The prediction itself is always inside.
            ends.append(sign * np.maximum(np.r_[of_learners, of_unseen], 0.0))
        return np.column_stack(ends)

    def around(self, X: Array, predictions: Array, places: Array, coverage: float) -> Array:
        """Return intervals (N, 2), lower and upper end, around predictions (N,) of rows X (N, p).

        ``places`` (N,) are the positions of the rows' learners in this record; -1 is a learner that the fit
        has not seen. The unit of a row's residual is its learner's scale times the factor of the row.
        """
        # A learner that was not seen has residuals in units of the response: its scale is one, at -1.
        units = self.spread.at(np.column_stack([X, predictions])) * np.r_[self.scales, 1.0][places]
        ends: Array = predictions[:, None] + units[:, None] * self.tails(coverage)[places]
        return ends

    def joined(self, learner_ids: Array, clusters: Array, rows: Residuals) -> Intervals:
        """Return the record with newcomers behind the others; ``rows`` are their out-of-fold residuals.

        ``clusters`` (M,) are the newcomers'. Newcomers' residuals are not pooled with those of others: these
        keep the intervals that they had.
        """
        base = replace(self.base, pseudo_rows=min(self.base.pseudo_rows, MAX_PSEUDO_ROWS_OF_NEWCOMERS))
        # Absolute residuals, less what the row explains; each is then divided by its learner's scale without
        # it.
        sizes = np.abs(rows.values) / (factors := self.spread.at(rows.features))
        units = factors * base.without_each(rows, sizes)
        residuals_and_weights = by_learner(np.column_stack([rows.values / units, rows.weights]), rows)
        return replace(
            self,
            learner_ids=joined_ids(self.learner_ids, learner_ids),
            scales=np.r_[self.scales, base.of(clusters, *rows.sums(sizes))],
            clusters=np.r_[self.clusters, clusters],
            counted=np.r_[self.counted, np.zeros(len(clusters), dtype=bool)],
            residuals=(*self.residuals, *residuals_and_weights),
        )

    def beside(self, others: Intervals) -> Intervals:
        """Return this record followed by the learners of another one, with the residuals they have there."""
        return replace(
            self,
            learner_ids=joined_ids(self.learner_ids, others.learner_ids),
            scales=np.r_[self.scales, others.scales],
            clusters=np.r_[self.clusters, others.clusters],
            counted=np.r_[self.counted, others.counted],
            residuals=(*self.residuals, *others.residuals),
        )


def measure_intervals(
    learner_ids: Array,
    clusters: Array,
    residuals: Sequence[Array],
    shared: Sequence[Array],
    X: Array,
    y: Array,
    weights: Array | None,
    *,
    by_row: bool = True,
    narrowed: Array | float = 1.0,
    seed: int = 0,
) -> Intervals:
    """Make the record behind prediction intervals from out-of-fold residuals.

    Residuals are divided by how far those of the learner and of the row scatter; the quantiles of what
    remains can then be shared between learners.

    Parameters
    ----------
    learner_ids, clusters : ndarray of shape (M,)
        The learners, and the cluster of each.
    residuals, shared : sequence of ndarray of shape (n_j,)
        For each learner with n_j rows, residuals of the predictions that it uses, and of those of the model
        that all share; NaN where a row was not held out.
    X, y : ndarray of shape (N, p) and (N,)
        The rows, in the order of the residuals.
    weights : ndarray of shape (N,) or None
        Weights of the rows.
    by_row : bool, default=True
        Learn how the scatter depends on the row.
    narrowed : ndarray of shape (M,) or float, default=1.0
        Residuals of each learner's final model as a share of these, which are those of models of fewer rows.
    seed : int, default=0
        Seed of the trees that learn it.

    Returns
    -------
    Intervals
        The residuals in units of their scales, and how far quantiles are shrunken.
    """
    used_residuals, shared_residuals = np.concatenate(residuals), np.concatenate(shared)
    held_out = np.isfinite(used_residuals) & np.isfinite(shared_residuals)
    if not held_out.any():
        raise ValueError("There is no row that was held out, so nothing tells how wide intervals must be.")
    owner = np.repeat(np.arange(len(clusters)), [len(of_learner) for of_learner in residuals])[held_out]
    row_weights = np.ones(len(owner)) if weights is None else weights[held_out]
    used_residuals, shared_residuals, X, y = (
        used_residuals[held_out],
        shared_residuals[held_out],
        X[held_out],
        y[held_out],
    )
    rows = Residuals(
        values=used_residuals,
        owner=owner,
        clusters=clusters,
        # The scatter may depend on the predictors and on the prediction itself.
        features=np.column_stack([X, y - used_residuals]),
        weights=row_weights,
    )
    spread, factors, shared_factors = Spread(), np.ones(len(used_residuals)), np.ones(len(used_residuals))
    if by_row:
        spread, factors, shared_factors = learn_spread(rows, np.column_stack([X, y - shared_residuals]), seed)
    sizes = np.abs(used_residuals) / factors
    base = learn_scales(rows, sizes)
    scaled_residuals = used_residuals / (factors * base.without_each(rows, sizes))
    weight_of_learner, sum_of_sizes = rows.sums(sizes)
    return Intervals(
        learner_ids=learner_ids,
        scales=narrowed * base.of(clusters, weight_of_learner, sum_of_sizes),
        clusters=clusters,
        counted=np.ones(len(clusters), dtype=bool),
        residuals=by_learner(np.column_stack([scaled_residuals, row_weights]), rows),
        shared=np.column_stack([shared_residuals / shared_factors, row_weights / weight_of_learner[owner]]),
        base=base,
        spread=spread,
        # Lower and upper quantiles, each at half of what is left outside.
        pseudo_rows=shrinkage_rows(scaled_residuals, rows, (-1.0, 1.0), (1 + CHOICE_COVERAGE) / 2),
    )
