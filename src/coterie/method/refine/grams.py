"""Losses of averages of models from Gram matrices: no rows, and no further questions.

With the mean products G of all models' predictions on a learner's rows, their products c with the response
and its mean square s, the average with weights a loses a'Ga - 2 a'c + s. Squares are plain: a bound on
squared residuals is not to be had from moments. The difference cancels where the loss is small against s,
to about 1e-15 s.
"""

from __future__ import annotations

import numpy as np

from coterie._arrays import Array
from coterie.kernels.limits import LIMITS
from coterie.method.refine.averages import membership


class GramAverages:
    """Losses of averages of models on both halves of every learner's rows.

    For each learner and half, ``products`` (L, 2, L, L) are mean products of predictions, ``responses`` (L,
    2, L) those of predictions with the response, ``squares`` (L, 2) its mean square, and ``own`` (L, 2) the
    mean loss of the learner's own honest model. ``weights`` (L,) is what each model weighs.
    """

    def __init__(self, products: Array, responses: Array, squares: Array, own: Array, weights: Array) -> None:
        self._products, self._responses, self._squares = products, responses, squares
        self._own, self._weights = own, weights

    def on_halves(self, labels: Array) -> Array:
        """Return mean losses of shape (K, L, 2), own contributions left out.

        They are infinite where a cluster has nobody to predict with; a learner alone in its cluster is
        predicted by its own honest residuals.
        """
        n_clusters = int(labels.max()) + 1
        losses = np.empty((n_clusters, len(labels), 2))
        everybody = membership(labels, n_clusters, self._weights)
        totals = everybody.sum(axis=1)
        for j, home in enumerate(labels.tolist()):
            others = everybody.copy()
            others[home, j] = 0.0
            rest = others.sum(axis=1)
            somebody = rest > LIMITS.rounding * totals
            shares = np.divide(others, rest[:, None], out=np.zeros_like(others), where=somebody[:, None])
            for half in (0, 1):
                squares = np.einsum("km,km->k", shares @ self._products[j, half], shares)
                loss = squares - 2 * shares @ self._responses[j, half] + self._squares[j, half]
                losses[:, j, half] = np.where(somebody, np.maximum(loss, 0.0), np.inf)
            if not somebody[home]:
                losses[home, j] = self._own[j]
        return losses
