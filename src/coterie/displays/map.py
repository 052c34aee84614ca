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
    """Return places whose distances are those of the models: classical scaling of the dissimilarity v.

    v is close to twice the squared distance of two models, and its logarithm keeps far learners from
    pressing all others into a point; log(1 + v) of squared distances is one again (Schoenberg).
    """
    similarity = np.maximum(similarity, np.finfo(float).tiny)
    squares = np.log1p(-np.log(np.minimum(similarity, 1.0)))
    rows = squares.mean(axis=1)
    products = -0.5 * (squares - rows[:, None] - rows[None, :] + rows.mean())
    n = len(products)
    if np.abs(products).max() < ALL_ALIKE:
        return np.zeros((n, 2))
    if n < 4:
        sizes, vectors = np.linalg.eigh(products)
    else:
        # A fixed start makes the digits the same every time.
        start = np.random.default_rng(0).normal(size=n)
        sizes, vectors = eigsh(products, k=2, which="LA", v0=start)
    order = np.argsort(-sizes)[:2]
    indices = np.zeros((n, 2))
    indices[:, : len(order)] = vectors[:, order] * np.sqrt(np.maximum(sizes[order], 0.0))
    # An eigenvector has no sign of its own.
    signs = np.sign(indices[np.abs(indices).argmax(axis=0), [0, 1]])
    return indices * np.where(signs == 0, 1.0, signs)


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
        """Draw the learners as points, with names where there are few."""
        across, up = self._places.T
        _look.cluster_points(ax, across, up, self.labels, kwargs)
        ax.set_aspect("equal", adjustable="datalim")
        ax.set_xticks([])
        ax.set_yticks([])
        ax.set_xlabel("near: models that predict each other's rows")
        if len(self.labels) <= MOST_NAMES:
            look: dict[str, Any] = {"xytext": (5, 3), "textcoords": "offset points", "fontsize": 7}
            for learner, index in zip(self.learner_ids.tolist(), self._places, strict=True):
                ax.annotate(display_name(learner), index, color=_look.INK, parse_math=False, **look)
