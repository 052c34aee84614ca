"""Sets of labels, or conformal prediction sets: they hold a row's true class with a given probability.

A class is in the set where its probability is large enough. How large, held-out rows tell (cross-conformal
prediction): the score of such a row is one minus the probability that was predicted for its true class. The
limit is a quantile of scores. A learner's quantile is shrunk to that of its coterie, and this to that of all
learners.

A learner that the fit has not seen gets the quantile of scores under the model that all learners share, in
which all learners count equally. A learner without a held-out row, as one with a single row, gets that
quantile or its coterie's, whichever is larger.
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
from coterie.verdicts.quantiles import (
    CHOICE_COVERAGE,
    by_learner,
    shrinkage_rows,
    shrunken_quantiles,
    upper_quantiles,
)
from coterie.verdicts.spread import Residuals

# Probabilities that differ by less are taken to be equal.
ROUNDING_OF_PROBABILITIES = 1e-9


@dataclass(frozen=True)
class LabelSets(Aligned):
    """The scores of held-out rows from which conformal prediction sets are made.

    The score of a row is one minus the probability that was predicted for its true class.

    Parameters
    ----------
    learner_ids : ndarray of shape (M,)
        Learners of the fit, then those that were placed later.
    clusters : ndarray of shape (M,)
        The cluster of each; -1: none.
    counted : ndarray of bool, shape (M,)
        Whose scores are pooled with those of others: not those of newcomers.
    scores : tuple of ndarray of shape (n_j, 2)
        Scores of each learner's n_j held-out rows in the first column, the rows' weights in the second.
    shared : ndarray of shape (N, 2)
        The same for all rows under the model that all learners share; the weights of each learner's rows sum
        to one.
    pseudo_rows : float
        Rows of the coterie that each learner's quantiles are shrunken by.
    """

    clusters: Array = field(metadata=BY_LEARNER)
    counted: Array = field(metadata=BY_LEARNER)
    scores: tuple[Array, ...] = field(metadata=BY_LEARNER, repr=False)
    shared: Array = field(repr=False)
    pseudo_rows: float

    def limits(self, coverage: float) -> Array:
        """Return the largest score with which a class is in a learner's set, of shape (M + 1,).

        It is the quantile of scores at the level ``coverage``. The last entry is for a learner that the fit
        has not seen.
        """
        scores, weights = np.concatenate(self.scores).T
        n_rows = np.array([len(scores_of_learner) for scores_of_learner in self.scores])
        owner = np.repeat(np.arange(len(n_rows)), n_rows)
        of_learners = shrunken_quantiles(
            values=scores,
            weights=weights,
            owner=owner,
            clusters=self.clusters,
            counted=self.counted,
            pseudo_rows=self.pseudo_rows,
            level=coverage,
        )
        # All rows are one group: it does not matter whose they are.
        one_group = np.zeros(len(self.shared), dtype=int)
        of_unseen = upper_quantiles(
            values=self.shared[:, 0], weights=self.shared[:, 1], owner=one_group, size=1, level=coverage
        )
        limits: Array = np.r_[
            np.where(n_rows > 0, of_learners, np.maximum(of_learners, of_unseen)), of_unseen
        ]
        return limits

    def around(self, probabilities: Array, places: Array, coverage: float) -> Array:
        """Return which of K classes are in the prediction sets of N rows: a boolean array (N, K).

        ``probabilities`` (N, K) were predicted. ``places`` (N,) are the positions of the rows' learners in
        this record; -1 is a learner that the fit has not seen. The most probable class is always in the set.
        """
        in_set: Array = (
            1 - probabilities <= self.limits(coverage)[places][:, None] + ROUNDING_OF_PROBABILITIES
        )
        in_set[np.arange(len(places)), probabilities.argmax(axis=1)] = True
        return in_set

    def joined(self, learner_ids: Array, clusters: Array, rows: Residuals) -> LabelSets:
        """Return the record with newcomers behind the others; the values of ``rows`` are their scores.

        ``clusters`` (M,) are the newcomers'. Newcomers' scores are not pooled with those of others: these
        keep the sets that they had.
        """
        scores_and_weights = by_learner(np.column_stack([rows.values, rows.weights]), rows)
        return replace(
            self,
            learner_ids=joined_ids(self.learner_ids, learner_ids),
            clusters=np.r_[self.clusters, clusters],
            counted=np.r_[self.counted, np.zeros(len(clusters), dtype=bool)],
            scores=(*self.scores, *scores_and_weights),
        )

    def beside(self, others: LabelSets) -> LabelSets:
        """Return this record followed by the learners of another one, with their scores there."""
        return replace(
            self,
            learner_ids=joined_ids(self.learner_ids, others.learner_ids),
            clusters=np.r_[self.clusters, others.clusters],
            counted=np.r_[self.counted, others.counted],
            scores=(*self.scores, *others.scores),
        )


def missed_chances(y: Array, residuals: Array, loss: Loss) -> Array:
    """Return the scores (N,): one minus the probability that was predicted for each row's true class.

    ``y`` (N, C) are responses, with C columns for the classes, and ``residuals`` (N, C) are finite.
    """
    probabilities = loss.from_columns(y - residuals)
    scores: Array = 1 - probabilities[np.arange(len(y)), loss.target(y)]
    return scores


def measure_label_sets(
    learners: Learners, clusters: Array, residuals: Sequence[Array], shared: Sequence[Array]
) -> LabelSets:
    """Make the record behind conformal prediction sets from residuals on held-out rows.

    Rows that were held out of both predictions, the learner's and the shared one, are scored; the others say
    nothing of how wrong predictions are on new rows.

    Parameters
    ----------
    learners : Learners
        The learners and their rows.
    clusters : ndarray of shape (M,)
        The cluster of each.
    residuals : sequence of ndarray of shape (n_j, C)
        For each learner with n_j rows, residuals of the predictions that it uses, in the C columns of the
        response; NaN where a row was not held out.
    shared : sequence of ndarray of shape (n_j, C)
        The same for the predictions of the model that all learners share.

    Returns
    -------
    LabelSets
        The scores of the held-out rows, and how far quantiles are shrunken.
    """
    used_residuals, shared_residuals = np.concatenate(residuals), np.concatenate(shared)
    held_out = np.isfinite(used_residuals).all(axis=1) & np.isfinite(shared_residuals).all(axis=1)
    if not held_out.any():
        raise ValueError("There is no row that was held out, so nothing tells how large sets must be.")
    owner, y, loss = learners.owner[held_out], learners.y[held_out], learners.loss
    weights = np.ones(len(owner)) if learners.weights is None else learners.weights[held_out]
    scores = missed_chances(y, used_residuals[held_out], loss)
    scored_rows = Residuals(
        values=scores, owner=owner, clusters=clusters, features=learners.X[held_out], weights=weights
    )
    weight_of_learner, _ = scored_rows.sums(scores)
    shared_scores = missed_chances(y, shared_residuals[held_out], loss)
    return LabelSets(
        learner_ids=learners.ids,
        clusters=clusters,
        counted=np.ones(len(clusters), dtype=bool),
        scores=by_learner(np.column_stack([scores, weights]), scored_rows),
        shared=np.column_stack([shared_scores, weights / weight_of_learner[owner]]),
        # Sets have one limit each, which is an upper quantile: scores are taken with the sign + only.
        pseudo_rows=shrinkage_rows(scores, scored_rows, signs=(1.0,), level=CHOICE_COVERAGE),
    )
