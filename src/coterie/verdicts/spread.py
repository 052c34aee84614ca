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
STANDARD_ERRORS = 2.0


@dataclass(frozen=True)
class Residuals:
    """Honest residuals of rows, learner by learner, and what their scatter may depend on.

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
        """Return the weight of each learner's rows, and the weighted sum of some values over them."""
        size = self.n_learners
        weighted = np.bincount(self.owner, self.weights * values, size)
        return np.bincount(self.owner, self.weights, size), weighted


@dataclass(frozen=True)
class Scales:
    """What a learner's scale is shrunken to: the scale of its coterie, by pseudo-rows.

    ``centres`` (K + 1,) are the scales of the coteries; the last is that of all learners.
    """

    centres: Array
    pseudo_rows: float

    def of(self, clusters: Array, n_rows: Array, sums: Array) -> Array:
        """Return scales of learners in some clusters (-1: in none) from sums of their absolute residuals."""
        scales: Array = (self.pseudo_rows * self.centres[clusters] + sums) / (self.pseudo_rows + n_rows)
        return scales

    def without_each(self, rows: Residuals, sizes: Array) -> Array:
        """Return for each row the scale that its learner has without it; ``sizes`` (N,) are absolute."""
        n_rows, sums = rows.sums(sizes)
        other_sums = np.maximum(sums[rows.owner] - rows.weights * sizes, 0.0)
        other_rows = np.maximum(n_rows[rows.owner] - rows.weights, 0.0)
        return self.of(rows.clusters[rows.owner], other_rows, other_sums)


def _centres(rows: Residuals, sizes: Array, pseudo_rows: float) -> Array:
    """Return the typical scale of each cluster, shrunken to that of all, which is the last one."""
    n_rows, sums = rows.sums(sizes)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(sums / n_rows)
    # A learner without residuals, or with zeros only, does not say what is typical.
    logs, counts = np.where(np.isfinite(logs), logs, 0.0), np.where(np.isfinite(logs), n_rows, 0.0)
    n_clusters = int(rows.clusters.max(initial=0)) + 1
    if not counts.any():
        return np.full(n_clusters + 1, np.finfo(float).tiny ** 0.5)
    of_all = float(np.average(logs, weights=counts))
    totals = np.bincount(rows.clusters, counts, n_clusters)
    inside = np.bincount(rows.clusters, counts * logs, n_clusters)
    shrunken = (inside + pseudo_rows * of_all) / (totals + pseudo_rows)
    centres: Array = np.exp(np.r_[shrunken, of_all])
    return centres


def misfit(sizes: Array, scales: Array) -> Array:
    """Return how badly scales describe absolute residuals: minus the log density of Laplace's law."""
    return np.log(scales) + sizes / scales


def learn_scales(rows: Residuals, sizes: Array) -> Scales:
    """Return the scales of coteries, and by how many pseudo-rows learners are shrunken to them."""

    def tried() -> Iterator[tuple[float, float, Scales]]:
        """Yield the misfit of the scales at each number of pseudo-rows."""
        for pseudo_rows in PSEUDO_ROWS:
            scales = Scales(_centres(rows, sizes, pseudo_rows), pseudo_rows)
            losses = misfit(sizes, scales.without_each(rows, sizes))
            # The last bits depend on the order of learners, and must not decide.
            yield round(float(np.average(losses, weights=rows.weights)), 9), pseudo_rows, scales

    return min(tried(), key=lambda each: each[:2])[2]


@dataclass(frozen=True)
class Spread:
    """By what factor residuals scatter more at some rows than at others.

    The factor is the ``model``'s prediction within ``bounds`` (2,), to a ``power``; one if that is zero.
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


def _trees(rows: Residuals, target: Array, mine: Array, seed: int) -> BoostedTrees:
    """Fit trees to the ``target`` (N,) of some rows."""
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
    weights = rows.weights[mine] if np.ptp(rows.weights) else None
    return trees.fit(rows.features[mine], target[mine], weights)


def learn_spread(rows: Residuals, others: Array, seed: int) -> tuple[Spread, Array, Array]:
    """Learn how the scatter depends on the row.

    Returns the factor as a function of the row; for each row the factor by trees that have not seen it; and
    the same for other ``features`` of the rows, of shape (N, p + 1).
    """
    n, one = len(rows.values), np.ones(len(rows.values))
    sizes = np.abs(rows.values)
    if n < 2 * SPREAD.rows_in_leaf or not sizes.any():
        return Spread(), one, one
    generator = generator_for(seed, "how far residuals scatter")
    fold, tree_seed = generator.permutation(n) % SPREAD.folds, integer_seed(generator)
    kept = generator.permutation(n) < SPREAD.most_rows
    scales = learn_scales(rows, sizes).without_each(rows, sizes)
    target = np.minimum(sizes / scales, SPREAD.largest)
    if not target[kept].any():
        return Spread(), one, one
    factors, elsewhere = np.empty(n), np.empty(n)
    for k in range(SPREAD.folds):
        selected, there = kept & (fold != k), fold == k
        trees = _trees(rows, target, selected, tree_seed)
        factors[there], elsewhere[there] = trees.predict(rows.features[there]), trees.predict(others[there])
    bounds = np.array([factors.min(), factors.max()])
    elsewhere = np.clip(elsewhere, *bounds)
    before, best = misfit(sizes, scales), (0.0, 0.0)
    for power in (0.5, 1.0):
        part = sizes / factors**power
        losses = misfit(part, learn_scales(rows, part).without_each(rows, part)) + power * np.log(factors)
        saved = rows.weights * (before - losses)
        gain, error = float(saved.mean()), float(saved.std() / np.sqrt(n))
        if gain > max(best[0], STANDARD_ERRORS * error):
            best = gain, power
    power = best[1]
    if not power:
        return Spread(), one, one
    trees = _trees(rows, target, kept, tree_seed)
    return Spread(trees, power, bounds), factors**power, elsewhere**power
