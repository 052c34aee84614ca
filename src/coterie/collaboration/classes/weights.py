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
    """Return the weights (E,) of a mixture of E predictors that maximise the likelihood of the classes.

    ``chances`` (n, E) are the probabilities that each predictor gave to the class that came, and
    ``counts`` (n,) weigh rows. Each step is one of expectation maximisation: a predictor's weight becomes its
    mean share in the probability of what came. Weights sum to one; without rows they are equal.
    """
    weights = np.full(chances.shape[1], 1 / chances.shape[1])
    if not counts.any():
        return weights
    counts = counts / counts.sum()
    for _ in range(STEPS):
        weights = weights * ((counts / (chances @ weights)) @ chances)
    normalised: Array = weights / weights.sum()
    return normalised


def _personal(
    chances: Array, counts: Array, owner: Array, n_learners: int, common: Array, pseudo_rows: float
) -> Array:
    """Return each learner's mixture weights, (L, E), by expectation maximisation on its own rows.

    ``pseudo_rows`` rows with the ``common`` weights (E,) are added for each learner, so that few rows do not
    decide; infinitely many leave the common weights as they are. ``chances`` (n, E) are the probabilities of
    the class that came, ``counts`` (n,) weigh rows, ``owner`` (n,) are their learners.
    """
    weights = np.tile(common, (n_learners, 1))
    if np.isinf(pseudo_rows):
        return weights
    # They start from the common weights, so fewer steps do than for those.
    for _ in range(STEPS // 4):
        responsibilities = weights[owner] * chances
        responsibilities *= (counts / responsibilities.sum(axis=1))[:, None]
        responsibility_sums = (
            np.array([np.bincount(owner, column, n_learners) for column in responsibilities.T]).T
            + pseudo_rows * common
        )
        weights = responsibility_sums / responsibility_sums.sum(axis=1, keepdims=True)
    return weights


def _strongest(losses: Array) -> int:
    """Return the last shrinkage whose mean loss is within a standard error of the smallest one.

    ``losses`` (S, L) are those of learners by shrinkage, from weak to strong; differences are paired by
    learner. The strongest that is not surely worse is the cautious choice: it departs least from the common
    weights.
    """
    excess_losses = losses - losses[losses.mean(axis=1).argmin()]
    standard_errors = excess_losses.std(axis=1) / np.sqrt(max(losses.shape[1] - 1, 1))
    return int(np.flatnonzero(excess_losses.mean(axis=1) <= standard_errors)[-1])


def learn_mixtures(
    chances: Array, counts: Array, scales: Array, owner: Array, folds: Array, n_folds: int, n: int
) -> MixtureWeights:
    """Learn common and personal weights of a mixture of E predictors, on all rows and without each fold.

    ``chances`` (N, E) are out-of-fold probabilities that each predictor gave to the class that came. Rows
    count by ``counts`` (N,) for their learner and by ``scales`` (N,) for all. ``folds`` (N,) is the fold that
    holds each row out, -1 for none, ``owner`` (N,) its learner among ``n``. How far personal weights are
    shrunken to common ones is chosen by the loss on rows that did not take part in learning them.
    """
    chances = np.maximum(chances, LEAST_CHANCE)
    # First all rows that some fold holds out, then these without each fold.
    training_sets = [folds >= 0, *((folds >= 0) & (folds != fold) for fold in range(n_folds))]
    common = np.array([mixture_weights(chances[rows], scales[rows]) for rows in training_sets])
    rows_of_learners = np.maximum(np.bincount(owner[training_sets[0]], counts[training_sets[0]], n), 1e-300)
    losses, weights_by_shrinkage = [], []
    for pseudo_rows in SHRINKAGES:
        personal_weights = np.array(
            [
                _personal(chances[rows], counts[rows], owner[rows], n, common_weights, pseudo_rows)
                for rows, common_weights in zip(training_sets, common, strict=True)
            ]
        )
        # For each row the weights that were learnt without its fold.
        weights_of_row = personal_weights[1 + np.maximum(folds, 0), owner]
        rows = -np.log(np.einsum("ne,ne->n", weights_of_row, chances)) * counts
        losses.append(np.bincount(owner[training_sets[0]], rows[training_sets[0]], n) / rows_of_learners)
        weights_by_shrinkage.append(personal_weights)
    best_shrinkage = _strongest(np.array(losses))
    return MixtureWeights(
        common=common[0],
        common_without=common[1:],
        personal=weights_by_shrinkage[best_shrinkage][0],
        personal_without=weights_by_shrinkage[best_shrinkage][1:],
        shrinkage=SHRINKAGES[best_shrinkage],
    )
