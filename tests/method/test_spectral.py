from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from coterie.kernels.limits import Limits
from coterie.kernels.similarities import ExchangeSimilarity
from coterie.method import spectral as cluster
from coterie.method.exchange import exchange_from_losses
from coterie.method.n_clusters.evidence import Evidence
from coterie.method.spectral import (
    cluster_rows,
    count_parts,
    linkage_labels,
    resolve_scale,
    spectrum_of,
    tidy_labels,
    top_eigenpairs,
)
from coterie.records import Exchange

quickly = settings(max_examples=25, deadline=None, derandomize=True)


def two_blocks(between: float = 9.0, within: float = 1.0, sizes: tuple[int, int] = (3, 2)) -> Exchange:
    """Learners of two kinds; every model loses 1 at home."""
    kind = np.repeat([0, 1], sizes)
    losses = np.where(kind[:, None] == kind, within, between).astype(float)
    np.fill_diagonal(losses, 1.0)
    return exchange_from_losses(losses)


def partition_of(labels: Any) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(labels == k).tolist()) for k in np.unique(labels)}


BLOCKS = {frozenset({0, 1, 2}), frozenset({3, 4})}


def test_scale_noise_is_one_over_the_median_noise() -> None:
    losses = np.full((3, 3), 10.0)
    np.fill_diagonal(losses, [1.0, 4.0, 8.0])
    assert resolve_scale(exchange_from_losses(losses), "noise") == 0.25


def test_scale_median_is_one_over_the_median_dissimilarity() -> None:
    exchange = exchange_from_losses([[1, 2, 5], [3, 1, 6], [4, 7, 1]])
    # v: |2-1| + |3-1| = 3; |5-1| + |4-1| = 7; |6-1| + |7-1| = 11.
    assert resolve_scale(exchange, "median") == pytest.approx(1 / 7)


@pytest.mark.parametrize("scale", [0.3, 2, np.float32(0.5), np.int64(3)])
def test_scale_may_be_a_number(scale: Any) -> None:
    assert resolve_scale(two_blocks(), scale) == float(scale)


@pytest.mark.parametrize("scale", [0, -1.0, np.nan, np.inf, -np.inf, None, True, [1.0]])
def test_a_scale_that_is_not_a_positive_number_is_refused(scale: Any) -> None:
    with pytest.raises(ValueError, match="'scale' option must be a positive number or 'noise' or 'median'"):
        resolve_scale(two_blocks(), scale)


def test_an_unknown_scale_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"'scale' option must be one of 'noise', 'median'. Got 'mean'"):
        resolve_scale(two_blocks(), "mean")


@pytest.mark.parametrize("scale", ["noise", "median"])
def test_without_noise_the_dissimilarities_set_the_scale(scale: str) -> None:
    losses = np.array([[0, 0, 8], [0, 0, 8], [8, 8, 0]], dtype=float)
    assert resolve_scale(exchange_from_losses(losses), scale) == pytest.approx(1 / 16)
    mostly_equal = np.zeros((5, 5))
    mostly_equal[4, :4] = mostly_equal[:4, 4] = 3.0
    assert resolve_scale(exchange_from_losses(mostly_equal), scale) == pytest.approx(1 / 6)


@pytest.mark.parametrize("scale", ["noise", "median"])
@pytest.mark.parametrize("n", [1, 3])
def test_where_all_learners_agree_without_noise_the_scale_is_one(scale: str, n: int) -> None:
    assert resolve_scale(exchange_from_losses(np.zeros((n, n))), scale) == 1.0


def test_similarity_is_the_exponential_entry_by_entry() -> None:
    exchange = exchange_from_losses([[1, 2, 5], [3, 1, 6], [4, 7, 1]])
    S = np.asarray(ExchangeSimilarity(exchange, 0.1))
    assert_allclose(S, np.exp(-0.1 * np.array([[0, 3, 7], [3, 0, 11], [7, 11, 0]])))


@pytest.mark.parametrize(
    ("similarity", "parts"),
    [
        (np.eye(1), 1),
        (np.eye(4), 4),
        (np.ones((4, 4)), 1),
        ([[1, 0.5, 0, 0], [0.5, 1, 0, 0], [0, 0, 1, 0.5], [0, 0, 0.5, 1]], 2),
        ([[1, 0.5, 0, 0], [0.5, 1, 0.5, 0], [0, 0.5, 1, 0.5], [0, 0, 0.5, 1]], 1),
        ([[1, 1e-20], [1e-20, 1]], 2),
    ],
)
def test_the_parts_of_a_graph_are_counted(similarity: Any, parts: int) -> None:
    assert count_parts(np.array(similarity, dtype=float)) == parts


def test_eigenvalues_are_those_of_the_normalised_similarity() -> None:
    S = np.asarray(ExchangeSimilarity(two_blocks(between=2.0), 1.0))
    root = S.sum(axis=1) ** -0.5
    expected = np.sort(np.linalg.eigvalsh(root[:, None] * S * root))[::-1]
    spectrum = spectrum_of(S, 4)
    assert_allclose(spectrum.eigenvalues, expected[:4], atol=1e-12)
    assert spectrum.eigenvalues[0] == pytest.approx(1.0)
    assert spectrum.eigenvectors.shape == (5, 4)


def test_no_more_eigenvalues_are_given_than_there_are_learners() -> None:
    assert spectrum_of(np.ones((2, 2)), 9).eigenvalues.shape == (2,)


@quickly
@given(data=st.data())
def test_the_embedding_has_rows_of_length_one(data: Any) -> None:
    n = data.draw(st.integers(1, 8))
    values = data.draw(st.lists(st.floats(0, 2000), min_size=n * n, max_size=n * n))
    v = np.reshape(values, (n, n))
    S = np.exp(-(v + v.T))
    np.fill_diagonal(S, 1.0)
    for k in range(1, n + 1):
        embedding = spectrum_of(S, n).embedding(k)
        # Eigenvectors of an eigenvalue of zero say nothing and are left out.
        assert embedding.shape[0] == n
        assert 1 <= embedding.shape[1] <= k
        assert_allclose(np.linalg.norm(embedding, axis=1), 1.0)


def test_a_learner_without_direction_gets_the_first_axis() -> None:
    # Of four learners without any similarity, one is left outside of the three top eigenvectors.
    embedding = spectrum_of(np.eye(4), 4).embedding(3)
    assert_allclose(np.linalg.norm(embedding, axis=1), 1.0)


def test_iterated_eigenpairs_are_the_dense_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(40, 2)) + 4 * rng.integers(2, size=(40, 1))
    S = np.exp(-((points[:, None] - points) ** 2).sum(axis=-1))
    dense = spectrum_of(S, 4)
    monkeypatch.setattr(cluster, "LIMITS", Limits(few=10))
    iterated = spectrum_of(S, 4)
    assert_allclose(iterated.eigenvalues, dense.eigenvalues, atol=1e-9)
    assert_allclose(iterated.eigenvectors, dense.eigenvectors, atol=1e-6)


def test_points_that_coincide_share_a_label() -> None:
    points = np.array([[0.0, 1.0]] * 3 + [[1.0, 0.0]] * 2)
    labels, within = cluster_rows(points, 4, 0)
    assert partition_of(labels) == BLOCKS
    assert within == pytest.approx(0.0)
    labels, within = cluster_rows(points[:3], 2, 0)
    assert labels.tolist() == [0, 0, 0]
    assert within == pytest.approx(0.0)


def test_the_within_cluster_sum_is_that_of_the_labels() -> None:
    points = np.array([[0.0], [1.0], [10.0], [14.0]])
    labels, within = cluster_rows(points, 2, 0)
    assert partition_of(labels) == {frozenset({0, 1}), frozenset({2, 3})}
    assert within == pytest.approx(0.5 + 8.0)


def test_the_embedding_s_clusters_are_the_blocks() -> None:
    exchange = two_blocks(between=3.0, within=1.1)
    evidence = Evidence(exchange, 1.0, 2, 0)
    assert partition_of(evidence.labels(2)) == BLOCKS
    assert evidence.labels(1).tolist() == [0] * 5


def test_a_graph_of_as_many_parts_as_clusters_is_clustered_by_its_parts() -> None:
    exchange = two_blocks(between=1e6)
    evidence = Evidence(exchange, 1.0, 2, 0)
    assert evidence.spectrum.n_parts == 2
    assert_allclose(evidence.spectrum.eigenvalues[:2], 1.0)
    assert partition_of(evidence.labels(2)) == BLOCKS


def test_a_graph_of_more_parts_than_clusters_is_joined_by_linkage() -> None:
    # Every similarity underflows, so that only the dissimilarities can tell who is nearer.
    exchange = two_blocks(between=1e9, within=1e6)
    evidence = Evidence(exchange, 1.0, 4, 0)
    assert evidence.spectrum.n_parts == 5
    assert partition_of(evidence.labels(2)) == BLOCKS


def test_linkage_joins_the_nearest() -> None:
    v = two_blocks(between=9.0, within=1.5).dissimilarity
    assert partition_of(linkage_labels(v, 2)) == BLOCKS
    assert len(set(linkage_labels(v, 1))) == 1
    assert linkage_labels(np.zeros((1, 1)), 1).tolist() == [0]


@pytest.mark.parametrize(
    ("labels", "tidy"),
    [
        ([5, 5, 7, 7, 7], [1, 1, 0, 0, 0]),
        ([2, 1, 2, 1], [0, 1, 0, 1]),
        ([3], [0]),
        ([0, 9, 9, 4, 4, 4, 1], [2, 1, 1, 0, 0, 0, 3]),
    ],
)
def test_clusters_are_numbered_the_largest_first_then_the_one_seen_first(labels: Any, tidy: Any) -> None:
    assert tidy_labels(np.array(labels)).tolist() == tidy


@quickly
@given(st.lists(st.integers(-3, 6), min_size=1, max_size=12))
def test_numbering_clusters_changes_names_only(labels: list[int]) -> None:
    tidy = tidy_labels(np.array(labels))
    counts = np.bincount(tidy)
    assert partition_of(tidy) == partition_of(np.array(labels))
    assert np.all(np.diff(counts) <= 0)
    assert counts.min() > 0
    assert np.array_equal(tidy_labels(tidy), tidy)


def test_eigenvalues_that_repeat_are_no_trouble() -> None:
    for similarity in (0.0, 0.01, 0.1, np.exp(-0.4), 0.9, 0.98, 1.0):
        for n in (2, 5, 12, 30, 60):
            S = np.full((n, n), similarity)
            np.fill_diagonal(S, 1.0)
            for degrees in (None, S.sum(axis=1)):
                for count in {1, 2, min(9, n), n}:
                    values, vectors = top_eigenpairs(S, degrees, count)
                    assert values.shape == (count,)
                    assert_allclose(vectors.T @ vectors, np.eye(count), atol=1e-8)


def test_an_eigenvector_has_the_same_sign_everywhere() -> None:
    S = np.asarray(ExchangeSimilarity(two_blocks(between=2.0), 1.0))
    vectors = spectrum_of(S, 3).eigenvectors
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(3)]
    assert np.all(largest > 0)
