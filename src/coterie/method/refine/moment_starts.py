"""Labellings that linear models on pooled rows like, found from second moments alone.

K-models by Lloyd's steps: one model per cluster from the sum of its members' moments, each learner to the
model that loses least on it. A round looks at no row, so that many random starts are cheap. Where the
signal is weak, the similarities between learners' own models are mostly noise and all spectral starts may end
in the same wrong corner; these starts do not depend on them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coterie._arrays import Array
from coterie.kernels.limits import LIMITS


@dataclass(frozen=True)
class MomentSearch:
    """How hard the search tries."""

    # Random labellings.
    starts: int = 20
    # Moves of each; fifteen gave the labels of ten in all of 522 draws (linear settings of the ablation).
    rounds: int = 10


SEARCH = MomentSearch()


def cluster_sums(member: Array, values: Array) -> Array:
    """Return sums of shape (..., K, *) over clusters, of values (L, *), from memberships (..., K, L)."""
    flat = member.reshape(-1, len(values)) @ values.reshape(len(values), -1)
    return flat.reshape(*member.shape[:-1], *values.shape[1:])


def _models(labels: Array, n_clusters: int, G: Array, c: Array, ridge: Array) -> Array:
    """Return models of shape (starts, K, d, C) of the clusters of labellings of shape (starts, L)."""
    member = (labels[:, None] == np.arange(n_clusters)[:, None]).astype(float)
    return np.linalg.solve(cluster_sums(member, G) + ridge, cluster_sums(member, c))


def _losses(models: Array, G: Array, c: Array) -> Array:
    """Return w'Gw - 2 c'w of shape (starts, K, L): losses less a constant of each learner."""
    n, many = len(G), models.shape[:2]
    squares = np.einsum("skdc,skec->skde", models, models).reshape(*many, -1)
    losses: Array = squares @ G.reshape(n, -1).T - 2 * models.reshape(*many, -1) @ c.reshape(n, -1).T
    return losses


def search_moments(G: Array, c: Array, ridge: Array, n_clusters: int, seed: int) -> Array:
    """Return the labelling of shape (L,) with the lowest loss of many random starts.

    ``G`` of shape (L, d, d) are second moments of each learner's rows, in the weights in which learners are
    pooled, and ``c`` of shape (L, d, C) their products with the response. ``ridge`` of shape (d, d) is added
    to the moments of every cluster.
    """
    generator = np.random.default_rng(seed)
    if len(G) > LIMITS.many:
        # A sample is searched, and the others follow its models.
        subset = generator.choice(len(G), LIMITS.many, replace=False)
        result = search_moments(G[subset], c[subset], ridge, n_clusters, seed)
        models = _models(result[None], n_clusters, G[subset], c[subset], ridge)
        followed: Array = _losses(models, G, c)[0].argmin(axis=0)
        return followed
    labels, totals = _descend(G, c, ridge, n_clusters, generator)
    best: Array = labels[totals.argmin()]
    return best


def lowest_loss(G: Array, c: Array, ridge: Array, n_clusters: int, seed: int) -> float:
    """Return the loss of the best labelling that random starts lead to, less a constant of the learners."""
    return float(_descend(G, c, ridge, n_clusters, np.random.default_rng(seed))[1].min())


def _descend(
    G: Array, c: Array, ridge: Array, n_clusters: int, generator: np.random.Generator
) -> tuple[Array, Array]:
    """Return labellings of shape (starts, L) that nobody wants to leave, and their losses."""
    first = np.arange(len(G)) % n_clusters
    labels = np.array([generator.permutation(first) for _ in range(SEARCH.starts)])
    losses = _losses(_models(labels, n_clusters, G, c, ridge), G, c)
    for _ in range(SEARCH.rounds):
        # A cluster without members has a model of zeros, which somebody may yet prefer.
        moved = losses.argmin(axis=1)
        if (moved == labels).all():
            break
        labels = moved
        losses = _losses(_models(labels, n_clusters, G, c, ridge), G, c)
    return labels, np.take_along_axis(losses, labels[:, None, :], axis=1).sum(axis=(1, 2))
