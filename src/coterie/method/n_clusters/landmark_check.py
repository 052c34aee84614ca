"""How far landmarks are from the exact answer, measured on a sample of learners that exchange in full."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import adjusted_rand_score

from coterie._arrays import Array
from coterie.engines import Engine
from coterie.kernels.losses import DenseTiles, loss_matrix
from coterie.kernels.matrix_free import nystrom_root
from coterie.kernels.similarities import ExchangeSimilarity
from coterie.method.landmarks import AUTO_LANDMARKS
from coterie.method.n_clusters.evidence import Evidence
from coterie.records import Exchange, Selection
from coterie.rows.learners import Learners


def extended_similarity(similarity: ExchangeSimilarity, landmarks: Array, positions: Array) -> Array:
    """Return what the landmarks say of the similarities among some learners."""
    extended = similarity.tile(positions, landmarks) @ nystrom_root(similarity, landmarks)
    product: Array = extended @ extended.T
    return product


def landmark_note(
    exchange: Exchange,
    learners: Learners,
    selection: Selection,
    labels: Array,
    scale: float,
    engine: Engine,
    seed: int,
) -> str:
    """Compare the clusters found through landmarks with the exact ones, on a sample, in a sentence.

    Learners and selection are in the order of the exchange, as are ``labels``, the clusters found; ``scale``
    is the factor a of the similarity.
    """
    assert exchange.landmarks is not None
    n, n_marks = len(learners), len(exchange.landmarks)
    # As many learners exchange in full: few evaluations against the landmarks' 2 L m.
    subset = np.sort(np.random.default_rng(seed).choice(n, min(AUTO_LANDMARKS, n), replace=False))
    losses = loss_matrix([selection.models[i] for i in subset.tolist()], learners.take(subset), engine)
    apart = np.zeros(len(subset), dtype=bool)
    full = Exchange(
        learners.ids[subset], DenseTiles(losses), losses.diagonal(), exchange.noise[subset], apart
    )
    result = len(np.unique(labels[subset]))
    direct = Evidence(full, scale, result, seed)
    extended = extended_similarity(ExchangeSimilarity(exchange, scale), exchange.landmarks, subset)
    off = ~np.eye(len(subset), dtype=bool)
    difference = float(np.abs(direct.similarity - extended)[off].mean()) if off.any() else 0.0
    agreement = adjusted_rand_score(direct.labels(result), labels[subset])
    return (
        f"{n_marks} landmarks of {n} learners were exchanged with: {2 * n * n_marks} evaluations in place of "
        f"{n * n}. Among {len(subset)} learners that exchanged in full, similarities differ by "
        f"{difference:.2g} on average and clusters agree to {agreement:.2f} (adjusted Rand index)."
    )
