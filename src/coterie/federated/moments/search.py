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

# Mean squared errors count up to this multiple of the noise level: one site that nobody can predict must not
# decide.
MAX_LOSS_RATIO = 4.0
# Noise levels are within a quarter of the median and four times the median.
MAX_LEVEL_RATIO = 4.0


def _members(labels: Array, n_clusters: int) -> Array:
    return membership(labels, n_clusters, np.ones(len(labels)))


def _spread_out(moments: Array, own: Array, n_clusters: int, generator: np.random.Generator) -> Array:
    """Return starting labels (L,): each site belongs to the drawn site whose line predicts its rows best.

    ``n_clusters`` sites are drawn as in k-means++, with probabilities proportional to their losses under the
    lines ``own`` (L, q - 1) drawn so far. So they are far from each other.
    """
    chosen_sites = [int(generator.integers(len(own)))]
    losses = losses_of(own[chosen_sites], moments)
    while len(chosen_sites) < n_clusters:
        # Noise on moments may make losses negative.
        distances = np.maximum(losses.min(axis=0), 0.0)
        probabilities = distances / distances.sum() if distances.sum() > 0 else None
        chosen_sites.append(int(generator.choice(len(own), p=probabilities)))
        losses = np.vstack([losses, losses_of(own[chosen_sites[-1:]], moments)])
    labels: Array = losses.argmin(axis=0)
    return labels


def search_labels(pool: Pool, n_clusters: int, seed: int, level: Array | None = None) -> tuple[Array, Array]:
    """Return the labels (L,) with the lowest loss of many starts of K-models, and who counts in lines (L,).

    Each round fits a line per cluster and moves every site to the line that predicts it best. Where noise
    levels (L,) are known, a site's loss counts up to a bound, and beyond it the site is part of no line.
    Clusters may be empty. Nobody counts by more rows than the median site has.
    """
    moments, scales = pool.moments, pool.scales * np.sqrt(2.0)
    loss_bound = np.inf if level is None else MAX_LOSS_RATIO * level
    weights = np.minimum(pool.n_rows, np.median(pool.n_rows))
    generator = np.random.default_rng([seed, n_clusters])
    all_learners = np.arange(len(scales))
    own_lines = lines_of(np.eye(len(scales)), moments, scales)
    even_labels = all_learners % n_clusters
    best_labels, best_counted, lowest_loss = np.zeros_like(even_labels), np.ones(len(even_labels)), np.inf
    for attempt in range(SEARCH.starts if n_clusters > 1 else 0):
        # Starts alternate: random clusters of even size, and clusters around sites that are far apart.
        if attempt % 2:
            labels = generator.permutation(even_labels)
        else:
            labels = _spread_out(moments, own_lines, n_clusters, generator)
        counted = np.ones(len(labels))
        for _ in range(SEARCH.rounds):
            member = _members(labels, n_clusters) * counted
            losses = losses_of(lines_of(member, moments, scales), moments) / pool.n_rows
            previous_labels, labels = labels, losses.argmin(axis=0)
            previous_counted, counted = counted, (losses[labels, all_learners] <= loss_bound).astype(float)
            if (previous_labels == labels).all() and (previous_counted == counted).all():
                break
        loss = float(np.minimum(losses.min(axis=0), loss_bound) @ weights)
        if loss < lowest_loss:
            best_labels, best_counted, lowest_loss = labels, counted, loss
    return best_labels, best_counted


def held_out_losses(pool: Pool, labels: Array, counted: Array) -> Array:
    """Return the mean squared error (L,) of each site on rows that chose neither its cluster nor the line.

    Lines are fitted on one half of all sites' rows. On it each site picks its best cluster, and the loss is
    that on its other half; then the halves swap. ``counted`` (L,) says who is part of lines.
    """
    member = _members(labels, int(labels.max()) + 1) * counted
    all_learners = np.arange(len(labels))
    losses = np.zeros(len(labels))
    # One half fits lines and picks clusters, the other judges; then they swap.
    for training, held_out in (pool.halves, pool.halves[::-1]):
        lines = lines_of(member, training, pool.scales)
        # A cluster with nobody in it has a line of zeros: no site may pick it.
        penalty_of_empty = np.where(member.any(axis=1), 0.0, np.inf)[:, None]
        best_clusters = (losses_of(lines, training) + penalty_of_empty).argmin(axis=0)
        losses += losses_of(lines, held_out)[best_clusters, all_learners]
    means: Array = losses / pool.n_rows
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


def _spread(samples: Array) -> float:
    """Return the standard error of the mean of samples (L,); zero of a single one."""
    return float(samples.std(ddof=1) / np.sqrt(len(samples))) if len(samples) > 1 else 0.0


def _as_good(excess: Array) -> bool:
    """Tell whether losses that are higher by ``excess`` (L,) are as good as the lowest.

    They are where the mean excess is within the allowed number of standard errors.
    """
    return bool(excess.mean() <= errors_allowed(len(excess)) * _spread(excess) + RULE.negligible)


def _somebody_worse(excess: Array, doubt: Array, pool: Pool) -> bool:
    """Tell whether a single site does surely worse, by losses that are higher by ``excess`` (L,).

    The test is one-sided with the Bonferroni correction for L sites. Of two lines that differ by d in the
    mean square, losses differ by d with the variance 4 d / n, and noise on the moments adds ``doubt`` (L,).
    """
    positive_excess = np.maximum(excess, 0.0)
    standard_errors = np.sqrt(4 * positive_excess / pool.n_rows + 2 * doubt * doubt)
    critical_value = norm.isf(RULE.significance / len(excess))
    return bool(
        np.any((positive_excess > critical_value * standard_errors) & (positive_excess > RULE.negligible))
    )


def search_clusters(pool: Pool, most: int, seed: int, n_clusters: int | None = None) -> MomentSearchResult:
    """Return clusters of the sites for each number up to ``most``, and the number that is taken.

    It is the smallest number whose held-out losses are as good as the lowest and under which no single site
    does surely worse; or ``n_clusters``, where it is given. This is the held-out rule of a local fit, on
    halves of everybody's rows.
    """
    counts = range(1, most + 1)
    # With as many clusters as there may be, what is left is noise.
    finest_losses = held_out_losses(pool, *search_labels(pool, most, seed))
    typical = max(float(np.median(finest_losses)), 1e-12)
    level = np.clip(finest_losses, typical / MAX_LEVEL_RATIO, MAX_LEVEL_RATIO * typical)
    labels_and_counted = {count: search_labels(pool, count, seed, level) for count in counts}
    # Less noise than the median is not believed: it would give a site more to say about their number.
    level = np.maximum(level, typical)
    losses = np.array([held_out_losses(pool, *labels_and_counted[count]) for count in counts])
    labels = {count: tidy_labels(labels_and_counted[count][0]) for count in counts}
    # The noise on u'Mu has the spread of that on M times u'u, which is two where slopes are as long as one.
    doubt = 2 * np.sqrt(2.0) * pool.scales / pool.n_rows / level
    ratios = np.minimum(losses / level, MAX_LOSS_RATIO)
    best_index = int(ratios.mean(axis=1).argmin())
    # Whom no cluster describes has no say in their number.
    excess = np.where(
        losses[best_index] <= MAX_LOSS_RATIO * level, losses - losses[best_index], 0.0
    ) / np.maximum(level, losses[best_index])
    chosen_index = next(
        index
        for index in range(best_index + 1)
        if _as_good(ratios[index] - ratios[best_index]) and not _somebody_worse(excess[index], doubt, pool)
    )
    curve = Curve(
        rule="held-out",
        n_clusters=np.array(counts),
        values=ratios.mean(axis=1),
        chosen=chosen_index + 1,
        criterion="mean held-out loss by moments, in units of the site's noise (lower is better)",
        spread=np.array([_spread(row) for row in ratios]),
    )
    # A number that the user gives takes the place of the chosen one.
    taken_count = n_clusters or chosen_index + 1
    return MomentSearchResult(labels, curve, taken_count, losses[taken_count - 1] / level, doubt)
