import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from coterie.kernels.kmeans import kmeans


def test_points_that_lie_in_heaps_are_found() -> None:
    points = np.array([[0.0], [1.0], [10.0], [14.0], [15.0]])[None]
    labels, sums = kmeans(points, 2, np.random.default_rng(0))
    assert labels[0].tolist() in ([0, 0, 1, 1, 1], [1, 1, 0, 0, 0])
    assert_allclose(sums, [0.5 + 14.0])


def test_one_cluster_has_the_total_sum() -> None:
    points = np.array([[[0.0, 0.0], [2.0, 0.0]], [[0.0, 3.0], [0.0, 9.0]]])
    labels, sums = kmeans(points, 1, np.random.default_rng(0))
    assert labels.tolist() == [[0, 0], [0, 0]]
    assert_allclose(sums, [2.0, 18.0])


def test_as_many_clusters_as_points_leave_nothing_within() -> None:
    points = np.random.default_rng(0).normal(size=(3, 5, 2))
    labels, sums = kmeans(points, 5, np.random.default_rng(0))
    assert_allclose(sums, 0.0, atol=1e-12)
    assert all(len(set(row)) == 5 for row in labels.tolist())


def test_sets_are_clustered_apart_from_each_other() -> None:
    rng = np.random.default_rng(0)
    heaps = rng.normal(size=(6, 30, 2)) * 0.1 + 5 * np.eye(3, 2)[np.arange(30) % 3]
    labels, sums = kmeans(heaps, 3, np.random.default_rng(1))
    for row in labels:
        assert [len(set(row[k::3].tolist())) for k in range(3)] == [1, 1, 1]
    assert np.all(sums < 3)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(seed=st.integers(0, 1000), k=st.integers(1, 6))
def test_the_sum_is_that_of_the_labels(seed: int, k: int) -> None:
    points = np.random.default_rng(seed).normal(size=(2, 12, 3))
    labels, sums = kmeans(points, k, np.random.default_rng(seed))
    for rows, mine, total in zip(points, labels, sums, strict=True):
        heaps = [rows[mine == label] for label in np.unique(mine)]
        assert total == pytest.approx(sum(((heap - heap.mean(axis=0)) ** 2).sum() for heap in heaps))


@settings(max_examples=20, deadline=None, derandomize=True)
@given(seed=st.integers(0, 1000))
def test_more_clusters_leave_less_within(seed: int) -> None:
    points = np.random.default_rng(seed).normal(size=(1, 15, 2))
    sums = [kmeans(points, k, np.random.default_rng(0))[1][0] for k in (1, 2, 4, 8, 15)]
    assert np.all(np.diff(sums) < 0)


def test_points_that_coincide_are_no_trouble() -> None:
    labels, sums = kmeans(np.ones((1, 6, 2)), 3, np.random.default_rng(0))
    assert_allclose(sums, 0.0)
    assert len(set(labels[0].tolist())) == 1


def test_the_best_of_several_starts_is_kept() -> None:
    points = np.random.default_rng(3).normal(size=(1, 60, 2))
    few, many = (kmeans(points, 6, np.random.default_rng(0), restarts=n)[1][0] for n in (1, 30))
    assert many <= few
