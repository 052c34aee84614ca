"""Prediction intervals: where new responses of a learner will lie, with a given probability.

An interval reaches from the prediction to quantiles of residuals. These residuals are honest: no model had
seen the row (cross-conformal prediction). A learner with ten rows has ten of them, which is too few for a
quantile of its own. So residuals are taken in units of each learner's scale (`coterie.verdicts.spread`), and
the quantiles of a learner are shrunken to those of its coterie, and these to those of all learners. Each
residual is divided by the scale that its learner would have without it, so that the quantiles allow for not
knowing the scale.

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
from coterie.verdicts.quantiles import USUAL, by_learner, shrinkage_rows, shrunken_quantiles, upper_quantiles
from coterie.verdicts.spread import Residuals, Scales, Spread, learn_scales, learn_spread

# Pseudo-rows of the coterie for the scale of newcomers, at most: models have not been fitted to their rows,
# so that they may be predicted worse than learners of the fit are, however alike these are.
NEWCOMER_ROWS = 4.0


@dataclass(frozen=True)
class Intervals(Aligned):
    """What prediction intervals are made from.

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
        Honest residuals of each learner in units of its scale, and the weights of their rows.
    shared : ndarray of shape (N, 2)
        The same under what all learners share, in units of the response; the weights of each learner's rows
        sum to one.
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
        """Return the lower and upper end for each learner in units of its scale, of shape (M + 1, 2).

        The last row is that of a learner that the fit has not seen.
        """
        level = (1 + coverage) / 2
        values, weights = np.concatenate(self.residuals).T
        owner = np.repeat(np.arange(len(self.residuals)), [len(part) for part in self.residuals])
        ends = []
        for sign in (-1.0, 1.0):
            of_learners = shrunken_quantiles(
                sign * values, weights, owner, self.clusters, self.counted, self.pseudo_rows, level
            )
            nobody = np.zeros(len(self.shared), dtype=int)
            of_unseen = upper_quantiles(sign * self.shared[:, 0], self.shared[:, 1], nobody, 1, level)
            # The prediction itself is always inside.
            ends.append(sign * np.maximum(np.r_[of_learners, of_unseen], 0.0))
        return np.column_stack(ends)

    def around(self, X: Array, predictions: Array, places: Array, coverage: float) -> Array:
        """Return intervals (N, 2) of rows around predictions (N,), for learners at some places.

        -1 is the place of a learner that the fit has not seen.
        """
        factors = self.spread.at(np.column_stack([X, predictions])) * np.r_[self.scales, 1.0][places]
        ends: Array = predictions[:, None] + factors[:, None] * self.tails(coverage)[places]
        return ends

    def joined(self, learner_ids: Array, clusters: Array, rows: Residuals) -> Intervals:
        """Return the record with newcomers behind the others; ``rows`` are theirs."""
        base = replace(self.base, pseudo_rows=min(self.base.pseudo_rows, NEWCOMER_ROWS))
        sizes = np.abs(rows.values) / (factors := self.spread.at(rows.features))
        units = factors * base.without_each(rows, sizes)
        parts = by_learner(np.column_stack([rows.values / units, rows.weights]), rows)
        return replace(
            self,
            learner_ids=joined_ids(self.learner_ids, learner_ids),
            scales=np.r_[self.scales, base.of(clusters, *rows.sums(sizes))],
            clusters=np.r_[self.clusters, clusters],
            counted=np.r_[self.counted, np.zeros(len(clusters), dtype=bool)],
            residuals=(*self.residuals, *parts),
        )

    def beside(self, others: Intervals) -> Intervals:
        """Return the record with learners of another one behind, as they were measured there."""
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
    """Learn from honest residuals where new responses of learners will lie.

    Parameters
    ----------
    learner_ids, clusters : ndarray of shape (M,)
        The learners, and the cluster of each.
    residuals, shared : sequence of ndarray of shape (n_j,)
        Residuals of the predictions that the learners use, and of what all share; NaN where not known.
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
        What intervals are made from.
    """
    used_residuals, shared_residuals = np.concatenate(residuals), np.concatenate(shared)
    known = np.isfinite(used_residuals) & np.isfinite(shared_residuals)
    if not known.any():
        raise ValueError("There is no row that was held out, so nothing tells how wide intervals must be.")
    owner = np.repeat(np.arange(len(clusters)), [len(part) for part in residuals])[known]
    row_weights = np.ones(len(owner)) if weights is None else weights[known]
    used_residuals, shared_residuals, X, y = (
        used_residuals[known],
        shared_residuals[known],
        X[known],
        y[known],
    )
    rows = Residuals(used_residuals, owner, clusters, np.column_stack([X, y - used_residuals]), row_weights)
    spread, factors, factors_by_all = Spread(), np.ones(len(used_residuals)), np.ones(len(used_residuals))
    if by_row:
        spread, factors, factors_by_all = learn_spread(rows, np.column_stack([X, y - shared_residuals]), seed)
    sizes = np.abs(used_residuals) / factors
    base = learn_scales(rows, sizes)
    values = used_residuals / (factors * base.without_each(rows, sizes))
    n_rows, sums = rows.sums(sizes)
    return Intervals(
        learner_ids=learner_ids,
        scales=narrowed * base.of(clusters, n_rows, sums),
        clusters=clusters,
        counted=np.ones(len(clusters), dtype=bool),
        residuals=by_learner(np.column_stack([values, row_weights]), rows),
        shared=np.column_stack([shared_residuals / factors_by_all, row_weights / n_rows[owner]]),
        base=base,
        spread=spread,
        pseudo_rows=shrinkage_rows(values, rows, (-1.0, 1.0), (1 + USUAL) / 2),
    )
