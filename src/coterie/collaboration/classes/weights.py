"""Weights of the dictionary for classes: mixtures of probabilities, learnt on rows out of fold.

Weights that minimise the Brier score are too kind to models that are sure and wrong, so mixtures are weighed
by log loss. A step of expectation and maximisation gives each predictor its share in having foreseen the
rows. The weights of one learner start from those of all, which count as pseudo-rows; the folds choose their
number.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from coterie._arrays import Array
from coterie.collaboration.nested.weights import SHRINKAGES

# Steps of a mixture; after that the weights of no table moved by more than a hundredth.
STEPS = 100
# A predictor that held what came for impossible is not out of the question for ever.
LEAST_CHANCE = 1e-4


@dataclass(frozen=True)
class MixtureWeights:
    """What was learnt of E predictors.

    ``common`` (E,) are weights of the average learner, ``common_without`` (F, E) the same without each fold;
    ``personal`` (L, E) and ``personal_without`` (F, L, E) those of each learner. ``shrinkage`` counts
    pseudo-rows.
    """

    common: Array
    common_without: Array = field(repr=False)
    personal: Array = field(repr=False)
    personal_without: Array = field(repr=False)
    shrinkage: float


def mixture_weights(chances: Array, counts: Array) -> Array:
    """Return the weights (E,) under which classes are most probable; rows (n, E) count by ``counts`` (n,)."""
    weights = np.full(chances.shape[1], 1 / chances.shape[1])
    if not counts.any():
        return weights
    counts = counts / counts.sum()
    for _ in range(STEPS):
        weights = weights * ((counts / (chances @ weights)) @ chances)
    result: Array = weights / weights.sum()
    return result


def _personal(
    chances: Array, counts: Array, owner: Array, n: int, common: Array, pseudo_rows: float
) -> Array:
    """Return the weights (L, E) of learners, which count ``pseudo_rows`` of the common ones."""
    weights = np.tile(common, (n, 1))
    if np.isinf(pseudo_rows):
        return weights
    for _ in range(STEPS // 4):
        parts = weights[owner] * chances
        parts *= (counts / parts.sum(axis=1))[:, None]
        sums = np.array([np.bincount(owner, column, n) for column in parts.T]).T + pseudo_rows * common
        weights = sums / sums.sum(axis=1, keepdims=True)
    return weights


def _strongest(losses: Array) -> int:
    """Return the last row of (S, L) whose mean is within a standard error of the best one's, paired."""
    excess = losses - losses[losses.mean(axis=1).argmin()]
    errors = excess.std(axis=1) / np.sqrt(max(losses.shape[1] - 1, 1))
    return int(np.flatnonzero(excess.mean(axis=1) <= errors)[-1])


def learn_mixtures(
    chances: Array, counts: Array, scales: Array, owner: Array, folds: Array, n_folds: int, n: int
) -> MixtureWeights:
    """Learn common and personal weights.

    ``chances`` (N, E) are what each predictor gave to the class that came, out of fold. Rows count by
    ``counts`` (N,) for their learner and by ``scales`` (N,) for all; ``folds`` (N,) holds each out.
    """
    chances = np.maximum(chances, LEAST_CHANCE)
    training_sets = [folds >= 0, *((folds >= 0) & (folds != fold) for fold in range(n_folds))]
    common = np.array([mixture_weights(chances[rows], scales[rows]) for rows in training_sets])
    sizes = np.maximum(np.bincount(owner[training_sets[0]], counts[training_sets[0]], n), 1e-300)
    losses, result = [], []
    for pseudo_rows in SHRINKAGES:
        weights = np.array(
            [
                _personal(chances[rows], counts[rows], owner[rows], n, one, pseudo_rows)
                for rows, one in zip(training_sets, common, strict=True)
            ]
        )
        weights_of_row = weights[1 + np.maximum(folds, 0), owner]
        rows = -np.log(np.einsum("ne,ne->n", weights_of_row, chances)) * counts
        losses.append(np.bincount(owner[training_sets[0]], rows[training_sets[0]], n) / sizes)
        result.append(weights)
    best = _strongest(np.array(losses))
    return MixtureWeights(common[0], common[1:], result[best][0], result[best][1:], SHRINKAGES[best])
