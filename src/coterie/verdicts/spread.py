"""How far residuals scatter: a scale for each learner, and how the scatter depends on the row.

A learner with few residuals does not know its own scale. Its scale is the mean absolute residual of its own
rows together with pseudo-rows of its coterie, whose scale is shrunken to that of all learners in the same
way. The number of pseudo-rows is the one that describes each residual best when its learner's scale is made
without it.

Beside the learner, the scatter may depend on the row: on the predictors, and on the prediction itself. Small
boosted trees learn that on the rows of all learners. They are used as far as they describe rows better that
they have not seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie._seeds import generator_for, integer_seed
from coterie.models.boosting import BoostedTrees


@dataclass(frozen=True)
class SpreadRule:
    """How trees of the scatter are grown; see benchmarks/quality/promises/intervals.md."""

    folds: int = 4
    rounds: int = 30
    rate: float = 0.1
    leaves: int = 8
    rows_in_leaf: int = 50
    # One row counts at most as much as this number of typical rows when trees are fitted.
    largest: float = 8.0
    # More rows make the trees slower, not better.
    most_rows: int = 50_000


SPREAD = SpreadRule()
# Pseudo-rows of the coterie that are tried; the last says that all learners have the scale of their coterie.
PSEUDO_ROWS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 1e12)
# A gain of fewer standard errors is taken for noise.
MIN_STANDARD_ERRORS = 2.0


@dataclass(frozen=True)
class Residuals:
    """Out-of-fold residuals of rows, learner by learner, and what their scatter may depend on.

    ``values`` (N,) are known. ``owner`` (N,) is the position of each row's learner, who is in one of the
    ``clusters`` (M,). ``features`` (N, p + 1) are the predictors and the prediction, ``weights`` (N,) have
    the mean one inside each learner.
    """

    values: Array
    owner: Array
    clusters: Array
    features: Array = field(repr=False)
    weights: Array = field(repr=False)

    @property
    def n_learners(self) -> int:
        """Number of learners, with residuals or without."""
        return len(self.clusters)

    def sums(self, values: Array) -> tuple[Array, Array]:
        """Return each learner's sum of weights (M,), and the weighted sum (M,) of row ``values`` (N,)."""
        n_learners = self.n_learners
        weighted_sums = np.bincount(self.owner, self.weights * values, n_learners)
        return np.bincount(self.owner, self.weights, n_learners), weighted_sums


@dataclass(frozen=True)
class Scales:
    """What a learner's scale is shrunken to: the scale of its coterie, by pseudo-rows.

    ``centres`` (K + 1,) are the scales of the coteries; the last is that of all learners.
    """

    centres: Array
    pseudo_rows: float

    def of(self, clusters: Array, n_rows: Array, sums: Array) -> Array:
        """Return the scales (M,) of learners: weighted means of their absolute residuals and the coterie's.

        ``clusters`` (M,) are theirs, -1 for none; ``sums`` (M,) are of absolute residuals over ``n_rows``
        (M,). The centre of all learners is last, where -1 finds it.
        """
        scales: Array = (self.pseudo_rows * self.centres[clusters] + sums) / (self.pseudo_rows + n_rows)
        return scales

    def without_each(self, rows: Residuals, sizes: Array) -> Array:
        """Return for each row (N,) the scale that its learner has without this row.

        ``sizes`` (N,) are absolute residuals. A residual in units of a scale that it had a part in would look
        too small.
        """
        n_rows, sums = rows.sums(sizes)
        other_sums = np.maximum(sums[rows.owner] - rows.weights * sizes, 0.0)
        other_rows = np.maximum(n_rows[rows.owner] - rows.weights, 0.0)
        return self.of(rows.clusters[rows.owner], other_rows, other_sums)


def _centres(rows: Residuals, sizes: Array, pseudo_rows: float) -> Array:
    """Return the typical scale of each of K clusters, and of all learners last, of shape (K + 1,).

    It is the geometric mean of the learners' mean absolute residuals, weighted by their rows. That of a
    cluster is shrunken to that of all, which counts as ``pseudo_rows`` rows. ``sizes`` (N,) are absolute
    residuals.
    """
    n_rows, sums = rows.sums(sizes)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_means = np.log(sums / n_rows)
    # A learner without residuals, or with zeros only, does not say what is typical.
    usable = np.isfinite(log_means)
    log_means, row_counts = np.where(usable, log_means, 0.0), np.where(usable, n_rows, 0.0)
    n_clusters = int(rows.clusters.max(initial=0)) + 1
    if not row_counts.any():
        return np.full(n_clusters + 1, np.finfo(float).tiny ** 0.5)
    log_centre_of_all = float(np.average(log_means, weights=row_counts))
    rows_of_cluster, sums_of_logs = (
        np.bincount(rows.clusters, row_counts, n_clusters),
        np.bincount(rows.clusters, row_counts * log_means, n_clusters),
    )
    log_centres = (sums_of_logs + pseudo_rows * log_centre_of_all) / (rows_of_cluster + pseudo_rows)
    centres: Array = np.exp(np.r_[log_centres, log_centre_of_all])
    return centres


def misfit(sizes: Array, scales: Array) -> Array:
    """Return how badly scales (N,) describe absolute residuals ``sizes`` (N,), row by row.

    That is minus the log density of the Laplace distribution, whose scale is the mean absolute residual.
    """
    return np.log(scales) + sizes / scales


def learn_scales(rows: Residuals, sizes: Array) -> Scales:
    """Return the scales of coteries, and by how many pseudo-rows learners are shrunken to them.

    ``sizes`` (N,) are absolute residuals. The number of pseudo-rows is chosen by leave-one-out
    cross-validation: each residual is described by the scale that its learner has without it.
    """

    def scored_scales() -> Iterator[tuple[float, float, Scales]]:
        """Yield the mean misfit, the number of pseudo-rows and the scales for each number that is tried."""
        for pseudo_rows in PSEUDO_ROWS:
            scales = Scales(_centres(rows, sizes, pseudo_rows), pseudo_rows)
            losses = misfit(sizes, scales.without_each(rows, sizes))
            # The last bits depend on the order of learners, and must not decide.
            yield round(float(np.average(losses, weights=rows.weights)), 9), pseudo_rows, scales

    # Of equals the fewest pseudo-rows are taken.
    return min(scored_scales(), key=lambda scored: scored[:2])[2]


@dataclass(frozen=True)
class Spread:
    """By what factor residuals scatter more at some rows than at others.

    The factor is the ``model``'s prediction within ``bounds`` (2,), to a ``power``; one if that is zero. A
    factor of two says that residuals are twice as large there. None: no model, the factor is one everywhere.
    """

    model: Any = field(default=None, repr=False)
    power: float = 0.0
    bounds: Array = field(default_factory=lambda: np.ones(2))

    def at(self, features: Array) -> Array:
        """Return the factor (N,) at rows of ``features`` (N, p + 1)."""
        if self.model is None:
            return np.ones(len(features))
        predicted = np.asarray(self.model.predict(features), dtype=float)
        factor: Array = np.clip(predicted, *self.bounds) ** self.power
        return factor


def _fit_trees(rows: Residuals, target: Array, training: Array, seed: int) -> BoostedTrees:
    """Fit boosted trees that predict the ``target`` (N,) from the features of the ``training`` rows (N,).

    The target, an absolute residual in units of its scale, is never negative: trees add up on the log scale.
    """
    trees = BoostedTrees(
        loss="poisson",
        learning_rate=SPREAD.rate,
        max_iter=SPREAD.rounds,
        max_leaf_nodes=SPREAD.leaves,
        min_samples_leaf=SPREAD.rows_in_leaf,
        early_stopping=False,
        random_state=seed,
    )
    # Bins of weighted rows cost many times more.
    weights = rows.weights[training] if np.ptp(rows.weights) else None
    return trees.fit(rows.features[training], target[training], weights)


def learn_spread(rows: Residuals, others: Array, seed: int) -> tuple[Spread, Array, Array]:
    """Learn how the scatter of residuals depends on the row, beside its learner's scale.

    Return the factor as a function of the row, for each row the factor (N,) by trees that were not fitted on
    it, and the same (N,) for ``others``. These (N, p + 1) are the features with another prediction in the
    last column.
    Factors are one unless they describe held-out residuals significantly better.
    """
    n, ones = len(rows.values), np.ones(len(rows.values))
    sizes = np.abs(rows.values)
    if n < 2 * SPREAD.rows_in_leaf or not sizes.any():
        return Spread(), ones, ones
    generator = generator_for(seed, "how far residuals scatter")
    # The draws are in this order: with another one, trees would grow in another way.
    fold_of_row, tree_seed = generator.permutation(n) % SPREAD.folds, integer_seed(generator)
    sampled = generator.permutation(n) < SPREAD.most_rows
    scales = learn_scales(rows, sizes).without_each(rows, sizes)
    target = np.minimum(sizes / scales, SPREAD.largest)
    if not target[sampled].any():
        return Spread(), ones, ones
    factors, other_factors = np.empty(n), np.empty(n)
    for fold in range(SPREAD.folds):
        held_out = fold_of_row == fold
        trees = _fit_trees(rows, target, sampled & ~held_out, tree_seed)
        factors[held_out], other_factors[held_out] = (
            trees.predict(rows.features[held_out]),
            trees.predict(others[held_out]),
        )
    bounds = np.array([factors.min(), factors.max()])
    other_factors = np.clip(other_factors, *bounds)
    misfit_without, (best_gain, best_power) = misfit(sizes, scales), (0.0, 0.0)
    # The square root of the factor is the cautious choice, and no factor (power 0) the most cautious one.
    for power in (0.5, 1.0):
        scaled_sizes = sizes / factors**power
        scales_left = learn_scales(rows, scaled_sizes).without_each(rows, scaled_sizes)
        # The log of the factor makes densities of scaled residuals comparable with those of plain ones.
        misfit_with = misfit(scaled_sizes, scales_left) + power * np.log(factors)
        improvements = rows.weights * (misfit_without - misfit_with)
        gain, error = float(improvements.mean()), float(improvements.std() / np.sqrt(n))
        if gain > max(best_gain, MIN_STANDARD_ERRORS * error):
            best_gain, best_power = gain, power
    if not best_power:
        return Spread(), ones, ones
    trees = _fit_trees(rows, target, sampled, tree_seed)
    return Spread(trees, best_power, bounds), factors**best_power, other_factors**best_power
