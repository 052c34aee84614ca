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

from coterie.how_many import Clustering
from coterie.kernels.together import LocalLosses
from coterie.records import Collaboration, Selection

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


def paired_excess(first: Array, second: Array, starts: Array, sizes: Array) -> tuple[Array, Array]:
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
        error = np.sqrt(spread / (sizes - 1) / sizes)
    return mean, np.where(sizes > 1, error, np.inf)


def is_worse(mean: Array, error: Array, sizes: Array, noise: Array, rate: float) -> Array:
    """Tell where an excess is significant, one-sided, and more than negligible."""
    bound = student.isf(rate, np.maximum(sizes - 1, 1))
    worse: Array = (mean > bound * error) & (mean > NEGLIGIBLE * noise)
    return worse


def _related(losses: LocalLosses, labels: Array, rows: Array) -> Array:
    """Tell which clusters predict their members better, beyond two standard errors, than a constant."""
    learners = losses.learners
    means = learners.mean_by_learner(learners.y)[learners.owner]
    constant = np.minimum((learners.y - means) ** 2, losses.clips)
    if learners.weights is not None:
        constant = constant * learners.weights
    mine = rows[labels[learners.owner], np.arange(len(learners.owner))]
    excess, error = paired_excess(mine, constant, learners.offsets[:-1], learners.sizes)
    total = np.bincount(labels, excess / losses.noise, minlength=len(rows))
    spread = np.sqrt(np.bincount(labels, (error / losses.noise) ** 2, minlength=len(rows)))
    related: Array = total < -STANDARD_ERRORS * spread
    return related


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
        both = np.array([together[j], selection.residuals[j]])
        both = both[:, np.isfinite(both).all(axis=0)]
        if not both.shape[1]:
            continue
        theirs, mine = np.minimum(both**2, selection.clips[j])
        sizes = np.array([len(mine)])
        excess, error = paired_excess(theirs, mine, np.zeros(1, dtype=int), sizes)
        worse = is_worse(excess, error, sizes, selection.noise[j], FALSE_ALARMS / len(company))
        fits[j] = not worse[0]
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
    rows = losses.by_row(labels)
    n_clusters, everybody = len(rows), np.arange(len(labels))
    mean = np.full((n_clusters, len(labels)), np.inf)
    worse = np.ones((n_clusters, len(labels)), dtype=bool)
    filled = np.isfinite(rows).all(axis=1)
    starts, sizes = learners.offsets[:-1], learners.sizes
    for k in np.flatnonzero(filled):
        excess, error = paired_excess(rows[k], losses.own_losses, starts, sizes)
        worse[k] = is_worse(excess, error, sizes, losses.noise, FALSE_ALARMS / len(labels))
        mean[k] = np.add.reduceat(rows[k], starts) / sizes
    alone = np.bincount(labels, minlength=n_clusters)[labels] == 1
    # A cluster of one predicts its member by the member itself: nobody else does.
    mean[labels[alone], everybody[alone]] = np.inf
    worse[labels[alone], everybody[alone]] = True
    others = mean.copy()
    others[labels, everybody] = np.inf
    nearest = np.where(np.isfinite(others).any(axis=0), others.argmin(axis=0), -1)
    return Standing(learners.ids, mean.T, ~worse.T, nearest, _related(losses, labels, rows))


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
    n, n_clusters = len(partition.labels), partition.n_clusters
    losses, fits = np.full((n, n_clusters), np.inf), np.zeros((n, n_clusters), dtype=bool)
    nearest, related = np.full(n, -1), np.ones(n_clusters, dtype=bool)
    losses[places, : known.losses.shape[1]] = known.losses
    fits[places, : known.fits.shape[1]] = known.fits
    nearest[places] = known.nearest_other
    related[: len(known.related)] = known.related
    company = np.bincount(partition.labels)[partition.labels] - 1
    fits[np.arange(n), partition.labels] |= _fits_with_coterie(selection, coterie, company)
    return Standing(partition.learner_ids, losses, fits, nearest, related)
