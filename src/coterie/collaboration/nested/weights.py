"""Weights over predictors: not negative, summing to one, learnt on rows that the predictors had not seen.

First, one set of weights is fitted for all learners. It minimises the average out-of-fold error. Each
learner's error is divided by the variance of its response, so that all learners count equally. Then each
learner's weights are moved towards what its own rows say: its own error is minimised with pseudo-rows of the
average learner added, at its own level of error. The fewer rows a learner has, the nearer its weights stay to
the common ones. The number of pseudo-rows is chosen on held-out folds. All that is needed of a learner is the
Gram matrix H of its predictors' residuals, fold by fold: the error of weights w is w'Hw.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coterie._arrays import Array

# Pseudo-rows of the average learner; infinitely many: everybody has the common weights.
SHRINKAGES = (10.0, 30.0, 100.0, 300.0, np.inf)
# A learner that loses this many times more with the best shared predictor than alone is left out of the
# common weights. Otherwise one such learner, an attacked one for example, would keep all from sharing.
OUTLYING_RATIO = 4.0
MOST_OUTLYING = 0.2
# Of the mean diagonal: predictors that are nearly the same share their weight, which is then less noisy.
RIDGE = 0.01
# Steps of the accelerated projected gradient at most, and the change of a weight at which they end.
STEPS, TOLERANCE = 300, 1e-5


@dataclass(frozen=True)
class LearntWeights:
    """What was learnt.

    ``common`` (C,) are weights of the average learner, ``personal`` (L, C) those of each learner and
    ``held_out`` (F, L, C) the same learnt without each fold; ``shrinkage`` counts pseudo-rows of the average
    learner.
    """

    common: Array
    personal: Array
    held_out: Array
    shrinkage: float


def _onto_simplex(points: Array) -> Array:
    """Return the nearest points (..., C) that are not negative and sum to one."""
    ordered = -np.sort(-points, axis=-1)
    excess = np.cumsum(ordered, axis=-1) - 1
    count = (ordered > excess / np.arange(1, points.shape[-1] + 1)).sum(axis=-1, keepdims=True)
    lowered: Array = np.maximum(points - np.take_along_axis(excess, count - 1, axis=-1) / count, 0.0)
    return lowered


def simplex_weights(grams: Array) -> Array:
    """Return the weights (..., C) that minimise w'Hw for each H of shape (..., C, C), on the simplex."""
    size = grams.shape[-1]
    level = np.trace(grams, axis1=-2, axis2=-1)[..., None, None] / size
    scaled = np.divide(grams, level, out=np.zeros_like(grams), where=level > 0) + RIDGE * np.eye(size)
    step = 1 / np.linalg.eigvalsh(scaled)[..., -1:]
    weights = np.full(grams.shape[:-1], 1 / size)
    lookahead, pace = weights, 1.0
    # Each problem ends by itself: weights of a fold must not know of the others' rows.
    moving = np.ones(grams.shape[:-2], dtype=bool)
    for _ in range(STEPS):
        slope = np.einsum("...ij,...j->...i", scaled, lookahead)
        moved = _onto_simplex(lookahead - step * slope)
        weights, before = np.where(moving[..., None], moved, weights), weights
        # Where a step from this point changes nothing; a corner may be met twice on the way elsewhere.
        moving &= np.abs(moved - lookahead).max(axis=-1) >= TOLERANCE
        faster = (1 + np.sqrt(1 + 4 * pace**2)) / 2
        lookahead, pace = moved + (pace - 1) / faster * (moved - before), faster
        if not moving.any():
            break
    return weights


def _outlying_learners(grams: Array) -> Array:
    """Tell who loses several times as much with any shared predictor as with its own, the first column."""
    losses = grams.diagonal(axis1=1, axis2=2)
    if losses.shape[1] < 2:
        return np.zeros(len(losses), dtype=bool)
    outlying: Array = losses[:, 1:].min(axis=1) > OUTLYING_RATIO * losses[:, 0]
    # Where they are many, they are no exception and count.
    return outlying if outlying.mean() <= MOST_OUTLYING else np.zeros_like(outlying)


def _averages(grams: Array, rows: Array, outlying: Array) -> Array:
    """Return means over learners of their Gram matrices per row, of shape (M, C, C).

    ``grams`` (M, L, C, C) are summed over the rows (M, L) of M choices of folds.
    """
    counted = (rows > 0) & ~outlying
    per_row = grams / np.maximum(rows, 1e-300)[..., None, None]
    total = np.where(counted[..., None, None], per_row, 0.0).sum(axis=1)
    return np.asarray(total / np.maximum(counted.sum(axis=1), 1)[:, None, None])


def _personal(grams: Array, rows: Array, averages: Array, common: Array, outlying: Array) -> Array:
    """Return the weights of each learner for every shrinkage, (S, M, L, C), for M choices of folds."""
    n_choices, n_learners, n_columns = grams.shape[:3]
    shape = len(SHRINKAGES), n_choices, n_learners, n_columns
    personal = np.array(np.broadcast_to(common[None, :, None], shape))
    level = averages.diagonal(axis1=1, axis2=2).min(axis=1)[:, None]
    moved = ~outlying & (level > 0) & (rows > 0)
    # Pseudo-rows at the learner's own level of error: rows of one who is predicted ten times better than the
    # average would otherwise not count.
    own = grams.diagonal(axis1=2, axis2=3).min(axis=2)
    ratios = np.divide(own, np.maximum(rows, 1e-300) * level, out=np.zeros_like(own), where=moved)
    finite = np.flatnonzero(np.isfinite(SHRINKAGES))
    pseudo = np.asarray(SHRINKAGES)[finite, None, None] * ratios
    choice, learner = np.nonzero(moved)
    mixed = grams[moved] + pseudo[:, choice, learner, None, None] * averages[choice]
    weights = simplex_weights(mixed)
    for index, shrinkage in enumerate(finite):
        personal[shrinkage, choice, learner] = weights[index]
    if outlying.any():
        personal[:, :, outlying] = simplex_weights(grams[:, outlying])
    return personal


def _strongest(losses: Array) -> int:
    """Return the last row whose mean is within a standard error of the best one's, paired over learners.

    Without a reason learners do not differ: on real tables the best by a hair was worse on new rows.
    """
    excess = losses - losses[losses.mean(axis=1).argmin()]
    errors = excess.std(axis=1) / np.sqrt(max(losses.shape[1] - 1, 1))
    return int(np.flatnonzero(excess.mean(axis=1) <= errors)[-1])


def learn_weights(grams: Array, counts: Array) -> LearntWeights:
    """Learn common and personal weights.

    ``grams`` (L, F, C, C) are summed products of the residuals of C predictors on the rows that each fold
    holds out, in units of the variance of the learner's response; ``counts`` (L, F) is the number of these
    rows. The shrinkage is the strongest that is within a standard error of the best on held-out folds.
    """
    whole = grams.sum(axis=1)
    outlying = _outlying_learners(whole)
    # The first choice is all folds, the others leave one out each.
    choices = np.concatenate([whole[None], whole - np.moveaxis(grams, 1, 0)])
    total = counts.sum(axis=1)
    rows = np.concatenate([total[None], total - counts.T])
    averages = _averages(choices, rows, outlying)
    common = simplex_weights(averages)
    personal = _personal(choices, rows, averages, common, outlying)
    held_out = personal[:, 1:]
    by_fold = np.einsum("sflc,lfcd,sfld->sl", held_out, grams, held_out, optimize=True)
    best = _strongest(by_fold / np.maximum(total, 1))
    return LearntWeights(common[0], personal[best, 0], held_out[best], SHRINKAGES[best])
