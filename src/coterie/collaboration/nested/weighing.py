"""From what the sites answer to how each predicts: the same for rows that are here and elsewhere."""

from __future__ import annotations

import numpy as np

from coterie._arrays import Array
from coterie.collaboration.nested.effects import best_ratios
from coterie.collaboration.nested.site_rows import (
    LEAST_LIKELIHOOD,
    AverageDictionary,
    average_of,
)
from coterie.collaboration.nested.weights import LearntWeights, learn_weights
from coterie.method.noise import pooled_variance, smallest_level
from coterie.method.refine.losses import ClusterLosses, whole_losses
from coterie.method.weight_limits import WEIGHT_LIMITS


def agree_on_ratios(likelihoods: Array) -> Array:
    """Return the variances of offsets and slopes, (2, E, 2), that are most likely for all learners together.

    The first entry has offsets only, the second offsets and slopes. ``likelihoods`` (L, E, A, B) are
    every learner's log-likelihoods on a grid of both variances for E averages. Each is bounded below, so
    that no learner decides alone.
    """
    total_likelihoods = np.maximum(likelihoods, LEAST_LIKELIHOOD).sum(axis=0)
    return np.stack([best_ratios(total_likelihoods, slopes=with_slopes) for with_slopes in (False, True)])


def response_units(sizes: Array, means: Array, variances: Array) -> Array:
    """Return the variance of each learner's response, (L,), never less than rounding error.

    ``sizes``, ``means`` and ``variances`` (L,) are those of the learners' responses.
    """
    return np.maximum(variances, smallest_level(pooled_variance(sizes, means[:, None], variances)))


def _gram_weights(per_row: Array) -> Array:
    """Return a weight (L,) for each learner's Gram matrix of residuals per row, (L, C, C), against liars.

    Distances are from the median matrix, entry by entry, in units of the median learner's errors. A
    matrix farther than a multiple of the median distance is weighed down to that, so that no learner
    moves the average far.
    """
    median_errors = np.sqrt(np.median(per_row.diagonal(axis1=1, axis2=2), axis=0))
    median_errors = np.where(median_errors > 0, median_errors, 1.0)
    scaled = per_row / median_errors[:, None] / median_errors
    distances = np.sqrt(np.square(scaled - np.median(scaled, axis=0)).sum(axis=(1, 2)))
    max_distance = WEIGHT_LIMITS.weight * np.median(distances)
    gram_weights: Array = np.divide(
        max_distance, distances, out=np.ones(len(distances)), where=distances > max_distance
    )
    return gram_weights


def agree_on_weights(grams: Array, counts: Array, units: Array) -> LearntWeights:
    """Learn common and personal weights from what the learners answer, so that no learner outweighs others.

    ``grams`` (L, F, C, C) are Gram matrices of residuals by fold, ``counts`` (L, F) the rows, and
    ``units`` (L,) the variances of the responses.
    """
    counts = np.minimum(counts, WEIGHT_LIMITS.ratio * np.median(counts))
    scaled = grams / units[:, None, None, None]
    total_rows = np.maximum(counts.sum(axis=1), 1e-300)
    gram_weights = _gram_weights(scaled.sum(axis=1) / total_rows[:, None, None])
    return learn_weights(scaled * gram_weights[:, None, None, None], counts)


def best_clusters(losses: ClusterLosses, labels: Array) -> Array:
    """Return the cluster (L,) whose average of models has the smallest loss on each learner's rows."""
    clusters: Array = whole_losses(losses, labels).argmin(axis=0)
    return clusters


def mixed_models(
    dictionary: AverageDictionary, clusters_of: Array, weights: Array, model_weights: Array, losses: Array
) -> tuple[Array, Array]:
    """Return the weights of models in each learner's mixture, (L, M), and the shares of averages, (L, E + 1).

    ``clusters_of`` (E, L) are the clusters whose averages predict each learner, and ``weights`` (L, 2 E +
    1) its weights of the own model and of averages with an offset, then with slopes. ``losses`` (M, L)
    are those of models on learners. The first share is that of the own model.
    """
    n_averages = len(dictionary.labellings)
    weights_of_models = np.zeros((len(weights), len(model_weights)))
    shares = np.column_stack([weights[:, 0], weights[:, 1:].reshape(-1, 2, n_averages).sum(axis=1)])
    for learner, shares_of_learner in enumerate(shares):
        weights_of_models[learner, learner] = shares_of_learner[0]
        for column, (labels, cluster) in enumerate(
            zip(dictionary.labellings, clusters_of[:, learner], strict=True), 1
        ):
            share = float(shares_of_learner[column])
            if share > 0:
                positions, weights_in_average = average_of(
                    labels == cluster, model_weights, losses[:, learner], learner
                )
                weights_of_models[learner, positions] += share * weights_in_average
                if positions.tolist() == [learner]:
                    # Nobody else is of use there: the average is the learner's own model.
                    shares_of_learner[0], shares_of_learner[column] = shares_of_learner[0] + share, 0.0
    return weights_of_models, shares
