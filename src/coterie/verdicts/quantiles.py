"""Quantiles of honest scores: a learner's own, shrunk to those of its coterie, and these to those of all.

A learner with ten rows has ten scores, which is too few for a quantile of its own. Prediction intervals take
quantiles of residuals (`coterie.verdicts.intervals`), sets of labels those of missed chances
(`coterie.verdicts.label_sets`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from coterie._arrays import Array
from coterie.verdicts.spread import Residuals

# Pseudo-rows of the coterie that a learner's quantiles are tried with; with the last, all have the same.
SHAPE_ROWS = (16.0, 64.0, 256.0, 1e12)
# The coverage by which they are chosen.
USUAL = 0.9


def upper_quantiles(values: Array, weights: Array, owner: Array, size: int, level: float) -> Array:
    """Return the quantile of each group's values at a level, of shape (size,); the largest beyond that.

    Of n sorted values it is the one in place (n + 1) times the level, between two of them if need be, so that
    a further value lies below it with that probability. Values count by their weights. A group without values
    gets some number.
    """
    order = np.lexsort((values, owner))
    ranked, reached = values[order], np.cumsum(weights[order])
    counts = np.bincount(owner, minlength=size)
    ends = np.cumsum(counts)
    before = np.r_[0.0, reached][ends - counts]
    wanted = before + level * (np.r_[0.0, reached][ends] - before + 1)
    last = np.maximum(ends - 1, 0)
    above = np.clip(np.searchsorted(reached, wanted), np.minimum(ends - counts, last), last)
    below = np.clip(above - 1, np.minimum(ends - counts, last), last)
    # Rounding may leave a row of little weight without any.
    steps = np.maximum(weights[order][above], 1e-300)
    share = np.clip((reached[above] - wanted) / steps, 0.0, 1.0)
    quantiles: Array = share * ranked[below] + (1 - share) * ranked[above]
    return quantiles


def _mixed(own: Array, n_rows: Array, shared: Array, pseudo_rows: float) -> Array:
    """Return values shrunken to shared ones, which count as pseudo-rows."""
    shares = n_rows / (n_rows + pseudo_rows)
    mixture: Array = shares * own + (1 - shares) * shared
    return mixture


def shrunken_quantiles(
    values: Array, weights: Array, owner: Array, clusters: Array, counted: Array, pseudo: float, level: float
) -> Array:
    """Return the upper quantile of each learner, of shape (M,), shrunken to its cluster's and to all's.

    Learners that are not ``counted`` (M,) do not contribute to the others'. Those in cluster -1 have none.
    """
    pooled, n_clusters = counted[owner], int(clusters.max(initial=0)) + 1
    pooled_values, pooled_weights, cluster_of_value = values[pooled], weights[pooled], clusters[owner][pooled]
    of_all = upper_quantiles(pooled_values, pooled_weights, np.zeros(len(pooled_values), dtype=int), 1, level)
    of_clusters = upper_quantiles(pooled_values, pooled_weights, cluster_of_value, n_clusters, level)
    shared = np.r_[
        _mixed(of_clusters, np.bincount(cluster_of_value, pooled_weights, n_clusters), of_all, pseudo), of_all
    ]
    own = upper_quantiles(values, weights, owner, len(clusters), level)
    return _mixed(own, np.bincount(owner, weights, len(clusters)), shared[clusters], pseudo)


def by_learner(values: Array, rows: Residuals) -> tuple[Array, ...]:
    """Return values (N, ...) of rows in parts, one for each learner."""
    counts = np.bincount(rows.owner, minlength=rows.n_learners)
    return tuple(np.split(values, np.cumsum(counts)[:-1]))


def _pinball(values: Array, ends: Array, level: float) -> Array:
    """Return what quantiles lose at a level on values that they have not seen."""
    excess = values - ends
    return np.maximum(level * excess, (level - 1) * excess)


def shrinkage_rows(values: Array, rows: Residuals, signs: Sequence[float], level: float) -> float:
    """Return how many rows of the coterie learners' quantiles are shrunken by: what loses least.

    Quantiles are learnt from every other row and judged by the rest, both ways. They are the upper ones at a
    level of the values times each sign.
    """
    counts = np.bincount(rows.owner, minlength=rows.n_learners)
    index = np.arange(len(values)) - np.repeat(np.cumsum(counts) - counts, counts)
    all_learners = np.ones(rows.n_learners, dtype=bool)

    def lost(pseudo: float) -> Iterator[float]:
        """Yield what quantiles of half of the rows lose on the other half, at a shrinkage."""
        for sign, half in ((s, h) for s in signs for h in (0, 1)):
            learnt = index % 2 == half
            if learnt.all() or not learnt.any():
                yield 0.0
                continue
            parts = sign * values[learnt], rows.weights[learnt], rows.owner[learnt]
            ends = shrunken_quantiles(*parts, rows.clusters, all_learners, pseudo, level)[rows.owner[~learnt]]
            yield float(np.sum(rows.weights[~learnt] * _pinball(sign * values[~learnt], ends, level)))

    # The last bits depend on the order of learners, and must not decide.
    return -min((round(sum(lost(pseudo)), 9), -pseudo) for pseudo in SHAPE_ROWS)[1]
