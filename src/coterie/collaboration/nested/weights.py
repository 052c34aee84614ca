"""Weights over predictors: not negative, summing to one, learnt on rows that the predictors had not seen.

All that is asked of a learner is the Gram matrix of its predictors' residuals, fold by fold: the loss of
any mixture w is w'Hw. Common weights minimise the mean loss over learners, each in units of its response's
variance, so that learners count alike. A learner's own weights minimise its own loss with pseudo-rows of
the average learner added, brought to its own level of loss, which draws them towards the common ones the
more, the fewer rows it has. How many pseudo-rows is chosen on held-out folds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from coterie._arrays import Array

# Pseudo-rows of the average learner; infinitely many: everybody has the common weights.
SHRINKAGES = (10.0, 30.0, 100.0, 300.0, np.inf)
# Who loses so many times more with the best shared predictor than alone has no say in the common weights:
# one such learner, an attacked one say, would otherwise turn everybody away from everybody.
OUTLYING_RATIO = 4.0
MOST_OUTLYING = 0.2
# Against columns that are the same: their weights are then shared out.
RIDGE = 1e-8
# Weight of the condition that weights sum to one, in units of the losses.
SUM_WEIGHT = 1e3


@dataclass(frozen=True)
class Weights:
    """What was learnt.

    ``common`` (C,) are weights of the average learner, ``personal`` (L, C) those of each learner and
    ``held_out`` (F, L, C) the same learnt without each fold; ``shrinkage`` counts pseudo-rows of the average
    learner.
    """

    common: Array
    personal: Array
    held_out: Array
    shrinkage: float


def simplex_weights(gram: Array) -> Array:
    """Return the weights w that minimise w'Hw, not negative and summing to one."""
    size = np.trace(gram) / len(gram)
    scaled = gram / size if size > 0 else np.zeros_like(gram)
    values, vectors = np.linalg.eigh(scaled + RIDGE * np.eye(len(gram)))
    roots = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    rows = np.vstack([roots, np.full((1, len(gram)), SUM_WEIGHT)])
    target = np.r_[np.zeros(len(gram)), SUM_WEIGHT]
    weights, _ = nnls(rows, target, maxiter=100 * len(gram))
    total: Array = weights / weights.sum()
    return total


def _outlying_learners(grams: Array) -> Array:
    """Tell who loses several times as much with any shared predictor as with its own, the first column."""
    losses = grams.diagonal(axis1=1, axis2=2)
    if losses.shape[1] < 2:
        return np.zeros(len(losses), dtype=bool)
    outlying: Array = losses[:, 1:].min(axis=1) > OUTLYING_RATIO * losses[:, 0]
    # Where they are many, they are no exception and are heard.
    return outlying if outlying.mean() <= MOST_OUTLYING else np.zeros_like(outlying)


def _average(grams: Array, counts: Array, outlying: Array) -> Array:
    """Return the mean over learners of their Gram matrices per row."""
    rows = counts.sum(axis=1)
    seen = (rows > 0) & ~outlying
    mean: Array = (grams[seen].sum(axis=1) / rows[seen, None, None]).mean(axis=0)
    return mean


def _personal(
    own: Array, rows: Array, average: Array, common: Array, shrinkage: float, outlying: Array
) -> Array:
    personal = np.tile(common, (len(own), 1))
    level = average.diagonal().min()
    for j, gram in enumerate(own):
        if outlying[j]:
            personal[j] = simplex_weights(gram)
        elif np.isfinite(shrinkage) and level > 0 and rows[j] > 0:
            # Pseudo-rows at the learner's own level of loss: rows of one who is predicted ten times better
            # than the average would otherwise not be heard.
            ratio = gram.diagonal().min() / rows[j] / level
            personal[j] = simplex_weights(gram + shrinkage * ratio * average)
    return personal


def _strongest(losses: Array) -> int:
    """Return the last row whose mean is within a standard error of the best one's, paired over learners.

    Without a reason learners do not differ: on real tables the best by a hair was worse on new rows.
    """
    excess = losses - losses[losses.mean(axis=1).argmin()]
    errors = excess.std(axis=1) / np.sqrt(max(losses.shape[1] - 1, 1))
    return int(np.flatnonzero(excess.mean(axis=1) <= errors)[-1])


def learn_weights(grams: Array, counts: Array) -> Weights:
    """Learn common and personal weights.

    ``grams`` (L, F, C, C) are summed products of the residuals of C predictors on the rows that each fold
    holds out, in units of the variance of the learner's response; ``counts`` (L, F) is the number of these
    rows. The shrinkage is the strongest that is within a standard error of the best on held-out folds.
    """
    n_learners, n_folds, n_columns, _ = grams.shape
    whole = grams.sum(axis=1)
    outlying = _outlying_learners(whole)
    average = _average(grams, counts, outlying)
    common = simplex_weights(average)
    losses = np.zeros((len(SHRINKAGES), n_learners))
    held_out = np.empty((len(SHRINKAGES), n_folds, n_learners, n_columns))
    rows = np.maximum(counts.sum(axis=1), 1)
    for fold in range(n_folds):
        others = np.arange(n_folds) != fold
        rest = _average(grams[:, others], counts[:, others], outlying)
        rest_common = simplex_weights(rest)
        for place, shrinkage in enumerate(SHRINKAGES):
            seen = counts[:, others].sum(axis=1)
            w = _personal(whole - grams[:, fold], seen, rest, rest_common, shrinkage, outlying)
            held_out[place, fold] = w
            losses[place] += np.einsum("lc,lcd,ld->l", w, grams[:, fold], w) / rows
    best = _strongest(losses)
    personal = _personal(whole, counts.sum(axis=1), average, common, SHRINKAGES[best], outlying)
    return Weights(common, personal, held_out[best], SHRINKAGES[best])
