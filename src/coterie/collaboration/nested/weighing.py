"""From what the parties answer to how each predicts: the same for rows that are here and elsewhere."""

from __future__ import annotations

import numpy as np

from coterie._arrays import Array
from coterie.collaboration.nested.effects import best_ratios
from coterie.collaboration.nested.parties import (
    LEAST_LIKELIHOOD,
    AverageDictionary,
    average_of,
)
from coterie.collaboration.nested.weights import Weights, learn_weights
from coterie.method.noise import pooled_variance, smallest_level
from coterie.method.refine.losses import ClusterLosses, whole_losses
from coterie.method.voices import VOICES


def agree_on_ratios(likelihoods: Array) -> Array:
    """Return the variances of offsets and slopes (2, E, 2), from log-likelihoods (L, E, offsets, slopes)."""
    total = np.maximum(likelihoods, LEAST_LIKELIHOOD).sum(axis=0)
    return np.stack([best_ratios(total, slopes=slopes) for slopes in (False, True)])


def response_units(sizes: Array, means: Array, variances: Array) -> Array:
    """Return the variance of each learner's response, of shape (L,); what is rounding counts as its bound."""
    return np.maximum(variances, smallest_level(pooled_variance(sizes, means[:, None], variances)))


def _hearing(per_row: Array) -> Array:
    """Return how much each learner's Gram matrix (L, C, C) counts, of shape (L,).

    One that is far from the median matrix, in units of the median learner's residuals, counts as if it were
    no farther than a multiple of what is typical. The average then is of true Gram matrices, and no learner
    moves it far.
    """
    roots = np.sqrt(np.median(per_row.diagonal(axis1=1, axis2=2), axis=0))
    roots = np.where(roots > 0, roots, 1.0)
    scaled = per_row / roots[:, None] / roots
    distances = np.sqrt(np.square(scaled - np.median(scaled, axis=0)).sum(axis=(1, 2)))
    reach = VOICES.weight * np.median(distances)
    hearing: Array = np.divide(reach, distances, out=np.ones(len(distances)), where=distances > reach)
    return hearing


def agree_on_weights(grams: Array, counts: Array, units: Array) -> Weights:
    """Learn weights from Gram matrices (L, F, C, C) and rows (L, F), in ``units`` (L,) of the response."""
    counts = np.minimum(counts, VOICES.ratio * np.median(counts))
    scaled = grams / units[:, None, None, None]
    rows = np.maximum(counts.sum(axis=1), 1e-300)
    hearing = _hearing(scaled.sum(axis=1) / rows[:, None, None])
    return learn_weights(scaled * hearing[:, None, None, None], counts)


def homes_of(losses: ClusterLosses, labels: Array) -> Array:
    """Return the cluster whose average loses least on each learner, of shape (L,)."""
    homes: Array = whole_losses(losses, labels).argmin(axis=0)
    return homes


def mixed_models(
    dictionary: AverageDictionary, homes: Array, weights: Array, model_weights: Array, losses: Array
) -> tuple[Array, Array]:
    """Return the weights of models (L, M) of each learner's mixture, and the shares of averages (L, E + 1).

    ``homes`` (E, L) are the clusters that predict each learner, ``weights`` (L, C) its weights of columns,
    and ``losses`` (M, L) what models lose on it. The first share is that of its own model.
    """
    n_shared = len(dictionary.labellings)
    models = np.zeros((len(weights), len(model_weights)))
    shares = np.column_stack([weights[:, 0], weights[:, 1:].reshape(-1, 2, n_shared).sum(axis=1)])
    for place, mine in enumerate(shares):
        models[place, place] = mine[0]
        for column, (labels, home) in enumerate(zip(dictionary.labellings, homes[:, place], strict=True), 1):
            share = float(mine[column])
            if share > 0:
                positions, parts = average_of(labels == home, model_weights, losses[:, place], place)
                models[place, positions] += share * parts
                if positions.tolist() == [place]:
                    # Nobody else is of use there: the average is the learner's own model.
                    mine[0], mine[column] = mine[0] + share, 0.0
    return models, shares
