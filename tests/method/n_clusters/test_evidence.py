from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.testing import assert_allclose


def test_similarity_is_made_once(block_losses: Callable[..., Any], evidence_of: Callable[..., Any]) -> None:
    evidence = evidence_of(block_losses([3, 2]), scale=0.5)
    assert evidence.n_learners == 5
    assert_allclose(evidence.similarity[0], np.exp(-0.5 * np.array([0, 0, 0, 16, 16])))
    assert evidence.similarity is evidence.similarity


def test_there_is_one_eigenvalue_more_than_there_may_be_clusters(
    block_losses: Callable[..., Any], evidence_of: Callable[..., Any]
) -> None:
    losses = block_losses([4, 4])
    assert len(evidence_of(losses, most=3).spectrum.eigenvalues) == 4
    assert len(evidence_of(losses, most=8).spectrum.eigenvalues) == 8
    # One cluster is judged in the two columns of two.
    assert len(evidence_of(losses, most=1).spectrum.eigenvalues) == 3


def test_labels_are_the_blocks(block_losses: Callable[..., Any], evidence_of: Callable[..., Any]) -> None:
    labels = evidence_of(block_losses([3, 2], between=3.0)).labels(2)
    assert len(set(labels[:3])) == len(set(labels[3:])) == 1
    assert labels[0] != labels[3]


def test_one_cluster_has_everybody(block_losses: Callable[..., Any], evidence_of: Callable[..., Any]) -> None:
    assert evidence_of(block_losses([3, 2])).labels(1).tolist() == [0] * 5
