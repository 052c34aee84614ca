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
    """Return the sums of values (L, *) over the members of clusters, of shape (..., K, *).

    ``member`` (..., K, L) has the weight of each learner in each cluster, zero if it is no member.
    """
    flat_sums = member.reshape(-1, len(values)) @ values.reshape(len(values), -1)
    return flat_sums.reshape(*member.shape[:-1], *values.shape[1:])


def _models(labels: Array, n_clusters: int, G: Array, c: Array, ridge: Array) -> Array:
    """Return the least-squares models (starts, K, d, C) of all clusters of several labellings (starts, L).

    ``G`` (L, d, d) and ``c`` (L, d, C) are each learner's sums X'X and X'y; a cluster's are those of its
    members, with the ridge (d, d) added.
    """
    member = (labels[:, None] == np.arange(n_clusters)[:, None]).astype(float)
    return np.linalg.solve(cluster_sums(member, G) + ridge, cluster_sums(member, c))


def _losses(models: Array, G: Array, c: Array) -> Array:
    """Return the losses (starts, K, L) of models w (starts, K, d, C) on L learners, by sums X'X and X'y.

    They are w'Gw - 2 c'w, so that each learner's y'y is missing: a constant that no comparison of models
    needs.
    """
    n_learners, starts_and_clusters = len(G), models.shape[:2]
    outer_products = np.einsum("skdc,skec->skde", models, models).reshape(*starts_and_clusters, -1)
    losses: Array = (
        outer_products @ G.reshape(n_learners, -1).T
        - 2 * models.reshape(*starts_and_clusters, -1) @ c.reshape(n_learners, -1).T
    )
    return losses


def search_moments(G: Array, c: Array, ridge: Array, n_clusters: int, seed: int) -> Array:
    """Return the labelling (L,) under which one linear model per cluster loses least, of many random starts.

    ``G`` of shape (L, d, d) are sums or means of X'X over each learner's rows, in the weights in which
    learners are pooled, and ``c`` of shape (L, d, C) those of X'y. ``ridge`` of shape (d, d) is added to
    those of every cluster.
    """
    generator = np.random.default_rng(seed)
    if len(G) > LIMITS.many:
        # A sample is searched, and the others follow its models.
        sample = generator.choice(len(G), LIMITS.many, replace=False)
        sample_labels = search_moments(G[sample], c[sample], ridge, n_clusters, seed)
        models_of_sample = _models(sample_labels[None], n_clusters, G[sample], c[sample], ridge)
        labels_of_all: Array = _losses(models_of_sample, G, c)[0].argmin(axis=0)
        return labels_of_all
    labels, total_losses = _descend(G, c, ridge, n_clusters, generator)
    best_labels: Array = labels[total_losses.argmin()]
    return best_labels


def lowest_loss(G: Array, c: Array, ridge: Array, n_clusters: int, seed: int) -> float:
    """Return the lowest total loss of any labelling that random starts lead to.

    Arguments are as for `search_moments`. Each learner's y'y is left out, so that the loss is negative: minus
    what the clusters explain.
    """
    return float(_descend(G, c, ridge, n_clusters, np.random.default_rng(seed))[1].min())


def _descend(
    G: Array, c: Array, ridge: Array, n_clusters: int, generator: np.random.Generator
) -> tuple[Array, Array]:
    """Move learners to their best cluster from several random labellings at once, until nobody moves.

    Returns the labellings (starts, L) and their total losses (starts,). Arguments are as for
    `search_moments`; the number of rounds is limited. These are k-means' steps with a linear model in
    place of each centre.
    """
    # All starts have clusters of equal size, dealt out at random.
    even_labels = np.arange(len(G)) % n_clusters
    labels = np.array([generator.permutation(even_labels) for _ in range(SEARCH.starts)])
    losses = _losses(_models(labels, n_clusters, G, c, ridge), G, c)
    for _ in range(SEARCH.rounds):
        # A cluster without members has a model of zeros, which somebody may yet prefer.
        best_clusters = losses.argmin(axis=1)
        if (best_clusters == labels).all():
            break
        labels = best_clusters
        losses = _losses(_models(labels, n_clusters, G, c, ridge), G, c)
    return labels, np.take_along_axis(losses, labels[:, None, :], axis=1).sum(axis=(1, 2))
