"""Quantiles of held-out scores: a learner's own, shrunk to those of its coterie, and these to those of all.

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
TRIED_PSEUDO_ROWS = (16.0, 64.0, 256.0, 1e12)
# The coverage of the intervals or sets for which their number is chosen.
CHOICE_COVERAGE = 0.9


def upper_quantiles(values: Array, weights: Array, owner: Array, size: int, level: float) -> Array:
    """Return the conformal quantile of each group's values at a level, of shape (size,).

    ``values`` and ``weights`` (N,) belong to the groups ``owner`` (N,), numbers below ``size``. Of n sorted
    values the quantile is the one in place (n + 1) times the level, interpolated, and the largest beyond the
    last. A further value then lies below it with that probability. A group without values gets some number.
    """
    # All groups stand one after the other, each sorted, so that one pass does for all of them.
    order = np.lexsort((values, owner))
    ranked, cumulated_weights = values[order], np.cumsum(weights[order])
    counts = np.bincount(owner, minlength=size)
    ends = np.cumsum(counts)
    weight_before = np.r_[0.0, cumulated_weights][ends - counts]
    # A group's own weight, and one for the further value.
    wanted_weight = weight_before + level * (np.r_[0.0, cumulated_weights][ends] - weight_before + 1)
    first, last = np.minimum(ends - counts, np.maximum(ends - 1, 0)), np.maximum(ends - 1, 0)
    above = np.clip(np.searchsorted(cumulated_weights, wanted_weight), first, last)
    below = np.clip(above - 1, first, last)
    # Rounding may leave a row of little weight without any.
    weight_above = np.maximum(weights[order][above], 1e-300)
    share_below = np.clip((cumulated_weights[above] - wanted_weight) / weight_above, 0.0, 1.0)
    quantiles: Array = share_below * ranked[below] + (1 - share_below) * ranked[above]
    return quantiles


def _mixed(own: Array, n_rows: Array, shared: Array, pseudo_rows: float) -> Array:
    """Return values of ``n_rows`` rows each, shrunken to shared ones, which count as ``pseudo_rows`` rows."""
    own_shares = n_rows / (n_rows + pseudo_rows)
    mixture: Array = own_shares * own + (1 - own_shares) * shared
    return mixture


def shrunken_quantiles(
    values: Array,
    weights: Array,
    owner: Array,
    clusters: Array,
    counted: Array,
    pseudo_rows: float,
    level: float,
) -> Array:
    """Return the upper quantile of each learner's values at a level, of shape (M,).

    It is shrunken to that of the learner's cluster, and this to that of all, which count as ``pseudo_rows``
    rows: few values do not tell a quantile. ``values`` and ``weights`` (N,) belong to learners ``owner``
    (N,), who are in ``clusters`` (M,). Learners that are not ``counted`` (M,) do not contribute to the
    others'. Those in cluster -1 have no cluster: theirs is shrunken to that of all.
    """
    pooled, n_clusters = counted[owner], int(clusters.max(initial=0)) + 1
    pooled_values, pooled_weights, cluster_of_value = values[pooled], weights[pooled], clusters[owner][pooled]
    of_all = upper_quantiles(pooled_values, pooled_weights, np.zeros(len(pooled_values), dtype=int), 1, level)
    of_clusters = upper_quantiles(pooled_values, pooled_weights, cluster_of_value, n_clusters, level)
    # The quantile of all stands last, where the cluster -1 finds it.
    shared = np.r_[
        _mixed(
            own=of_clusters,
            n_rows=np.bincount(cluster_of_value, pooled_weights, n_clusters),
            shared=of_all,
            pseudo_rows=pseudo_rows,
        ),
        of_all,
    ]
    own = upper_quantiles(values, weights, owner, len(clusters), level)
    return _mixed(own, np.bincount(owner, weights, len(clusters)), shared[clusters], pseudo_rows)


def by_learner(values: Array, rows: Residuals) -> tuple[Array, ...]:
    """Cut values (N, ...) of rows, which stand learner by learner, into one array for each learner."""
    counts = np.bincount(rows.owner, minlength=rows.n_learners)
    return tuple(np.split(values, np.cumsum(counts)[:-1]))


def _pinball(values: Array, quantiles: Array, level: float) -> Array:
    """Return the pinball loss of each quantile at a level: the true one has the lowest mean."""
    excess = values - quantiles
    return np.maximum(level * excess, (level - 1) * excess)


def shrinkage_rows(values: Array, rows: Residuals, signs: Sequence[float], level: float) -> float:
    """Choose by cross-validation the pseudo-rows by which learners' quantiles are shrunken to shared ones.

    Quantiles at a level are learnt from every other row of each learner and judged by the rest, both ways.
    They are upper ones of the ``values`` (N,) times each of the ``signs``: with -1 and 1 both ends count.
    """
    counts = np.bincount(rows.owner, minlength=rows.n_learners)
    position_in_learner = np.arange(len(values)) - np.repeat(np.cumsum(counts) - counts, counts)
    all_learners = np.ones(rows.n_learners, dtype=bool)

    def losses_on_halves(pseudo_rows: float) -> Iterator[float]:
        """Yield the pinball losses (see `_pinball`) of quantiles of one half of the rows on the other half.

        There is one number for each sign and half; zero where a half is empty.
        """
        for sign, half in ((s, h) for s in signs for h in (0, 1)):
            training = position_in_learner % 2 == half
            if training.all() or not training.any():
                yield 0.0
                continue
            quantiles = shrunken_quantiles(
                values=sign * values[training],
                weights=rows.weights[training],
                owner=rows.owner[training],
                clusters=rows.clusters,
                counted=all_learners,
                pseudo_rows=pseudo_rows,
                level=level,
            )
            losses = _pinball(sign * values[~training], quantiles[rows.owner[~training]], level)
            yield float(np.sum(rows.weights[~training] * losses))

    # The last bits depend on the order of learners, and must not decide. Of equals the most rows are taken.
    return -min((round(sum(losses_on_halves(number)), 9), -number) for number in TRIED_PSEUDO_ROWS)[1]
