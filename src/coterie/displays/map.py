"""Map of the learners: who is near whom, by the distance of their models."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse.linalg import eigsh

from coterie._arrays import Array
from coterie._text import display_name
from coterie.displays import _look
from coterie.displays._base import Display, ids_or_positions
from coterie.displays._crowds import some_learners
from coterie.estimator import CoterieEstimator
from coterie.records import Exchange, Partition

# Learners whose distances are no more than rounding have one place on the map.
ALL_ALIKE = 1e-12
# Points that have a name beside them.
MOST_NAMES = 40


def _places(similarity: Array) -> Array:
    """Return points of the plane, shape (L, 2), whose distances are close to those of the learners' models.

    This is classical multidimensional scaling (principal coordinates) of log(1 + v), with the
    dissimilarity v = -log(similarity), the similarity of shape (L, L).

    v is close to twice the squared distance of two models. Its logarithm keeps far learners from pressing
    all others into a point, and log(1 + v) of squared distances is a squared distance again (Schoenberg).
    """
    similarity = np.maximum(similarity, np.finfo(float).tiny)
    squared_distances = np.log1p(-np.log(np.minimum(similarity, 1.0)))
    row_means = squared_distances.mean(axis=1)
    inner_products = -0.5 * (squared_distances - row_means[:, None] - row_means[None, :] + row_means.mean())
    n_learners = len(inner_products)
    if np.abs(inner_products).max() < ALL_ALIKE:
        return np.zeros((n_learners, 2))
    if n_learners < 4:
        eigenvalues, eigenvectors = np.linalg.eigh(inner_products)
    else:
        # A fixed start makes the digits the same every time.
        initial_vector = np.random.default_rng(0).normal(size=n_learners)
        eigenvalues, eigenvectors = eigsh(inner_products, k=2, which="LA", v0=initial_vector)
    two_largest = np.argsort(-eigenvalues)[:2]
    coordinates = np.zeros((n_learners, 2))
    coordinates[:, : len(two_largest)] = eigenvectors[:, two_largest] * np.sqrt(
        np.maximum(eigenvalues[two_largest], 0.0)
    )
    # An eigenvector has no sign of its own: the coordinate furthest from zero is made positive.
    signs = np.sign(coordinates[np.abs(coordinates).argmax(axis=0), [0, 1]])
    return coordinates * np.where(signs == 0, 1.0, signs)


class MapDisplay(Display):
    """Learners as points: near ones have models that predict each other's rows, far ones are drawn nearer.

    ``from_estimator`` shows the learners that shaped the clusters, of very many a sample.

    Parameters
    ----------
    similarity : array-like of shape (L, L)
        Similarity of the learners, 1 for those who agree.
    labels : array-like of shape (L,)
        Cluster of each learner.
    learner_ids : array-like of shape (L,) or None, default=None
        Names of the learners. None: 0 to L - 1.

    Examples
    --------
    >>> from coterie.displays import MapDisplay
    >>> display = MapDisplay([[1, 0.9, 0.1], [0.9, 1, 0.1], [0.1, 0.1, 1]], labels=[0, 0, 1])
    >>> list(display.frame())
    ['learner', 'cluster', 'across', 'up']
    """

    def __init__(
        self, similarity: ArrayLike, *, labels: ArrayLike, learner_ids: ArrayLike | None = None
    ) -> None:
        self.labels: Array = np.asarray(labels, dtype=int)
        self.learner_ids = ids_or_positions(learner_ids, len(self.labels))
        self._check_lengths(
            similarity=np.asarray(similarity), labels=self.labels, learner_ids=self.learner_ids
        )
        self._places = _places(np.asarray(similarity, dtype=float))

    @classmethod
    def _of(cls, model: CoterieEstimator) -> Self:
        return cls.from_partition(model.partition_, model.exchange_)

    @classmethod
    def from_partition(cls, partition: Partition, exchange: Exchange | None = None) -> Self:
        """Take the numbers from a partition.

        Parameters
        ----------
        partition : Partition
            Of the learners.
        exchange : Exchange or None, default=None
            Of the same learners. With landmarks, the map shows these alone: other pairs are not all known.

        Returns
        -------
        MapDisplay
            Ready to be drawn.
        """
        subset, _ = some_learners(partition, exchange)
        return cls(np.asarray(subset.similarity), labels=subset.labels, learner_ids=subset.learner_ids)

    def frame(self) -> dict[str, Array]:
        """Return the numbers that are drawn.

        Returns
        -------
        dict of str to ndarray
            Columns ``learner``, ``cluster``, ``across`` and ``up``, a row per learner.
        """
        across, up = self._places.T
        return {"learner": self.learner_ids, "cluster": self.labels, "across": across, "up": up}

    def _size(self) -> tuple[float, float]:
        return 6.0, 4.2

    def _draw(self, ax: Any, kwargs: dict[str, Any]) -> None:
        """Draw the learners as points, up to `MOST_NAMES` with names; distances have no unit."""
        across, up = self._places.T
        _look.cluster_points(ax, across, up, self.labels, kwargs)
        ax.set_aspect("equal", adjustable="datalim")
        ax.set_xticks([])
        ax.set_yticks([])
        ax.set_xlabel("near: models that predict each other's rows")
        if len(self.labels) <= MOST_NAMES:
            text_options: dict[str, Any] = {"xytext": (5, 3), "textcoords": "offset points", "fontsize": 7}
            for learner, point in zip(self.learner_ids.tolist(), self._places, strict=True):
                ax.annotate(display_name(learner), point, color=_look.INK, parse_math=False, **text_options)
