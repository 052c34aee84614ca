"""Who is unlike the others, in its data or in its model: no count has to be given.

The two differ in the direction of the excess loss. Bad data spoil a column of the loss matrix: nobody's model
predicts those rows as well as their own noise allows (and the model fitted on them is bad as well). A bad
model on good data spoils a row only: the others predict the learner well, its model does not predict them.

Learners whose data were changed in the same way agree with each other and make a cluster of their own.
Without further knowledge it is a coterie like any other; ``trusted`` says which clusters are the right ones,
and everybody outside them is a suspect.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from coterie._arrays import Array
from coterie._options import listed
from coterie.records import Exchange, Partition
from coterie.verdicts.cluster_fit import ClusterFit

LARGEST = "largest"
# A score stands out if it is more than this many times the median score,
MIN_RATIO_TO_MEDIAN = 2.0
# and if its log is more than this many standard deviations above the median of the logs.
MIN_STANDARD_DEVIATIONS = 3.0


@dataclass(frozen=True)
class Outliers:
    """Learners unlike the others.

    Parameters
    ----------
    learner_ids : ndarray of shape (L,)
        The learners that shaped the clusters.
    data : ndarray of bool, shape (L,)
        Whose data disagree.
    model : ndarray of bool, shape (L,)
        Whose model disagrees though the data do not.
    data_scores : ndarray of shape (L,)
        What the best cluster of others loses on the learner's rows, in units of the learner's noise.
    model_scores : ndarray of shape (L,)
        What the learner's model loses on the learners that its data belong with, in units of what is
        usual there; NaN where there is nobody to compare with.
    trusted_clusters : ndarray
        The clusters that were trusted; empty where none was named.
    """

    learner_ids: Array
    data: Array
    model: Array
    data_scores: Array
    model_scores: Array
    trusted_clusters: Array

    @property
    def suspects(self) -> Array:
        """The learners whose data or whose model disagree."""
        return self.learner_ids[self.data | self.model]

    def frame(self) -> dict[str, Array]:
        """Return the table as a dict of columns.

        Returns
        -------
        dict of str to ndarray
            Columns ``learner``, ``data``, ``model``, ``data_score`` and ``model_score``.
        """
        return {
            "learner": self.learner_ids,
            "data": self.data,
            "model": self.model,
            "data_score": self.data_scores,
            "model_score": self.model_scores,
        }


def model_scores(
    exchange: Exchange, partition: Partition, cluster_fit: ClusterFit, block: int = 1024
) -> Array:
    """Return how badly each of L learners' models predicts the learners that its data belong with (L,).

    These are its peers: the others in its cluster, or the members of the nearest cluster for one that is
    alone. The score is the median over peers of the model's loss there, over the loss that is usual there. It
    is infinite for a model without finite losses, NaN without peers. The records are of the same learners in
    the same order; losses are read for ``block`` models at a time.
    """
    n_learners, labels = len(partition.labels), partition.labels
    usual_losses = np.fmin(exchange.noise, cluster_fit.losses.min(axis=1))
    peer_clusters = np.where(np.bincount(labels)[labels] > 1, labels, cluster_fit.nearest_other)
    scores = np.full(n_learners, np.nan)
    # Where only landmarks were exchanged with, they are the peers that can be asked.
    evaluated_on = np.arange(n_learners) if exchange.landmarks is None else exchange.landmarks
    for start in range(0, n_learners, block):
        models = slice(start, min(start + block, n_learners))
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            loss_ratios = exchange.source.tile(models, evaluated_on) / usual_losses[evaluated_on]
        for i in range(models.start, models.stop):
            is_peer = labels == peer_clusters[i]
            is_peer[i] = False
            is_peer &= ~exchange.isolated
            if is_peer[evaluated_on].any():
                scores[i] = np.median(loss_ratios[i - start, is_peer[evaluated_on]])
    scores[exchange.isolated] = np.inf
    return scores


def stand_out(scores: Array) -> Array:
    """Tell which scores (L,) are far above the median; infinite ones are, NaN is not.

    The standard deviation of the logs is estimated from the lower half of the scores, as up to half of them
    may be bad: these would widen the bound that they have to pass. NaN is a learner without a score.
    """
    finite = np.isfinite(scores)
    if not finite.any():
        return np.isinf(scores)
    logs = np.log(np.maximum(scores[finite], np.finfo(float).tiny))
    median = np.median(logs)
    distances_below = median - logs[logs <= median]
    standard_deviation = float(np.sqrt(np.mean(distances_below**2)))
    bound = median + max(np.log(MIN_RATIO_TO_MEDIAN), MIN_STANDARD_DEVIATIONS * standard_deviation)
    outstanding: Array = np.isinf(scores)
    outstanding[finite] = logs > bound
    return outstanding


def bad_models(exchange: Exchange, partition: Partition, cluster_fit: ClusterFit) -> Array:
    """Tell which learners (L,) have good data and a bad model.

    Some cluster of others predicts their rows well, or they have no finite losses; their own model predicts
    their peers far worse than is usual.
    """
    scores = model_scores(exchange, partition, cluster_fit)
    return stand_out(scores) & (cluster_fit.fits.any(axis=1) | exchange.isolated)


def _trusted_clusters(partition: Partition, trusted: Any) -> Array:
    """Return the numbers of the clusters that the user trusts; none where ``trusted`` is None.

    ``trusted`` is ``"largest"``, the id of a learner, or ids: the clusters of these learners.
    """
    if trusted is None:
        return np.empty(0, dtype=int)
    # A learner may have the id "largest".
    if isinstance(trusted, str) and trusted == LARGEST and trusted not in partition.learner_ids.tolist():
        # Clusters are numbered by size: 0 is the largest.
        return np.zeros(1, dtype=int)
    ids = [trusted] if isinstance(trusted, str) or not isinstance(trusted, Iterable) else list(trusted)
    cluster_of = dict(zip(partition.learner_ids.tolist(), partition.labels.tolist(), strict=True))
    ids = [learner.item() if isinstance(learner, np.generic) else learner for learner in ids]
    unknown = [learner for learner in ids if learner not in cluster_of]
    if unknown or not ids:
        reason = f"learner {listed(unknown)} is none" if unknown else "nobody was named"
        raise ValueError(
            "The 'trusted' argument must be None, 'largest' or ids of learners that shaped the clusters: "
            f"{reason}."
        )
    return np.unique([cluster_of[learner] for learner in ids])


def outliers_among(
    exchange: Exchange, partition: Partition, cluster_fit: ClusterFit, trusted: Any = None
) -> Outliers:
    """Find the learners unlike the others; `find_outliers` explains the answer and ``trusted``.

    The records are of the same learners in the same order. Bad data and a bad model show in different places
    of the loss matrix: nobody predicts the bad rows, and the bad model predicts nobody.
    """
    labels = partition.labels
    trusted_clusters = _trusted_clusters(partition, trusted)
    scores = model_scores(exchange, partition, cluster_fit)
    bad_model = stand_out(scores)
    fits_some_cluster = cluster_fit.fits.any(axis=1)
    unrelated = ~cluster_fit.related[labels]
    # Where the largest cluster, number 0, predicts no better than a constant does, nobody need.
    bad_data = ~fits_some_cluster | (unrelated & cluster_fit.related[0])
    if len(trusted_clusters):
        outside = ~np.isin(labels, trusted_clusters)
        fits_trusted = cluster_fit.fits[:, trusted_clusters].any(axis=1)
        # Trusted clusters predict the rows of who stands outside only because of its model.
        bad_data = (bad_data & ~fits_trusted) | (outside & ~(bad_model & fits_trusted))
    bad_data &= ~exchange.isolated
    if len(bad_data) == 1:
        bad_data = np.zeros_like(bad_data)  # there is nobody to disagree with
    with np.errstate(divide="ignore", invalid="ignore"):
        data_scores = cluster_fit.losses.min(axis=1) / exchange.noise
    return Outliers(
        learner_ids=exchange.learner_ids,
        data=bad_data,
        model=bad_model & ~bad_data,
        data_scores=data_scores,
        model_scores=scores,
        trusted_clusters=trusted_clusters,
    )


def find_outliers(model: Any, trusted: Any = None) -> Outliers:
    """Find the learners whose data or whose model disagree with everybody.

    Parameters
    ----------
    model : CoterieRegressor
        Fitted.
    trusted : None, "largest" or ids, default=None
        Clusters that are right: none named, the largest one, or those that hold the learners named.
        Everybody outside trusted clusters is a suspect. With none named, suspects are those whom no
        cluster of others predicts as well as their own noise allows, and those in clusters that predict
        their members no better than a constant does.

    Returns
    -------
    Outliers
        Of the learners that shaped the clusters.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import CoterieRegressor
    >>> from coterie.datasets import make_linear_learners
    >>> from coterie.verdicts import find_outliers
    >>> data = make_linear_learners(n_learners=12, n_truths=1, random_state=0)
    >>> attacked = data.groups == "learner 03"
    >>> y = np.where(attacked, -data.y, data.y)
    >>> model = CoterieRegressor(["ridge"]).fit(data.X, y, groups=data.groups)
    >>> find_outliers(model).suspects.tolist()
    ['learner 03']
    """
    check_is_fitted(model)
    return outliers_among(model.exchange_, model.partition_, model.cluster_fit_, trusted)
