from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.testing import assert_allclose

from coterie.how_many.evidence import Evidence


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


def test_one_cluster_has_one_start(block_losses: Callable[..., Any], evidence_of: Callable[..., Any]) -> None:
    (start,) = evidence_of(block_losses([3, 2])).starts(1)
    assert start.tolist() == [0] * 5


def test_several_clusters_have_three_starts_of_one_type(
    block_losses: Callable[..., Any], evidence_of: Callable[..., Any]
) -> None:
    evidence = evidence_of(block_losses([3, 2], between=3.0))
    starts = evidence.starts(2)
    assert len(starts) == 3
    assert {labels.dtype for labels in starts} == {np.dtype(np.int64)}
    assert np.array_equal(starts[0], evidence.labels(2))


def test_the_second_start_measures_in_units_of_the_target_s_noise(evidence_of: Callable[..., Any]) -> None:
    # Learners 2 and 3 are a hundred times noisier: plain losses see a gulf where their noise sees none.
    noise = np.array([1.0, 1.0, 100.0, 100.0, 1.0, 1.0])
    kind = np.array([0, 0, 0, 0, 1, 1])
    losses = noise + np.where(kind[:, None] == kind, 0.3, 5.0) * noise
    np.fill_diagonal(losses, noise)
    evidence: Evidence = evidence_of(losses, scale=1.0)
    labels = evidence.starts(2)[1]
    assert len(set(labels[:4])) == 1
    assert labels[0] != labels[5]
