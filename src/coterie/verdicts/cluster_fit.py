"""How each learner stands towards each cluster, and whether it predicts it as well as its own noise allows.

The loss of a cluster's model on a learner, the learner's own contribution left out, is compared row by row
with the loss of the learner's own model on held-out rows. Both are clipped as in Refine, so that one wild row
does not decide.
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
NEGLIGIBLE_SHARE_OF_NOISE = 1e-3
# A cluster predicts better than a constant if it does by more than this many standard errors.
MIN_STANDARD_ERRORS = 2.0


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
        """Return the record from losses and fits of shape (L, K) in which own models may still take part.

        A cluster of one predicts its member by the member's own model. No other learner speaks for it then:
        the loss becomes infinite, and the fit false.
        """
        losses, fits, all_learners = losses.copy(), fits.copy(), np.arange(len(labels))
        single = np.bincount(labels)[labels] == 1
        losses[all_learners[single], labels[single]] = np.inf
        fits[all_learners[single], labels[single]] = False
        losses_elsewhere = losses.copy()
        losses_elsewhere[all_learners, labels] = np.inf
        has_other = np.isfinite(losses_elsewhere).any(axis=1)
        return cls(
            learner_ids=learner_ids,
            losses=losses,
            fits=fits,
            nearest_other=np.where(has_other, losses_elsewhere.argmin(axis=1), -1),
            related=related,
        )


def paired_excess(
    first: Array, second: Array, starts: Array, sizes: Array, inflation: float = 1.0
) -> tuple[Array, Array]:
    """Return the mean excess of one loss by row over another, and its standard error, by learner.

    ``first`` has shape (..., N), ``second`` (N,); each learner's ``sizes`` (L,) rows begin at ``starts``
    (L,). Both results have shape (..., L); the standard error of a single row is infinite. ``inflation`` is
    the factor by which dependence between rows inflates the variance of a mean.
    """
    differences = first - second
    means = np.add.reduceat(differences, starts, axis=-1) / sizes
    deviations = differences - np.repeat(means, sizes, axis=-1)
    sums_of_squares = np.add.reduceat(deviations**2, starts, axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = np.sqrt(inflation * sums_of_squares / (sizes - 1) / sizes)
    return means, np.where(sizes > 1, errors, np.inf)


def is_worse(mean: Array, error: Array, sizes: Array, noise: Array, rate: float) -> Array:
    """Tell where a mean excess of losses is significant (one-sided t test) and more than negligible.

    ``mean`` and its standard ``error`` (..., L) are over ``sizes`` (L,) rows; ``noise`` (L,) is the usual
    loss. ``rate`` is the probability of a false alarm for each learner.
    """
    t_quantiles = student.isf(rate, np.maximum(sizes - 1, 1))
    worse: Array = (mean > t_quantiles * error) & (mean > NEGLIGIBLE_SHARE_OF_NOISE * noise)
    return worse


@dataclass(frozen=True)
class ClusterComparison:
    """What clusters lose on learners, beside what the learners' own models lose on held-out rows.

    ``means`` (K, L) are mean clipped losses of clusters on learners, infinite where nobody is in the cluster.
    ``excess`` (K, L) is the mean excess over the loss of the learner's own model on held-out rows, paired
    over rows, and ``errors`` its standard error. ``constant_excess`` (L,) is the mean excess of the learner's
    own cluster over the mean of the learner's response, and ``constant_errors`` its standard error.
    ``beyond`` (K, L) says by how many standard deviations clusters lose more than their probabilities claim;
    None where they claim none.
    """

    means: Array
    excess: Array
    errors: Array
    constant_excess: Array
    constant_errors: Array
    beyond: Array | None = None


def _constant_losses(losses: LocalLosses) -> Array:
    """Return each row's loss (N,) if its learner's mean response were predicted, clipped and weighted.

    A cluster that does no better than this constant says nothing of its members. Clips are bounds on losses.
    """
    learners = losses.learners
    mean_of_row = learners.mean_by_learner(learners.y.T).T[learners.owner]
    constant_losses = learners.loss.by_row(learners.y - mean_of_row, losses.clips)
    return constant_losses if learners.weights is None else constant_losses * learners.weights


def compare_with_own(losses: LocalLosses, labels: Array) -> ClusterComparison:
    """Compare, row by row, what K clusters lose on L learners with what the learners lose alone.

    ``losses`` has the learners' rows, and the answer is in its order. ``labels`` is the partition of all who
    are labelled, also of those whose rows lie elsewhere. Clusters without members keep infinite losses.
    """
    learners, cluster_losses = losses.learners, losses.by_row(labels)
    starts, sizes = learners.offsets[:-1], learners.sizes
    inflation = losses.selection.inflation
    means = np.full((len(cluster_losses), len(learners)), np.inf)
    excess, errors = means.copy(), np.zeros_like(means)
    for k in np.flatnonzero(np.isfinite(cluster_losses).all(axis=1)):
        excess[k], errors[k] = paired_excess(cluster_losses[k], losses.own_losses, starts, sizes, inflation)
        means[k] = np.add.reduceat(cluster_losses[k], starts) / sizes
    # Of each row the loss of the cluster that its learner is in.
    home_losses = cluster_losses[labels[losses.holder], np.arange(len(losses.holder))]
    constant_excess, constant_errors = paired_excess(
        home_losses, _constant_losses(losses), starts, sizes, inflation
    )
    residuals = losses.residuals(labels, len(cluster_losses))
    return ClusterComparison(
        means=means,
        excess=excess,
        errors=errors,
        constant_excess=constant_excess,
        constant_errors=constant_errors,
        beyond=beyond_claims(residuals, learners.weights, starts, learners.loss, inflation),
    )


def _related(comparison: ClusterComparison, labels: Array, noise: Array) -> Array:
    """Tell which clusters (K,) predict their members significantly better than a constant does.

    ``labels`` (L,) and ``noise`` (L,), the usual loss, are of the learners. Members' excess losses over their
    mean response are added up in units of their noise; a cluster is related if the sum is surely below zero.
    """
    n_clusters = len(comparison.means)
    total_excess = np.bincount(labels, comparison.constant_excess / noise, minlength=n_clusters)
    squared_errors = (comparison.constant_errors / noise) ** 2
    error_of_total = np.sqrt(np.bincount(labels, squared_errors, minlength=n_clusters))
    related: Array = total_excess < -MIN_STANDARD_ERRORS * error_of_total
    return related


def coterie_excess(
    with_coterie: Array, own: Array, clip: float, inflation: float = 1.0, loss: Loss = SQUARED_ERROR
) -> tuple[float, float]:
    """Return how much more a learner's coterie loses on its rows than it does alone, and its standard error.

    ``with_coterie`` and ``own`` are out-of-fold residuals (n, C); losses of rows are bounded by ``clip``. The
    mean is over the rows that both predict; without such rows it is infinite.
    """
    residuals = np.array([with_coterie, own])
    residuals = residuals[:, np.isfinite(residuals).all(axis=(0, 2))]
    if not residuals.shape[1]:
        return np.inf, 0.0
    coterie_losses, own_losses = loss.by_row(residuals, clip)
    one_start, one_size = np.zeros(1, dtype=int), np.array([len(own_losses)])
    excess, error = paired_excess(coterie_losses, own_losses, one_start, one_size, inflation)
    return float(excess[0]), float(error[0])


def _coterie_excesses(
    selection: Selection, coterie: Collaboration, n_companions: Array, places: Array
) -> tuple[Array, Array, Array, Array | None]:
    """Return how much more coteries lose than M learners alone: excess, standard error, rows, each (M,).

    The learners are at ``places`` (M,) of the selection; ``n_companions`` (L,) counts others in each one's
    cluster. The excess is infinite without others, or where a cluster shares no model. Last comes (M,) by how
    many standard deviations coteries lose more than their probabilities claim; None where they claim none.
    """
    excess, errors, n_rows = np.full(len(places), np.inf), np.zeros(len(places)), np.zeros(len(places))
    beyond = None if coterie.loss.bounds is None else np.zeros(len(places))
    residuals_with_coterie = coterie.cluster_residuals
    if residuals_with_coterie is None:
        return excess, errors, n_rows, beyond
    for position in np.flatnonzero(n_companions[places] > 0).tolist():
        j = places[position]
        with_coterie, own = residuals_with_coterie[j], selection.residuals[j]
        excess[position], errors[position] = coterie_excess(
            with_coterie, own, selection.clips[j], selection.inflation, coterie.loss
        )
        predicted_by_both = np.isfinite(with_coterie + own).all(axis=1)
        n_rows[position] = predicted_by_both.sum()
        if beyond is not None and predicted_by_both.any():
            deviations = beyond_claims(
                with_coterie[predicted_by_both],
                None,
                np.zeros(1, dtype=int),
                coterie.loss,
                selection.inflation,
            )
            beyond[position] = deviations[0] if deviations is not None else 0.0
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
    # Clusters whose only learner gave no finite losses have the last numbers, and are not compared.
    labels, n, n_compared = partition.labels[places], len(partition.labels), len(comparison.means)
    rate = FALSE_ALARMS / len(labels)
    worse = is_worse(comparison.excess, comparison.errors, sizes, noise, rate)
    worse = worse | is_beyond(comparison.beyond, comparison.excess, comparison.errors, rate)
    losses = np.full((n, partition.n_clusters), np.inf)
    fits, related = np.zeros_like(losses, dtype=bool), np.ones(partition.n_clusters, dtype=bool)
    losses[places, :n_compared], fits[places, :n_compared] = comparison.means.T, ~worse.T
    related[:n_compared] = _related(comparison, labels, noise)
    excess, errors, n_rows = coterie
    n_companions = np.bincount(partition.labels)[labels] - 1
    harmed = is_worse(excess, errors, n_rows, noise, FALSE_ALARMS / n)
    harmed = harmed | is_beyond(coterie_beyond, excess, errors, FALSE_ALARMS / n)
    fits[places, labels] |= (n_companions > 0) & ~harmed
    return ClusterFit.of(partition.learner_ids, partition.labels, losses, fits, related)


def places_of(clustering: Clustering) -> Array:
    """Return the positions in the partition of the learners with finite losses, in the order of these."""
    return positions_of(clustering.learner_ids.tolist(), clustering.partition.learner_ids.tolist())


def measure_cluster_fit(clustering: Clustering, selection: Selection, coterie: Collaboration) -> ClusterFit:
    """Measure how all learners of a partition stand towards its clusters.

    Selection and collaboration are in the order of the partition, and so is the answer.
    """
    partition, indices, losses = clustering.partition, places_of(clustering), clustering.losses
    assert losses is not None
    comparison = compare_with_own(losses, partition.labels[indices])
    n_companions = np.bincount(partition.labels)[partition.labels] - 1
    excess, errors, n_rows, beyond = _coterie_excesses(selection, coterie, n_companions, indices)
    return judge_cluster_fit(
        partition=partition,
        places=indices,
        comparison=comparison,
        coterie=(excess, errors, n_rows),
        sizes=losses.learners.sizes,
        noise=losses.noise,
        coterie_beyond=beyond,
    )
