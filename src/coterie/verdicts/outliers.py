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
# A model is bad when on its peers it loses more than this many times what the typical model loses there,
WORSE = 2.0
# and more than this many standard deviations, in the log, above it.
DEVIATIONS = 3.0


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
    """Return how badly each learner's model predicts those that its data belong with, of shape (L,).

    The score is the median over the peers of the model's loss, in units of the lower of the peer's noise and
    its cluster's loss on it; infinite for a model without finite losses, NaN where there is no peer. Losses
    are read in blocks of models. The records are of the same learners in the same order.
    """
    n, labels = len(partition.labels), partition.labels
    usual = np.fmin(exchange.noise, cluster_fit.losses.min(axis=1))
    # The cluster that each learner's data belong with: its own, or the nearest for one alone.
    clusters_compared = np.where(np.bincount(labels)[labels] > 1, labels, cluster_fit.nearest_other)
    scores = np.full(n, np.nan)
    # Where only landmarks were exchanged with, they are the peers that can be asked.
    exchanged = np.arange(n) if exchange.landmarks is None else exchange.landmarks
    for start in range(0, n, block):
        models = slice(start, min(start + block, n))
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            ratios = exchange.source.tile(models, exchanged) / usual[exchanged]
        for i in range(models.start, models.stop):
            peers = labels == clusters_compared[i]
            peers[i] = False
            peers &= ~exchange.isolated
            if peers[exchanged].any():
                scores[i] = np.median(ratios[i - start, peers[exchanged]])
    scores[exchange.isolated] = np.inf
    return scores


def stand_out(scores: Array) -> Array:
    """Tell which scores are far above what is typical, measured by the lower half of them.

    Up to half of the scores may be bad: the upper half does not enter the spread.
    """
    known = np.isfinite(scores)
    if not known.any():
        return np.isinf(scores)
    logs = np.log(np.maximum(scores[known], np.finfo(float).tiny))
    middle = np.median(logs)
    lower = middle - logs[logs <= middle]
    bound = middle + max(np.log(WORSE), DEVIATIONS * float(np.sqrt(np.mean(lower**2))))
    outstanding: Array = np.isinf(scores)
    outstanding[known] = logs > bound
    return outstanding


def bad_models(exchange: Exchange, partition: Partition, cluster_fit: ClusterFit) -> Array:
    """Tell whose model disagrees with everybody though its data do not, of shape (L,)."""
    scores = model_scores(exchange, partition, cluster_fit)
    return stand_out(scores) & (cluster_fit.fits.any(axis=1) | exchange.isolated)


def _trusted_clusters(partition: Partition, trusted: Any) -> Array:
    """Return the clusters of the learners that the user trusts."""
    if trusted is None:
        return np.empty(0, dtype=int)
    if isinstance(trusted, str) and trusted == LARGEST and trusted not in partition.learner_ids.tolist():
        return np.zeros(1, dtype=int)
    wanted = [trusted] if isinstance(trusted, str) or not isinstance(trusted, Iterable) else list(trusted)
    label = dict(zip(partition.learner_ids.tolist(), partition.labels.tolist(), strict=True))
    wanted = [learner.item() if isinstance(learner, np.generic) else learner for learner in wanted]
    unknown = [learner for learner in wanted if learner not in label]
    if unknown or not wanted:
        result = f"learner {listed(unknown)} is none" if unknown else "nobody was named"
        raise ValueError(
            "The 'trusted' argument must be None, 'largest' or ids of learners that shaped the clusters: "
            f"{result}."
        )
    return np.unique([label[learner] for learner in wanted])


def outliers_among(
    exchange: Exchange, partition: Partition, cluster_fit: ClusterFit, trusted: Any = None
) -> Outliers:
    """Find the learners unlike the others, from records of the same learners in the same order."""
    labels = partition.labels
    clusters = _trusted_clusters(partition, trusted)
    scores = model_scores(exchange, partition, cluster_fit)
    bad_model = stand_out(scores)
    fits = cluster_fit.fits.any(axis=1)
    unrelated = ~cluster_fit.related[labels]
    # Where the largest cluster has no relation to show, lacking one makes nobody an outlier.
    data = ~fits | (unrelated & cluster_fit.related[0])
    if len(clusters):
        outside = ~np.isin(labels, clusters)
        # Whoever stands outside only because of its model is known by its rows: the trusted predict them.
        only_model = bad_model & cluster_fit.fits[:, clusters].any(axis=1)
        data = (data & ~cluster_fit.fits[:, clusters].any(axis=1)) | (outside & ~only_model)
    data &= ~exchange.isolated
    if len(data) == 1:
        data = np.zeros_like(data)  # there is nobody to disagree with
    with np.errstate(divide="ignore", invalid="ignore"):
        data_scores = cluster_fit.losses.min(axis=1) / exchange.noise
    return Outliers(exchange.learner_ids, data, bad_model & ~data, data_scores, scores, clusters)


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
