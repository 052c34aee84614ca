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
MAX_OUTLYING_SHARE = 0.2
# Of the mean diagonal: predictors that are nearly the same share their weight, which is then less noisy.
RIDGE = 0.01
# Steps of the accelerated projected gradient at most, and the change of a weight at which they end.
MAX_STEPS, TOLERANCE = 300, 1e-5


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
    """Return the Euclidean projection of points (..., C) onto the probability simplex.

    It subtracts one number from all entries and sets negative ones to zero; sorting tells how many stay
    positive.
    """
    descending = -np.sort(-points, axis=-1)
    excess = np.cumsum(descending, axis=-1) - 1
    n_positive = (descending > excess / np.arange(1, points.shape[-1] + 1)).sum(axis=-1, keepdims=True)
    projected: Array = np.maximum(
        points - np.take_along_axis(excess, n_positive - 1, axis=-1) / n_positive, 0.0
    )
    return projected


def simplex_weights(grams: Array) -> Array:
    """Return the weights (..., C) that minimise w'Hw on the simplex, for each Gram matrix H (..., C, C).

    They are not negative and sum to one. The method is the accelerated projected gradient; a small ridge
    makes predictors that are nearly the same share their weight.
    """
    size = grams.shape[-1]
    mean_diagonal = np.trace(grams, axis1=-2, axis2=-1)[..., None, None] / size
    scaled = np.divide(
        grams, mean_diagonal, out=np.zeros_like(grams), where=mean_diagonal > 0
    ) + RIDGE * np.eye(size)
    step_size = 1 / np.linalg.eigvalsh(scaled)[..., -1:]
    weights = np.full(grams.shape[:-1], 1 / size)
    lookahead, momentum = weights, 1.0
    # Each problem ends by itself: weights of a fold must not know of the others' rows.
    moving = np.ones(grams.shape[:-2], dtype=bool)
    for _ in range(MAX_STEPS):
        gradient = np.einsum("...ij,...j->...i", scaled, lookahead)
        projected = _onto_simplex(lookahead - step_size * gradient)
        weights, previous = np.where(moving[..., None], projected, weights), weights
        # Where a step from this point changes nothing; a corner may be met twice on the way elsewhere.
        moving &= np.abs(projected - lookahead).max(axis=-1) >= TOLERANCE
        next_momentum = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        lookahead, momentum = (
            projected + (momentum - 1) / next_momentum * (projected - previous),
            next_momentum,
        )
        if not moving.any():
            break
    return weights


def _outlying_learners(grams: Array) -> Array:
    """Mark the learners (L,) whose own model is several times better than any shared predictor.

    ``grams`` (L, C, C) are Gram matrices of residuals, the own model first. If more than a fifth of the
    learners are of this kind, none is marked: they are no exception then.
    """
    squared_errors = grams.diagonal(axis1=1, axis2=2)
    if squared_errors.shape[1] < 2:
        return np.zeros(len(squared_errors), dtype=bool)
    outlying: Array = squared_errors[:, 1:].min(axis=1) > OUTLYING_RATIO * squared_errors[:, 0]
    # Where they are many, they are no exception and count.
    return outlying if outlying.mean() <= MAX_OUTLYING_SHARE else np.zeros_like(outlying)


def _averages(grams: Array, rows: Array, outlying: Array) -> Array:
    """Return the mean over learners of their Gram matrices per row, (M, C, C), for M choices of folds.

    ``grams`` (M, L, C, C) are summed over the rows (M, L) of each choice. Learners without rows and the
    ``outlying`` ones (L,) do not count.
    """
    is_counted = (rows > 0) & ~outlying
    per_row = grams / np.maximum(rows, 1e-300)[..., None, None]
    total_grams = np.where(is_counted[..., None, None], per_row, 0.0).sum(axis=1)
    return np.asarray(total_grams / np.maximum(is_counted.sum(axis=1), 1)[:, None, None])


def _personal(grams: Array, rows: Array, averages: Array, common: Array, outlying: Array) -> Array:
    """Return each learner's weights for S shrinkages and M choices of folds, of shape (S, M, L, C).

    A learner's Gram matrix is mixed with pseudo-rows of the average one (M, C, C); the more pseudo-rows,
    the nearer its weights are to the ``common`` ones (M, C). Outlying learners use their own matrix
    alone.
    """
    n_choices, n_learners, n_columns = grams.shape[:3]
    shape = len(SHRINKAGES), n_choices, n_learners, n_columns
    personal = np.array(np.broadcast_to(common[None, :, None], shape))
    average_error = averages.diagonal(axis1=1, axis2=2).min(axis=1)[:, None]
    is_personal = ~outlying & (average_error > 0) & (rows > 0)
    # Pseudo-rows at the learner's own level of error: rows of one who is predicted ten times better than the
    # average would otherwise not count.
    own_error = grams.diagonal(axis1=2, axis2=3).min(axis=2)
    error_ratios = np.divide(
        own_error, np.maximum(rows, 1e-300) * average_error, out=np.zeros_like(own_error), where=is_personal
    )
    finite = np.flatnonzero(np.isfinite(SHRINKAGES))
    pseudo_rows = np.asarray(SHRINKAGES)[finite, None, None] * error_ratios
    choice, learner = np.nonzero(is_personal)
    mixed_grams = grams[is_personal] + pseudo_rows[:, choice, learner, None, None] * averages[choice]
    weights = simplex_weights(mixed_grams)
    for index, shrinkage_index in enumerate(finite):
        personal[shrinkage_index, choice, learner] = weights[index]
    if outlying.any():
        personal[:, :, outlying] = simplex_weights(grams[:, outlying])
    return personal


def _strongest(losses: Array) -> int:
    """Return the last shrinkage whose mean loss is within a standard error of the smallest one.

    ``losses`` (S, L) are those of learners by shrinkage, from weak to strong, and differences are paired
    by learner. On real tables the best by a hair was worse on new rows.
    """
    excess_losses = losses - losses[losses.mean(axis=1).argmin()]
    standard_errors = excess_losses.std(axis=1) / np.sqrt(max(losses.shape[1] - 1, 1))
    return int(np.flatnonzero(excess_losses.mean(axis=1) <= standard_errors)[-1])


def learn_weights(grams: Array, counts: Array) -> LearntWeights:
    """Learn common weights of C predictors, and each learner's personal weights.

    ``grams`` (L, F, C, C) are Gram matrices of the predictors' residuals on the rows that each fold holds
    out, in units of the variance of the learner's response. ``counts`` (L, F) are the numbers of these
    rows.

    The shrinkage of personal to common weights is the strongest within a standard error of the best on
    held-out folds.
    """
    grams_of_learners = grams.sum(axis=1)
    outlying = _outlying_learners(grams_of_learners)
    # The first choice is all folds, the others leave one out each.
    grams_by_choice = np.concatenate([grams_of_learners[None], grams_of_learners - np.moveaxis(grams, 1, 0)])
    rows_of_learners = counts.sum(axis=1)
    rows_by_choice = np.concatenate([rows_of_learners[None], rows_of_learners - counts.T])
    averages = _averages(grams_by_choice, rows_by_choice, outlying)
    common = simplex_weights(averages)
    personal = _personal(grams_by_choice, rows_by_choice, averages, common, outlying)
    held_out = personal[:, 1:]
    held_out_losses = np.einsum("sflc,lfcd,sfld->sl", held_out, grams, held_out, optimize=True)
    best_shrinkage = _strongest(held_out_losses / np.maximum(rows_of_learners, 1))
    return LearntWeights(
        common=common[0],
        personal=personal[best_shrinkage, 0],
        held_out=held_out[best_shrinkage],
        shrinkage=SHRINKAGES[best_shrinkage],
    )
