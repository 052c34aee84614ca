"""Newcomers join the cluster with the largest sum of similarities to its members, as in the paper.

A newcomer with rows enough for a model of its own is compared both ways. One with fewer is compared by the
members' models on its rows alone: its own fitted error is the same for all members and cancels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from coterie._rows import Learners
from coterie.engines import Engine
from coterie.kernels.losses import loss_matrix
from coterie.records import Partition, Selection

Array = NDArray[Any]


@dataclass(frozen=True)
class Admission:
    """Where newcomers were placed.

    Parameters
    ----------
    learner_ids : ndarray of shape (M,)
        The newcomers.
    labels : ndarray of shape (M,)
        The cluster of each.
    similarities : ndarray of shape (M, K)
        Logarithm of the sum of similarities to each cluster's members.
    """

    learner_ids: Array
    labels: Array
    similarities: Array


def place_newcomers(
    newcomers: Learners,
    models: Selection | None,
    learners: Learners,
    selection: Selection,
    partition: Partition,
    engine: Engine,
) -> Admission:
    """Place newcomers into the clusters.

    Parameters
    ----------
    newcomers : Learners
        Their rows.
    models : Selection or None
        Their own models, in the same order; None: they have too few rows for one.
    learners : Learners
        The rows of the learners that were clustered.
    selection : Selection
        Of the same learners, in the same order.
    partition : Partition
        Of the same learners, in the same order.
    engine : Engine
        Who predicts.

    Returns
    -------
    Admission
        In the order of ``newcomers``.
    """
    on_newcomers = loss_matrix(selection.models, newcomers, engine).T
    if models is None:
        v = 2 * (on_newcomers - np.nanmin(on_newcomers, axis=1, keepdims=True))
    else:
        on_members = loss_matrix(models.models, learners, engine)
        v = np.abs(on_newcomers - models.errors[:, None]) + np.abs(on_members - selection.errors)
    # A model that fails on a newcomer's rows says nothing of whether the two belong together.
    v = np.where(np.isfinite(v), v, np.inf)
    n_clusters = partition.n_clusters
    similarities = np.full((len(newcomers), n_clusters), -np.inf)
    for k in range(n_clusters):
        members = partition.labels == k
        with np.errstate(divide="ignore"):
            similarities[:, k] = logsumexp(-partition.scale * v[:, members], axis=1)
    return Admission(newcomers.ids, similarities.argmax(axis=1), similarities)
