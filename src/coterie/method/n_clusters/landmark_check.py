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
    """Return the Nystrom approximation of the similarities among some learners, from the landmarks' alone.

    Landmarks are the few learners with whom all exchange models where there are too many pairs. Two learners
    count as similar if they are similar to the same landmarks.

    ``positions`` (n,) are the learners, ``landmarks`` the landmarks' positions; the result has shape (n, n).
    """
    low_rank_factor = similarity.tile(positions, landmarks) @ nystrom_root(similarity, landmarks)
    approximation: Array = low_rank_factor @ low_rank_factor.T
    return approximation


def landmark_note(
    exchange: Exchange,
    learners: Learners,
    selection: Selection,
    labels: Array,
    scale: float,
    engine: Engine,
    seed: int,
) -> str:
    """Return a sentence for the user: how far similarities and clusters by landmarks are from exact ones.

    Landmarks are the few learners with whom all exchange models where there are too many pairs. To check
    them, a random sample of the learners exchanges in full, and is clustered again. Learners and selection
    are in the order of the exchange, as are ``labels`` (L,), the clusters found; ``scale`` is the factor a
    of the similarity.
    """
    assert exchange.landmarks is not None
    n_learners, n_marks = len(learners), len(exchange.landmarks)
    # At most AUTO_LANDMARKS exchange in full: few evaluations against 2 L m for m landmarks of L learners.
    sample = np.sort(
        np.random.default_rng(seed).choice(n_learners, min(AUTO_LANDMARKS, n_learners), replace=False)
    )
    exact_losses = loss_matrix([selection.models[i] for i in sample.tolist()], learners.take(sample), engine)
    # Learners whose losses were not finite were set aside before.
    is_isolated = np.zeros(len(sample), dtype=bool)
    exact_exchange = Exchange(
        learner_ids=learners.ids[sample],
        source=DenseTiles(exact_losses),
        errors=exact_losses.diagonal(),
        noise=exchange.noise[sample],
        isolated=is_isolated,
    )
    n_clusters = len(np.unique(labels[sample]))
    exact_evidence = Evidence(exact_exchange, scale, n_clusters, seed)
    approximate_similarity = extended_similarity(
        ExchangeSimilarity(exchange, scale), exchange.landmarks, sample
    )
    # A learner's similarity to itself is one and no evidence: only pairs are compared.
    is_pair = ~np.eye(len(sample), dtype=bool)
    mean_difference = (
        float(np.abs(exact_evidence.similarity - approximate_similarity)[is_pair].mean())
        if is_pair.any()
        else 0.0
    )
    rand_index = adjusted_rand_score(exact_evidence.labels(n_clusters), labels[sample])
    return (
        f"{n_marks} landmarks of {n_learners} learners were exchanged with: "
        f"{2 * n_learners * n_marks} evaluations in place of {n_learners * n_learners}. "
        f"Among {len(sample)} learners that exchanged in full, similarities differ by "
        f"{mean_difference:.2g} on average and clusters agree to {rand_index:.2f} (adjusted Rand index)."
    )
