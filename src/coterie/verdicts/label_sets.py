"""Sets of labels: the classes among which the truth of a row will be, with a given probability.

A class is in the set where its probability is large enough. How large, rows tell whom no model had seen
(cross-conformal prediction): their score is one minus the probability of the class that came. A learner's
quantile of scores is shrunk to that of its coterie, and this to that of all learners.

A learner that the fit has not seen gets the quantile of the scores under what all learners share, in which
all learners count equally. One that was placed by a single row, which nothing has tested, gets no smaller
one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from coterie._arrays import Array
from coterie.loss import Loss
from coterie.records import BY_LEARNER, Aligned
from coterie.rows.learners import Learners
from coterie.verdicts.admission import joined_ids
from coterie.verdicts.quantiles import USUAL, by_learner, shrinkage_rows, shrunken_quantiles, upper_quantiles
from coterie.verdicts.spread import Residuals

# Probabilities that differ by less differ by rounding.
ROUNDING = 1e-9


@dataclass(frozen=True)
class LabelSets(Aligned):
    """What sets of labels are made from.

    Parameters
    ----------
    learner_ids : ndarray of shape (M,)
        Learners of the fit, then those that were placed later.
    clusters : ndarray of shape (M,)
        The cluster of each; -1: none.
    counted : ndarray of bool, shape (M,)
        Whose scores are pooled with those of others: not those of newcomers.
    scores : tuple of ndarray of shape (n_j, 2)
        Honest scores of each learner, and the weights of their rows.
    shared : ndarray of shape (N, 2)
        The same under what all learners share; the weights of each learner's rows sum to one.
    pseudo_rows : float
        Rows of the coterie that each learner's quantiles are shrunken by.
    """

    clusters: Array = field(metadata=BY_LEARNER)
    counted: Array = field(metadata=BY_LEARNER)
    scores: tuple[Array, ...] = field(metadata=BY_LEARNER, repr=False)
    shared: Array = field(repr=False)
    pseudo_rows: float

    def limits(self, coverage: float) -> Array:
        """Return the largest score inside for each learner, of shape (M + 1,).

        The last is that of a learner that the fit has not seen.
        """
        values, weights = np.concatenate(self.scores).T
        n_rows = np.array([len(part) for part in self.scores])
        owner = np.repeat(np.arange(len(n_rows)), n_rows)
        of_learners = shrunken_quantiles(
            values, weights, owner, self.clusters, self.counted, self.pseudo_rows, coverage
        )
        nobody = np.zeros(len(self.shared), dtype=int)
        of_unseen = upper_quantiles(self.shared[:, 0], self.shared[:, 1], nobody, 1, coverage)
        limits: Array = np.r_[
            np.where(n_rows > 0, of_learners, np.maximum(of_learners, of_unseen)), of_unseen
        ]
        return limits

    def around(self, probabilities: Array, places: Array, coverage: float) -> Array:
        """Return sets (N, K) of classes by their probabilities (N, K), for learners at some places.

        -1 is the place of a learner that the fit has not seen. The most probable class is always inside.
        """
        inside: Array = 1 - probabilities <= self.limits(coverage)[places][:, None] + ROUNDING
        inside[np.arange(len(places)), probabilities.argmax(axis=1)] = True
        return inside

    def joined(self, learner_ids: Array, clusters: Array, rows: Residuals) -> LabelSets:
        """Return the record with newcomers behind the others; ``rows`` have their scores."""
        parts = by_learner(np.column_stack([rows.values, rows.weights]), rows)
        return replace(
            self,
            learner_ids=joined_ids(self.learner_ids, learner_ids),
            clusters=np.r_[self.clusters, clusters],
            counted=np.r_[self.counted, np.zeros(len(clusters), dtype=bool)],
            scores=(*self.scores, *parts),
        )

    def beside(self, others: LabelSets) -> LabelSets:
        """Return the record with learners of another one behind, as they were measured there."""
        return replace(
            self,
            learner_ids=joined_ids(self.learner_ids, others.learner_ids),
            clusters=np.r_[self.clusters, others.clusters],
            counted=np.r_[self.counted, others.counted],
            scores=(*self.scores, *others.scores),
        )


def missed_chances(y: Array, residuals: Array, loss: Loss) -> Array:
    """Return the scores (N,): one minus the probability of the class that came, from known residuals."""
    probabilities = loss.from_columns(y - residuals)
    scores: Array = 1 - probabilities[np.arange(len(y)), loss.target(y)]
    return scores


def measure_label_sets(
    learners: Learners, clusters: Array, residuals: Sequence[Array], shared: Sequence[Array]
) -> LabelSets:
    """Learn from honest residuals which classes the truth will be among.

    Parameters
    ----------
    learners : Learners
        The learners and their rows.
    clusters : ndarray of shape (M,)
        The cluster of each.
    residuals, shared : sequence of ndarray of shape (n_j, C)
        Residuals of the probabilities that the learners use, and of what all share; NaN where not known.

    Returns
    -------
    LabelSets
        What sets are made from.
    """
    used_residuals, shared_residuals = np.concatenate(residuals), np.concatenate(shared)
    known = np.isfinite(used_residuals).all(axis=1) & np.isfinite(shared_residuals).all(axis=1)
    if not known.any():
        raise ValueError("There is no row that was held out, so nothing tells how large sets must be.")
    owner, y, loss = learners.owner[known], learners.y[known], learners.loss
    weights = np.ones(len(owner)) if learners.weights is None else learners.weights[known]
    scores = missed_chances(y, used_residuals[known], loss)
    rows = Residuals(scores, owner, clusters, learners.X[known], weights)
    n_rows, _ = rows.sums(scores)
    by_all = missed_chances(y, shared_residuals[known], loss)
    return LabelSets(
        learner_ids=learners.ids,
        clusters=clusters,
        counted=np.ones(len(clusters), dtype=bool),
        scores=by_learner(np.column_stack([scores, weights]), rows),
        shared=np.column_stack([by_all, weights / n_rows[owner]]),
        pseudo_rows=shrinkage_rows(scores, rows, (1.0,), USUAL),
    )
