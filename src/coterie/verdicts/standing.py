"""How each learner stands towards each cluster, and whether it predicts it as well as its own noise allows.

The loss of a cluster's model on a learner, the learner's own contribution left out, is compared row by row
with the learner's own honest loss. Both are clipped as in Refine, so that one wild row does not decide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from coterie.method.cluster import Clustering
from coterie.method.refine.losses import LocalLosses
from coterie.records import Collaboration, Partition, Selection

Array = NDArray[Any]

# A true member is turned away this often; within a fit the rate is shared out among the learners.
FALSE_ALARMS = 0.01
# A thousandth of the noise is no difference, however surely it is measured.
NEGLIGIBLE = 1e-3
STANDARD_ERRORS = 2.0


@dataclass(frozen=True)
class Standing:
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


def paired_excess(
    first: Array, second: Array, starts: Array, sizes: Array, inflation: float = 1.0
) -> tuple[Array, Array]:
    """Return the mean excess of one row value over another, and its standard error, by learner.

    Parameters
    ----------
    first : ndarray of shape (..., N)
        Losses by row.
    second : ndarray of shape (N,)
        Losses by row, to compare with.
    starts : ndarray of shape (L,)
        First row of each learner.
    sizes : ndarray of shape (L,)
        Rows of each learner.
    inflation : float, default=1.0
        By what factor dependence between rows inflates the variance of a mean.

    Returns
    -------
    mean : ndarray of shape (..., L)
        Mean excess.
    error : ndarray of shape (..., L)
        Its standard error; infinite for a single row.
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
class Comparison:
    """What clusters lose on learners, beside what the learners' own honest models lose.

    Parameters
    ----------
    means : ndarray of shape (K, L)
        Mean clipped loss of each cluster on each learner; infinite where nobody is in the cluster.
    excess : ndarray of shape (K, L)
        Mean excess over the learner's own honest loss, paired over rows.
    errors : ndarray of shape (K, L)
        Its standard error.
    constant_excess : ndarray of shape (L,)
        Mean excess of the learner's own cluster over the mean of the learner's response.
    constant_errors : ndarray of shape (L,)
        Its standard error.
    """

    means: Array
    excess: Array
    errors: Array
    constant_excess: Array
    constant_errors: Array


def _constant_losses(losses: LocalLosses) -> Array:
    learners = losses.learners
    means = learners.mean_by_learner(learners.y)[learners.owner]
    constant: Array = np.minimum((learners.y - means) ** 2, losses.clips)
    return constant if learners.weights is None else constant * learners.weights


def compare_with_alone(losses: LocalLosses, labels: Array) -> Comparison:
    """Compare what clusters lose on learners whose rows are here with what these lose alone.

    Parameters
    ----------
    losses : LocalLosses
        Answers what clusters lose.
    labels : ndarray
        The partition of all who are labelled.

    Returns
    -------
    Comparison
        Of the learners of ``losses``, in their order.
    """
    learners, rows = losses.learners, losses.by_row(labels)
    starts, sizes = learners.offsets[:-1], learners.sizes
    inflation = losses.selection.inflation
    means = np.full((len(rows), len(learners)), np.inf)
    excess, errors = means.copy(), np.zeros_like(means)
    for k in np.flatnonzero(np.isfinite(rows).all(axis=1)):
        excess[k], errors[k] = paired_excess(rows[k], losses.own_losses, starts, sizes, inflation)
        means[k] = np.add.reduceat(rows[k], starts) / sizes
    mine = rows[labels[losses.holder], np.arange(len(losses.holder))]
    constant = paired_excess(mine, _constant_losses(losses), starts, sizes, inflation)
    return Comparison(means, excess, errors, *constant)


def _related(comparison: Comparison, labels: Array, noise: Array) -> Array:
    """Tell which clusters predict their members better, beyond two standard errors, than a constant."""
    n_clusters = len(comparison.means)
    total = np.bincount(labels, comparison.constant_excess / noise, minlength=n_clusters)
    squares = (comparison.constant_errors / noise) ** 2
    spread = np.sqrt(np.bincount(labels, squares, minlength=n_clusters))
    related: Array = total < -STANDARD_ERRORS * spread
    return related


def coterie_excess(together: Array, alone: Array, clip: float, inflation: float = 1.0) -> tuple[float, float]:
    """Return how much more a learner's coterie loses on its rows than it does alone, and the standard error.

    Parameters
    ----------
    together : ndarray of shape (n,)
        Honest residuals with the coterie.
    alone : ndarray of shape (n,)
        Honest residuals alone.
    clip : float
        Bound for squared residuals.
    inflation : float, default=1.0
        By what factor dependence between rows inflates the variance of a mean.

    Returns
    -------
    excess : float
        Mean over the rows that both predict; infinite without such rows.
    error : float
        Its standard error.
    """
    both = np.array([together, alone])
    both = both[:, np.isfinite(both).all(axis=0)]
    if not both.shape[1]:
        return np.inf, 0.0
    theirs, mine = np.minimum(both**2, clip)
    excess, error = paired_excess(theirs, mine, np.zeros(1, dtype=int), np.array([len(mine)]), inflation)
    return float(excess[0]), float(error[0])


def _fits_with_coterie(selection: Selection, coterie: Collaboration, company: Array) -> Array:
    """Tell whose coterie, the learner's own rows included, predicts it as well as its noise allows.

    A learner with many rows among some with few is predicted badly by the others alone, yet it loses nothing
    by their company.
    """
    fits = np.zeros(len(company), dtype=bool)
    together = coterie.cluster_residuals
    if together is None:
        return fits
    for j in np.flatnonzero(company > 0).tolist():
        own, clip = selection.residuals[j], selection.clips[j]
        excess, error = coterie_excess(together[j], own, clip, selection.inflation)
        n_rows = np.array(np.isfinite(together[j] + selection.residuals[j]).sum())
        fits[j] = not is_worse(
            np.array(excess), np.array(error), n_rows, selection.noise[j], FALSE_ALARMS / len(company)
        )
    return fits


def measure_standing(losses: LocalLosses, labels: Array) -> Standing:
    """Compare what each cluster loses on each learner with what the learner's own honest model loses.

    Parameters
    ----------
    losses : LocalLosses
        Answers what clusters lose.
    labels : ndarray of shape (L,)
        The partition, in the order of ``losses``.

    Returns
    -------
    Standing
        In the order of ``losses``.
    """
    learners = losses.learners
    comparison = compare_with_alone(losses, labels)
    return judge_standing(learners.ids, labels, comparison, learners.sizes, losses.noise)


def judge_standing(
    learner_ids: Array, labels: Array, comparison: Comparison, sizes: Array, noise: Array
) -> Standing:
    """Judge how learners stand towards clusters from the numbers of a comparison.

    Parameters
    ----------
    learner_ids : ndarray of shape (L,)
        The learners.
    labels : ndarray of shape (L,)
        Their clusters.
    comparison : Comparison
        Of all of them.
    sizes : ndarray of shape (L,)
        Rows of each learner.
    noise : ndarray of shape (L,)
        Noise level of each learner.

    Returns
    -------
    Standing
        In the order of ``learner_ids``.
    """
    everybody, mean = np.arange(len(labels)), comparison.means.copy()
    rate = FALSE_ALARMS / len(labels)
    worse = is_worse(comparison.excess, comparison.errors, sizes, noise, rate)
    alone = np.bincount(labels, minlength=len(mean))[labels] == 1
    # A cluster of one predicts its member by the member itself: nobody else does.
    mean[labels[alone], everybody[alone]] = np.inf
    worse[labels[alone], everybody[alone]] = True
    others = mean.copy()
    others[labels, everybody] = np.inf
    nearest = np.where(np.isfinite(others).any(axis=0), others.argmin(axis=0), -1)
    return Standing(learner_ids, mean.T, ~worse.T, nearest, _related(comparison, labels, noise))


def places_of(clustering: Clustering) -> Array:
    """Return where the learners of ``clustering.losses`` stand in the partition."""
    place = {learner: p for p, learner in enumerate(clustering.partition.learner_ids.tolist())}
    return np.array([place[learner] for learner in clustering.learner_ids.tolist()], dtype=int)


def standing_in(clustering: Clustering, selection: Selection, coterie: Collaboration) -> Standing:
    """Measure how all learners of a partition stand towards its clusters.

    Parameters
    ----------
    clustering : Clustering
        With losses.
    selection : Selection
        Of the learners, in the order of the partition.
    coterie : Collaboration
        Of the learners, in the order of the partition.

    Returns
    -------
    Standing
        In the order of the partition. A learner whose model gave no finite losses fits no cluster.
    """
    partition, places = clustering.partition, places_of(clustering)
    assert clustering.losses is not None
    known = measure_standing(clustering.losses, partition.labels[places])
    company = np.bincount(partition.labels)[partition.labels] - 1
    return standing_of_all(partition, places, known, _fits_with_coterie(selection, coterie, company))


def standing_of_all(partition: Partition, places: Array, known: Standing, with_coterie: Array) -> Standing:
    """Put learners back whose models gave no finite losses.

    Parameters
    ----------
    partition : Partition
        Of all learners.
    places : ndarray of shape (M,)
        Where the learners of ``known`` stand in the partition.
    known : Standing
        Of the learners whose losses are finite.
    with_coterie : ndarray of bool, shape (L,)
        Whose coterie, its own part included, predicts it as well as its noise allows.

    Returns
    -------
    Standing
        In the order of the partition; learners that were put back fit no cluster.
    """
    n, n_clusters = len(partition.labels), partition.n_clusters
    losses, fits = np.full((n, n_clusters), np.inf), np.zeros((n, n_clusters), dtype=bool)
    nearest, related = np.full(n, -1), np.ones(n_clusters, dtype=bool)
    losses[places, : known.losses.shape[1]] = known.losses
    fits[places, : known.fits.shape[1]] = known.fits
    nearest[places] = known.nearest_other
    related[: len(known.related)] = known.related
    fits[np.arange(n), partition.labels] |= with_coterie
    return Standing(partition.learner_ids, losses, fits, nearest, related)
