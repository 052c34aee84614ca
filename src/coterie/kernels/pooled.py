"""Clusters that predict by one linear model on their members' pooled rows.

Pooled rows are sums of second moments, so leaving one learner out is a subtraction and one small solve.
Members count by their precision 1 / h_j per row.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie._rows import Learners
from coterie.kernels.affine import Frame, second_moments
from coterie.kernels.averages import bounded_weights, membership
from coterie.kernels.moment_search import search_moments
from coterie.kernels.together import LocalLosses
from coterie.records import Selection

Array = NDArray[Any]

# A ridge that steadies tiny clusters and duplicated columns and is nothing against a hundred rows.
RIDGE = 1e-2


class PooledLosses(LocalLosses):
    """Losses of linear models on pooled rows, by second moments.

    Parameters
    ----------
    learners : Learners
        Everybody's rows.
    selection : Selection
        Of the same learners, in the same order.
    """

    def __init__(self, learners: Learners, selection: Selection) -> None:
        super().__init__(learners, selection)
        frame = Frame(learners)
        self._Z, self._y = frame.rows(self.learners.X), self.learners.y - frame.middle
        weights = 1.0 if self.learners.weights is None else self.learners.weights
        tempered = replace(self.learners, weights=weights * self.tempering)
        G, c, _ = second_moments(self._Z, self._y, tempered)
        weight = learners.sizes * bounded_weights(1 / selection.noise)
        self._G, self._c = G * weight[:, None, None], c * weight[:, None]
        # Where noise is nothing against the signal, the ridge's bias must be nothing against the noise.
        share = np.sqrt(np.median(selection.noise) / max(float(self._y.var()), 1e-300))
        self._ridge = RIDGE * min(1.0, share) * np.eye(self._Z.shape[1])

    def suggest(self, n_clusters: int, seed: int) -> list[Array]:
        """Return labellings that the learners' moments like, from random starts."""
        return search_moments(self._G, self._c, self._ridge, n_clusters, seed)

    def estimation_price(self, labels: Array) -> Array:
        """Return tr(G_j A^-1) / n_j, with A the moments of the learner's cluster without its own."""
        n_clusters = int(labels.max()) + 1
        member = membership(labels, n_clusters, np.ones(len(labels)))
        G = (member @ self._G.reshape(len(labels), -1)).reshape(n_clusters, *self._G.shape[1:])
        others = np.linalg.solve(G[labels] - self._G + self._ridge, self._G)
        price: Array = np.trace(others, axis1=1, axis2=2) / self.learners.sizes
        price[member.sum(axis=1)[labels] == 1] = np.nan
        return price

    def residuals(self, labels: Array, n_clusters: int) -> Array:
        """Return residuals of shape (K, N), own contributions left out."""
        owner = self.learners.owner
        member = membership(labels, n_clusters, np.ones(len(labels)))
        G = (member @ self._G.reshape(len(labels), -1)).reshape(n_clusters, *self._G.shape[1:])
        c = member @ self._c
        together = np.linalg.solve(G + self._ridge, c[..., None])[..., 0]
        counts = member.sum(axis=1)
        together[counts == 0] = np.nan
        without = np.linalg.solve(G[labels] - self._G + self._ridge, (c[labels] - self._c)[..., None])[..., 0]
        without[counts[labels] == 1] = np.nan
        residuals: Array = self._y - together @ self._Z.T
        residuals[labels[owner], np.arange(len(owner))] = self._y - np.einsum(
            "nd,nd->n", self._Z, without[owner]
        )
        return residuals
