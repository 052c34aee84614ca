"""How each learner stands towards each cluster, and whether it predicts it as well as its own noise allows.

The loss of a cluster's model on a learner, the learner's own contribution left out, is compared row by row
with the learner's own honest loss. Both are clipped as in Refine, so that one wild row does not decide.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from coterie._arrays import Array
from coterie.loss import SQUARED_ERROR, Loss
from coterie.method.claims import beyond_claims, is_beyond
from coterie.method.cluster import Clustering
from coterie.method.refine.losses import LocalLosses
from coterie.records import Collaboration, Partition, Selection
from coterie.rows.ids import positions_of

# A true member is turned away this often; within a fit the rate is shared out among the learners.
FALSE_ALARMS = 0.01
# A thousandth of the noise is no difference, however surely it is measured.
NEGLIGIBLE = 1e-3
STANDARD_ERRORS = 2.0


@dataclass(frozen=True)
class ClusterFit:
    """How learners stand towards clusters.

    Parameters
    ----------
    learner_ids : ndarray of shape (L,)
        The learners.
    losses : ndarray of shape (L, K)
        Mean clipped loss of each cluster on each learner; infinite where nobody else is in the cluster.
    fits : ndarray of bool, shape (L, K)
        Whether the cluster predicts the learner as well as its own noise allows.
    nearest_other : ndarray of shape (L,)
        Of the clusters other than the learner's own, the one that loses least on it; -1 without others.
    related : ndarray of bool, shape (K,)
        Whether the cluster predicts its members better than the mean of their responses does.
    """

    learner_ids: Array
    losses: Array
    fits: Array
    nearest_other: Array
    related: Array

    @classmethod
    def of(cls, learner_ids: Array, labels: Array, losses: Array, fits: Array, related: Array) -> ClusterFit:
        """Return the record from losses and fits of shape (L, K), before clusters of one are looked at.

        A cluster of one predicts its member by the member itself: nobody else does.
        """
        losses, fits, all_learners = losses.copy(), fits.copy(), np.arange(len(labels))
        single = np.bincount(labels)[labels] == 1
        losses[all_learners[single], labels[single]] = np.inf
        fits[all_learners[single], labels[single]] = False
        others = losses.copy()
        others[all_learners, labels] = np.inf
        nearest = np.where(np.isfinite(others).any(axis=1), others.argmin(axis=1), -1)
        return cls(learner_ids, losses, fits, nearest, related)


def paired_excess(
    first: Array, second: Array, starts: Array, sizes: Array, inflation: float = 1.0
) -> tuple[Array, Array]:
    """Return the mean excess of one loss by row over another, and its standard error, by learner.

    ``first`` has shape (..., N), ``second`` (N,); each learner's rows begin at ``starts``. Both results have
    shape (..., L); the standard error of a single row is infinite. ``inflation`` is the factor by which
    dependence between rows inflates the variance of a mean.
    """
    difference = first - second
    mean = np.add.reduceat(difference, starts, axis=-1) / sizes
    spread = np.add.reduceat((difference - np.repeat(mean, sizes, axis=-1)) ** 2, starts, axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.sqrt(inflation * spread / (sizes - 1) / sizes)
    return mean, np.where(sizes > 1, error, np.inf)


def is_worse(mean: Array, error: Array, sizes: Array, noise: Array, rate: float) -> Array:
    """Tell where an excess is significant, one-sided, and more than negligible."""
    bound = student.isf(rate, np.maximum(sizes - 1, 1))
    worse: Array = (mean > bound * error) & (mean > NEGLIGIBLE * noise)
    return worse


@dataclass(frozen=True)
class ClusterComparison:
    """What clusters lose on learners, beside what the learners' own honest models lose.

    ``means`` (K, L) are mean clipped losses of clusters on learners, infinite where nobody is in the cluster.
    ``excess`` (K, L) is the mean excess over the learner's own honest loss, paired over rows, and ``errors``
    its standard error. ``constant_excess`` (L,) is the mean excess of the learner's own cluster over the mean
    of the learner's response, and ``constant_errors`` its standard error. ``beyond`` (K, L) says by how many
    standard deviations clusters lose more than their probabilities claim; None where they claim none.
    """

    means: Array
    excess: Array
    errors: Array
    constant_excess: Array
    constant_errors: Array
    beyond: Array | None = None


def _constant_losses(losses: LocalLosses) -> Array:
    """Return each row's loss under its learner's mean response."""
    learners = losses.learners
    means = learners.mean_by_learner(learners.y.T).T[learners.owner]
    constant = learners.loss.by_row(learners.y - means, losses.clips)
    return constant if learners.weights is None else constant * learners.weights


def compare_with_own(losses: LocalLosses, labels: Array) -> ClusterComparison:
    """Compare what clusters lose on learners whose rows are here with what these lose alone.

    ``labels`` is the partition of all who are labelled; the answer is in the order of ``losses``.
    """
    learners, rows = losses.learners, losses.by_row(labels)
    starts, sizes = learners.offsets[:-1], learners.sizes
    inflation = losses.selection.inflation
    means = np.full((len(rows), len(learners)), np.inf)
    excess, errors = means.copy(), np.zeros_like(means)
    for k in np.flatnonzero(np.isfinite(rows).all(axis=1)):
        excess[k], errors[k] = paired_excess(rows[k], losses.own_losses, starts, sizes, inflation)
        means[k] = np.add.reduceat(rows[k], starts) / sizes
    own_losses = rows[labels[losses.holder], np.arange(len(losses.holder))]
    constant = paired_excess(own_losses, _constant_losses(losses), starts, sizes, inflation)
    residuals = losses.residuals(labels, len(rows))
    beyond = beyond_claims(residuals, learners.weights, starts, learners.loss, inflation)
    return ClusterComparison(means, excess, errors, *constant, beyond)


def _related(comparison: ClusterComparison, labels: Array, noise: Array) -> Array:
    """Tell which clusters predict their members better, beyond two standard errors, than a constant."""
    n_clusters = len(comparison.means)
    total = np.bincount(labels, comparison.constant_excess / noise, minlength=n_clusters)
    squares = (comparison.constant_errors / noise) ** 2
    spread = np.sqrt(np.bincount(labels, squares, minlength=n_clusters))
    related: Array = total < -STANDARD_ERRORS * spread
    return related


def coterie_excess(
    with_coterie: Array, own: Array, clip: float, inflation: float = 1.0, loss: Loss = SQUARED_ERROR
) -> tuple[float, float]:
    """Return how much more a learner's coterie loses on its rows than it does alone, and the standard error.

    Both are honest residuals of shape (n, C), and losses of rows are bounded by ``clip``. The mean is over
    the rows that both predict; without such rows it is infinite.
    """
    both = np.array([with_coterie, own])
    both = both[:, np.isfinite(both).all(axis=(0, 2))]
    if not both.shape[1]:
        return np.inf, 0.0
    theirs, own_losses = loss.by_row(both, clip)
    excess, error = paired_excess(
        theirs, own_losses, np.zeros(1, dtype=int), np.array([len(own_losses)]), inflation
    )
    return float(excess[0]), float(error[0])


def _coterie_excesses(
    selection: Selection, coterie: Collaboration, company: Array, places: Array
) -> tuple[Array, Array, Array, Array | None]:
    """Return excess, standard error and rows behind them for learners at some places, by `coterie_excess`.

    The excess is infinite where there is no company, or where members of a cluster share nothing. Last comes
    by how many standard deviations coteries lose more than their probabilities claim.
    """
    excess, errors, n_rows = np.full(len(places), np.inf), np.zeros(len(places)), np.zeros(len(places))
    beyond = None if coterie.loss.bounds is None else np.zeros(len(places))
    with_coterie = coterie.cluster_residuals
    if with_coterie is None:
        return excess, errors, n_rows, beyond
    for position in np.flatnonzero(company[places] > 0).tolist():
        j = places[position]
        own, clip = selection.residuals[j], selection.clips[j]
        excess[position], errors[position] = coterie_excess(
            with_coterie[j], own, clip, selection.inflation, coterie.loss
        )
        known = np.isfinite(with_coterie[j] + own).all(axis=1)
        n_rows[position] = known.sum()
        if beyond is not None and known.any():
            residuals = with_coterie[j][known]
            result = beyond_claims(residuals, None, np.zeros(1, dtype=int), coterie.loss, selection.inflation)
            beyond[position] = result[0] if result is not None else 0.0
    return excess, errors, n_rows, beyond


def judge_cluster_fit(
    partition: Partition,
    places: Array,
    comparison: ClusterComparison,
    coterie: tuple[Array, Array, Array],
    sizes: Array,
    noise: Array,
    coterie_beyond: Array | None = None,
) -> ClusterFit:
    """Judge from numbers how all learners of a partition stand towards its clusters.

    All arguments behind ``partition`` are those of the M learners at ``places``; others, whose models gave no
    finite losses, fit no cluster. ``coterie`` has how much more each one's coterie, its own rows included,
    loses on it than it does alone, the standard error, and the number of rows; ``coterie_beyond`` has by how
    many standard deviations it loses more than it claims. A learner with many rows among some with few is
    predicted badly by the others alone, yet it loses nothing by their company.
    """
    labels, n, n_compared = partition.labels[places], len(partition.labels), len(comparison.means)
    rate = FALSE_ALARMS / len(labels)
    worse = is_worse(comparison.excess, comparison.errors, sizes, noise, rate)
    worse = worse | is_beyond(comparison.beyond, comparison.excess, comparison.errors, rate)
    losses = np.full((n, partition.n_clusters), np.inf)
    fits, related = np.zeros_like(losses, dtype=bool), np.ones(partition.n_clusters, dtype=bool)
    losses[places, :n_compared], fits[places, :n_compared] = comparison.means.T, ~worse.T
    related[:n_compared] = _related(comparison, labels, noise)
    excess, errors, n_rows = coterie
    company = np.bincount(partition.labels)[labels] - 1
    harmed = is_worse(excess, errors, n_rows, noise, FALSE_ALARMS / n)
    harmed = harmed | is_beyond(coterie_beyond, excess, errors, FALSE_ALARMS / n)
    fits[places, labels] |= (company > 0) & ~harmed
    return ClusterFit.of(partition.learner_ids, partition.labels, losses, fits, related)


def places_of(clustering: Clustering) -> Array:
    """Return where the learners of ``clustering.losses`` stand in the partition."""
    return positions_of(clustering.learner_ids.tolist(), clustering.partition.learner_ids.tolist())


def measure_cluster_fit(clustering: Clustering, selection: Selection, coterie: Collaboration) -> ClusterFit:
    """Measure how all learners of a partition stand towards its clusters.

    Selection and collaboration are in the order of the partition, and so is the answer.
    """
    partition, indices, losses = clustering.partition, places_of(clustering), clustering.losses
    assert losses is not None
    comparison = compare_with_own(losses, partition.labels[indices])
    company = np.bincount(partition.labels)[partition.labels] - 1
    excess, errors, n_rows, beyond = _coterie_excesses(selection, coterie, company, indices)
    sizes, noise = losses.learners.sizes, losses.noise
    excesses = excess, errors, n_rows
    return judge_cluster_fit(partition, indices, comparison, excesses, sizes, noise, beyond)
