"""Clusters of sites and their number, from moments alone.

K-models on pooled moments from many starts give clusters for each K. Each half of a site's rows then picks
the cluster that predicts it best, and that cluster's line is scored on the other half; lines are fitted on
the first half of everybody's rows. The smallest K is chosen that is within two standard errors of the best
and under which no single site does surely worse.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from coterie._arrays import Array
from coterie.federated.moments.pool import Pool, lines_of, losses_of
from coterie.method.n_clusters.held_out import RULE, errors_allowed
from coterie.method.refine.averages import membership
from coterie.method.refine.moment_starts import SEARCH
from coterie.method.spectral import tidy_labels
from coterie.records import Curve

# Losses count up to this multiple of the noise level: one site that nobody can predict must not decide.
MOST_LOSS = 4.0
# Noise levels are within a quarter of the median and four times the median.
MOST_LEVEL = 4.0


def _members(labels: Array, n_clusters: int) -> Array:
    return membership(labels, n_clusters, np.ones(len(labels)))


def _spread_out(moments: Array, own: Array, n_clusters: int, generator: np.random.Generator) -> Array:
    """Return labels (L,) by the lines of sites that are far from each other, drawn as k-means++ draws."""
    chosen = [int(generator.integers(len(own)))]
    losses = losses_of(own[chosen], moments)
    while len(chosen) < n_clusters:
        far = np.maximum(losses.min(axis=0), 0.0)
        share = far / far.sum() if far.sum() > 0 else None
        chosen.append(int(generator.choice(len(own), p=share)))
        losses = np.vstack([losses, losses_of(own[chosen[-1:]], moments)])
    labels: Array = losses.argmin(axis=0)
    return labels


def search_labels(pool: Pool, n_clusters: int, seed: int, level: Array | None = None) -> tuple[Array, Array]:
    """Return the labelling (L,) with the lowest loss of many random starts, and who counts in lines (L,).

    Clusters may be empty. Where noise levels (L,) are known, a site's mean loss counts up to a bound, and who
    is beyond the bound is part of no line. Nobody counts by more rows than the site in the middle has.
    """
    moments, scales = pool.moments, pool.scales * np.sqrt(2.0)
    most = np.inf if level is None else MOST_LOSS * level
    weight = np.minimum(pool.n_rows, np.median(pool.n_rows))
    generator = np.random.default_rng([seed, n_clusters])
    all_learners = np.arange(len(scales))
    own = lines_of(np.eye(len(scales)), moments, scales)
    first = all_learners % n_clusters
    best, inside, lowest = np.zeros_like(first), np.ones(len(first)), np.inf
    for start in range(SEARCH.starts if n_clusters > 1 else 0):
        if start % 2:
            labels = generator.permutation(first)
        else:
            labels = _spread_out(moments, own, n_clusters, generator)
        counted = np.ones(len(labels))
        for _ in range(SEARCH.rounds):
            member = _members(labels, n_clusters) * counted
            losses = losses_of(lines_of(member, moments, scales), moments) / pool.n_rows
            before, labels = labels, losses.argmin(axis=0)
            outside, counted = counted, (losses[labels, all_learners] <= most).astype(float)
            if (before == labels).all() and (outside == counted).all():
                break
        total = float(np.minimum(losses.min(axis=0), most) @ weight)
        if total < lowest:
            best, inside, lowest = labels, counted, total
    return best, inside


def held_out_losses(pool: Pool, labels: Array, counted: Array) -> Array:
    """Return the mean losses (L,) of the clusters that each site's other half picks.

    ``counted`` (L,) says who is part of lines.
    """
    member = _members(labels, int(labels.max()) + 1) * counted
    all_learners = np.arange(len(labels))
    total = np.zeros(len(labels))
    for seen, held in (pool.halves, pool.halves[::-1]):
        lines = lines_of(member, seen, pool.scales)
        empty = np.where(member.any(axis=1), 0.0, np.inf)[:, None]
        picks = (losses_of(lines, seen) + empty).argmin(axis=0)
        total += losses_of(lines, held)[picks, all_learners]
    means: Array = total / pool.n_rows
    return means


@dataclass(frozen=True)
class MomentSearchResult:
    """Clusters for each number that was looked at, and the number that was chosen.

    ``ratios`` (L,) are held-out losses with the chosen clusters in units of the noise level, and ``doubt``
    (L,) the spread that the noise on the moments gives them.
    """

    labels: dict[int, Array]
    curve: Curve
    n_clusters: int
    ratios: Array
    doubt: Array

    @property
    def chosen(self) -> Array:
        """The labels (L,) that were chosen."""
        return self.labels[self.n_clusters]

    @property
    def resolutions(self) -> dict[int, Array]:
        """The labels for one cluster, for the chosen number and for up to twice as many."""
        chosen = self.n_clusters
        counts = {1, chosen, min(2 * chosen, max(self.labels))}
        return {count: self.labels[count] for count in sorted(counts)}


def _spread(values: Array) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def _as_good(excess: Array) -> bool:
    """Tell whether losses that are higher by this (L,) are as good."""
    return bool(excess.mean() <= errors_allowed(len(excess)) * _spread(excess) + RULE.negligible)


def _somebody_worse(excess: Array, doubt: Array, pool: Pool) -> bool:
    """Tell whether a single site does surely worse, by losses that are higher by this (L,).

    Of two lines that differ by d in the mean square, losses differ by d with the variance 4 d / n where the
    noise level is one.
    """
    above = np.maximum(excess, 0.0)
    spread = np.sqrt(4 * above / pool.n_rows + 2 * doubt * doubt)
    bound = norm.isf(RULE.significance / len(excess))
    return bool(np.any((above > bound * spread) & (above > RULE.negligible)))


def search_clusters(pool: Pool, most: int, seed: int, n_clusters: int | None = None) -> MomentSearchResult:
    """Return clusters of the sites; ``n_clusters`` None: as many as it takes."""
    counts = range(1, most + 1)
    # With as many clusters as there may be, what is left is noise.
    losses = held_out_losses(pool, *search_labels(pool, most, seed))
    typical = max(float(np.median(losses)), 1e-12)
    level = np.clip(losses, typical / MOST_LEVEL, MOST_LEVEL * typical)
    result = {count: search_labels(pool, count, seed, level) for count in counts}
    # Less noise than the median is not believed: it would give a site more to say about their number.
    level = np.maximum(level, typical)
    raw = np.array([held_out_losses(pool, *result[count]) for count in counts])
    labels = {count: tidy_labels(result[count][0]) for count in counts}
    # The noise on u'Mu has the spread of that on M times u'u, which is two where slopes are as long as one.
    doubt = 2 * np.sqrt(2.0) * pool.scales / pool.n_rows / level
    ratios = np.minimum(raw / level, MOST_LOSS)
    best = int(ratios.mean(axis=1).argmin())
    # Whom no cluster describes has no say in their number.
    excess = np.where(raw[best] <= MOST_LOSS * level, raw - raw[best], 0.0) / np.maximum(level, raw[best])
    chosen = next(
        k
        for k in range(best + 1)
        if _as_good(ratios[k] - ratios[best]) and not _somebody_worse(excess[k], doubt, pool)
    )
    curve = Curve(
        rule="held-out",
        n_clusters=np.array(counts),
        values=ratios.mean(axis=1),
        chosen=chosen + 1,
        criterion="mean held-out loss by moments, in units of the site's noise (lower is better)",
        spread=np.array([_spread(row) for row in ratios]),
    )
    taken = n_clusters or chosen + 1
    return MomentSearchResult(labels, curve, taken, raw[taken - 1] / level, doubt)
