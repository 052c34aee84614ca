"""What the rules for the number of clusters look at: the same for all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from coterie._arrays import Array
from coterie.kernels.similarities import ExchangeSimilarity
from coterie.method.spectral import (
    Spectrum,
    avoids_pairs,
    cluster_rows,
    linkage_of,
    matrix_free_spectrum,
    spectrum_of,
)
from coterie.records import Exchange


@dataclass(frozen=True)
class Evidence:
    """What all rules for the number of clusters look at: losses, their spectrum, and clusters for any K.

    ``scale`` is the factor a of S = exp(-a v), ``most`` the largest number of clusters to look at; ``n_rows``
    has shape (L,), where known. ``device`` is where the spectrum of very many learners is computed,
    ``needed`` the number of eigenpairs that must be precise, where the number of clusters is given.

    Spectrum and clusters are computed when first asked for, and remembered.
    """

    exchange: Exchange
    scale: float
    most: int
    seed: int
    n_rows: Array | None = None
    device: str = "cpu"
    needed: int = 1

    @property
    def n_learners(self) -> int:
        """Number of learners."""
        return len(self.exchange.learner_ids)

    @cached_property
    def similarity(self) -> Array | ExchangeSimilarity:
        """The matrix S, stored only where the learners are not very many."""
        similarity = ExchangeSimilarity(self.exchange, self.scale)
        return similarity if avoids_pairs(self.exchange) else np.asarray(similarity)

    @cached_property
    def spectrum(self) -> Spectrum:
        """Top eigenpairs of the normalised similarity, one more than there may be clusters."""
        n_pairs = max(self.most, 2) + 1
        if avoids_pairs(self.exchange):
            return matrix_free_spectrum(self.exchange, self.scale, n_pairs, self.device, self.needed)
        return spectrum_of(np.asarray(self.similarity), n_pairs)

    @cached_property
    def _linkage_labels(self) -> Callable[[int], Array]:
        """Function from a number of clusters to the labels (L,) of average linkage."""
        return linkage_of(self.exchange, self.most)

    @cached_property
    def _kmeans_results(self) -> dict[int, tuple[Array, float]]:
        """Labels and sum of squares by number of clusters, filled by `_clustered`."""
        return {}

    def _clustered(self, n_clusters: int) -> tuple[Array, float]:
        """Return the k-means labels (L,) of the embedding's rows, and their within-cluster sum of squares.

        The embedding has a row for each learner: its entries in the top eigenvectors of the similarity.
        """
        if n_clusters not in self._kmeans_results:
            rows = self.spectrum.embedding(max(n_clusters, 2))
            self._kmeans_results[n_clusters] = cluster_rows(rows, n_clusters, self.seed)
        return self._kmeans_results[n_clusters]

    def labels(self, n_clusters: int) -> Array:
        """Return the labels (L,) of the paper's clusters, by k-means on the spectral embedding.

        Average linkage on the dissimilarity v decides where the learners, joined by similarities above zero,
        fall into more separate parts than clusters: eigenvectors cannot tell which parts belong together.
        """
        if n_clusters == 1:
            return np.zeros(self.n_learners, dtype=np.int64)
        if self.spectrum.n_parts > n_clusters:
            return self._linkage_labels(n_clusters)
        return self._clustered(n_clusters)[0].astype(np.int64)

    @cached_property
    def within_sums(self) -> Array:
        """Within-cluster sums of squares of the embedding's rows for 1 to ``most`` clusters.

        The one-column embedding has no spread by construction, so one cluster is judged in the two
        columns of two clusters: there its sum of squares is the total one.
        """
        return np.array([self._clustered(k)[1] for k in range(1, self.most + 1)])
