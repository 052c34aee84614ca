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
    """Return the variances of offsets and slopes (2, E, 2), from log-likelihoods (L, E, offsets, slopes)."""
    total = np.maximum(likelihoods, LEAST_LIKELIHOOD).sum(axis=0)
    return np.stack([best_ratios(total, slopes=slopes) for slopes in (False, True)])


def response_units(sizes: Array, means: Array, variances: Array) -> Array:
    """Return the variance of each learner's response, of shape (L,); what is rounding counts as its bound."""
    return np.maximum(variances, smallest_level(pooled_variance(sizes, means[:, None], variances)))


def _gram_weights(per_row: Array) -> Array:
    """Return how much each learner's Gram matrix (L, C, C) counts, of shape (L,).

    One that is far from the median matrix, in units of the median learner's residuals, counts as if it were
    no farther than a multiple of what is typical. The average then is of true Gram matrices, and no learner
    moves it far.
    """
    roots = np.sqrt(np.median(per_row.diagonal(axis1=1, axis2=2), axis=0))
    roots = np.where(roots > 0, roots, 1.0)
    scaled = per_row / roots[:, None] / roots
    distances = np.sqrt(np.square(scaled - np.median(scaled, axis=0)).sum(axis=(1, 2)))
    reach = WEIGHT_LIMITS.weight * np.median(distances)
    gram_weights: Array = np.divide(reach, distances, out=np.ones(len(distances)), where=distances > reach)
    return gram_weights


def agree_on_weights(grams: Array, counts: Array, units: Array) -> LearntWeights:
    """Learn weights from Gram matrices (L, F, C, C) and rows (L, F), in ``units`` (L,) of the response."""
    counts = np.minimum(counts, WEIGHT_LIMITS.ratio * np.median(counts))
    scaled = grams / units[:, None, None, None]
    rows = np.maximum(counts.sum(axis=1), 1e-300)
    gram_weights = _gram_weights(scaled.sum(axis=1) / rows[:, None, None])
    return learn_weights(scaled * gram_weights[:, None, None, None], counts)


def best_clusters(losses: ClusterLosses, labels: Array) -> Array:
    """Return the cluster whose average loses least on each learner, of shape (L,)."""
    clusters: Array = whole_losses(losses, labels).argmin(axis=0)
    return clusters


def mixed_models(
    dictionary: AverageDictionary, clusters_of: Array, weights: Array, model_weights: Array, losses: Array
) -> tuple[Array, Array]:
    """Return the weights of models (L, M) of each learner's mixture, and the shares of averages (L, E + 1).

    ``clusters_of`` (E, L) are the clusters that predict each learner, ``weights`` (L, C) its weights of
    columns, and ``losses`` (M, L) what models lose on it. The first share is that of its own model.
    """
    n_shared = len(dictionary.labellings)
    models = np.zeros((len(weights), len(model_weights)))
    shares = np.column_stack([weights[:, 0], weights[:, 1:].reshape(-1, 2, n_shared).sum(axis=1)])
    for index, shares_of in enumerate(shares):
        models[index, index] = shares_of[0]
        for column, (labels, cluster) in enumerate(
            zip(dictionary.labellings, clusters_of[:, index], strict=True), 1
        ):
            share = float(shares_of[column])
            if share > 0:
                positions, parts = average_of(labels == cluster, model_weights, losses[:, index], index)
                models[index, positions] += share * parts
                if positions.tolist() == [index]:
                    # Nobody else is of use there: the average is the learner's own model.
                    shares_of[0], shares_of[column] = shares_of[0] + share, 0.0
    return models, shares
