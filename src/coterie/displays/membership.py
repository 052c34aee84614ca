"""How sure each learner's cluster is: the share of resamplings in which each cluster predicts it best."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from coterie._arrays import Array
from coterie.displays import _look
from coterie.displays._base import Display, by_reference, ids_or_positions
from coterie.estimator import CoterieEstimator

# With more clusters than this, position separates them, not a legend.
MOST_IN_LEGEND = 10


def own_share(membership: Array, labels: Array) -> Array:
    """Return the probability of each learner's own cluster, shape (L,), from ``membership`` (L, K).

    A learner without a cluster (label -1) has NaN.
    """
    of_own_cluster: Array = membership[np.arange(len(labels)), labels]
    return np.where(labels >= 0, of_own_cluster, np.nan)


class MembershipDisplay(Display):
    """A bar per learner, cut by the probability of each cluster, the surest of each cluster at its top.

    ``from_estimator`` needs a model fitted with ``n_bootstrap`` above zero and shows all learners, also those
    admitted.

    Parameters
    ----------
    membership : array-like of shape (L, K)
        Probability of each cluster.
    labels : array-like of shape (L,)
        Cluster of each learner; -1: none.
    learner_ids : array-like of shape (L,) or None, default=None
        Names of the learners. None: 0 to L - 1.

    Examples
    --------
    >>> from coterie.displays import MembershipDisplay
    >>> display = MembershipDisplay([[0.6, 0.4], [0.0, 1.0], [0.9, 0.1]], labels=[0, 1, 0])
    >>> display.frame()["learner"].tolist()
    [2, 2, 0, 0, 1, 1]
    """

    def __init__(
        self, membership: ArrayLike, *, labels: ArrayLike, learner_ids: ArrayLike | None = None
    ) -> None:
        self.membership: Array = np.asarray(membership, dtype=float)
        self.labels: Array = np.asarray(labels, dtype=int)
        self.learner_ids = ids_or_positions(learner_ids, len(self.labels))
        self._check_lengths(membership=self.membership, labels=self.labels, learner_ids=self.learner_ids)
        if self.membership.ndim != 2 or self.labels.max(initial=-1) >= self.membership.shape[1]:
            raise ValueError(
                f"The 'membership' argument of {type(self).__name__} must have a column per cluster. "
                f"Got the shape {self.membership.shape}."
            )

    @classmethod
    def _of(cls, model: CoterieEstimator) -> Self:
        """Make the display from a fitted model with a bootstrap.

        Probabilities of learners that shaped the clusters come from the bootstrap, those of later
        ones from their admission.
        """
        stability = model.stability_
        if stability is None:
            raise ValueError("The model was fitted without a bootstrap: fit it with n_bootstrap above 0.")
        probabilities_of = dict(zip(stability.learner_ids.tolist(), stability.membership, strict=True))
        if model.admission_ is not None:
            admission = model.admission_
            probabilities_of.update(zip(admission.learner_ids.tolist(), admission.probabilities, strict=True))
        membership = np.array([probabilities_of[learner] for learner in model.learner_ids_.tolist()])
        return cls(membership, labels=model.learner_labels_, learner_ids=model.learner_ids_)

    @property
    def _order(self) -> Array:
        """Return the learners' positions from the top down: by cluster, in it the surest first."""
        of_own_cluster = own_share(self.membership, self.labels)
        # Whom no cluster fits stands at the bottom.
        cluster_or_last = np.where(self.labels >= 0, self.labels, self.membership.shape[1])
        return np.lexsort((-np.nan_to_num(of_own_cluster, nan=-1.0), cluster_or_last))

    def frame(self) -> dict[str, Array]:
        """Return the numbers that are drawn, from the top of the picture down.

        Returns
        -------
        dict of str to ndarray
            Columns ``learner``, ``cluster`` (its own), ``other`` (a cluster) and ``probability`` of the
            latter: a row per learner and cluster.
        """
        order, n_clusters = self._order, self.membership.shape[1]
        return {
            "learner": np.repeat(by_reference(self.learner_ids[order]), n_clusters),
            "cluster": np.repeat(self.labels[order], n_clusters),
            "other": np.tile(np.arange(n_clusters), len(order)),
            "probability": self.membership[order].ravel(),
        }

    def _size(self) -> tuple[float, float]:
        return _look.rows_size(6.5, len(self.labels))

    def _draw(self, ax: Any, kwargs: dict[str, Any]) -> None:
        """Draw a bar per learner, cut by the probability of each cluster, with lines between clusters.

        Learners without probabilities (NaN) have an empty bar. Beyond eight clusters colours repeat, hatched.
        """
        order = self._order
        n_learners, n_clusters = self.membership.shape
        edge = {"edgecolor": "white", "linewidth": 0.4 if n_learners <= _look.MOST_NAMES else 0.0}
        looks = {
            f"cluster {k}": {"color": _look.cluster_colour(k), "hatch": "////" if k >= 8 else None, **edge}
            for k in range(n_clusters)
        }
        _look.stacked_bars(ax, np.nan_to_num(self.membership[order]), looks, kwargs)
        for last_row in np.flatnonzero(np.diff(self.labels[order])).tolist():
            ax.axhline(last_row + 0.5, color=_look.QUIET, linewidth=0.6)
        ax.set_xlabel("share of resamplings in which the cluster predicts the learner best")
        _look.learner_rows(ax, self.learner_ids[order], "by cluster, the surest at the top of each")
        if n_clusters <= MOST_IN_LEGEND:
            _look.legend_above(ax, min(n_clusters, 5), handlelength=1.0, columnspacing=1.0)
