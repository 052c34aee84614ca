"""What the rules for the number of clusters look at: the same for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.kernels.together import TogetherLosses
from coterie.records import Exchange
from coterie.stages.cluster import (
    Spectrum,
    cluster_rows,
    linkage_labels,
    similarity_matrix,
    spectral_labels,
    spectrum_of,
)

Array = NDArray[Any]


@dataclass(frozen=True)
class Evidence:
    """Everything that is known of the learners to be clustered.

    Parameters
    ----------
    exchange : Exchange
        Losses among the learners.
    scale : float
        The factor a of S = exp(-a v).
    most : int
        The largest number of clusters to look at.
    seed : int
        For k-means and for reference sets.
    n_rows : ndarray of shape (L,) or None, default=None
        Rows of each learner, where known.
    losses : TogetherLosses or None, default=None
        Answers what clusters lose together; None when there is only a matrix of losses.
    """

    exchange: Exchange
    scale: float
    most: int
    seed: int
    n_rows: Array | None = None
    losses: TogetherLosses | None = None

    @property
    def n_learners(self) -> int:
        """Number of learners."""
        return len(self.exchange.learner_ids)

    @cached_property
    def similarity(self) -> Array:
        """The matrix S."""
        return similarity_matrix(self.exchange, self.scale)

    @cached_property
    def spectrum(self) -> Spectrum:
        """Top eigenpairs of the normalised similarity, one more than there may be clusters."""
        return spectrum_of(self.similarity, max(self.most, 2) + 1)

    @cached_property
    def _noise_spectrum(self) -> Spectrum:
        in_noise = similarity_matrix(self.exchange, 1.0, self.exchange.noise)
        return spectrum_of(in_noise, max(self.most, 2) + 1)

    @cached_property
    def _labels(self) -> dict[int, Array]:
        return {}

    def labels(self, n_clusters: int) -> Array:
        """Return the paper's clusters: spectral, on v."""
        if n_clusters not in self._labels:
            self._labels[n_clusters] = spectral_labels(self.spectrum, self.exchange, n_clusters, self.seed)
        return self._labels[n_clusters]

    @cached_property
    def within_sums(self) -> Array:
        """Within-cluster sums of squares of the embedding's rows for 1 to ``most`` clusters.

        The one-column embedding has no spread by construction, so one cluster is judged in the two
        columns of two clusters: there its sum of squares is the total one.
        """
        counts = range(1, self.most + 1)
        return np.array([cluster_rows(self.spectrum.embedding(max(k, 2)), k, self.seed)[1] for k in counts])

    def starts(self, n_clusters: int) -> list[Array]:
        """Return three labellings to refine: spectral on v, on v per noise of the target, linkage on v."""
        if n_clusters == 1:
            return [np.zeros(self.n_learners, dtype=np.int64)]
        candidates = [
            self.labels(n_clusters),
            spectral_labels(self._noise_spectrum, self.exchange, n_clusters, self.seed),
            linkage_labels(self.exchange.dissimilarity, n_clusters),
        ]
        return [labels.astype(np.int64) for labels in candidates]
