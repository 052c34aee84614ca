from typing import Any

import numpy as np
from numpy.testing import assert_allclose

from coterie.verdicts.cluster_fit import is_worse, measure_cluster_fit, paired_excess


def test_the_excess_is_paired_over_the_rows_of_each_learner() -> None:
    first = np.array([2.0, 4.0, 6.0, 1.0, 1.0])
    second = np.array([1.0, 1.0, 1.0, 0.0, 2.0])
    mean, error = paired_excess(first, second, np.array([0, 3]), np.array([3, 2]))
    assert_allclose(mean, [3.0, 0.0])
    assert_allclose(error, [np.std([1, 3, 5], ddof=1) / np.sqrt(3), np.std([1, -1], ddof=1) / np.sqrt(2)])


def test_dependent_rows_widen_the_standard_error() -> None:
    rows = np.array([2.0, 4.0, 6.0]), np.ones(3), np.array([0]), np.array([3])
    assert_allclose(paired_excess(*rows, 9.0)[1], 3 * paired_excess(*rows)[1])


def test_one_row_proves_nothing() -> None:
    mean, error = paired_excess(np.array([9.0]), np.zeros(1), np.zeros(1, dtype=int), np.ones(1, dtype=int))
    assert error[0] == np.inf
    assert not is_worse(mean, error, np.ones(1), np.ones(1), 0.01)[0]


def test_a_sure_but_negligible_excess_is_no_excess() -> None:
    mean, error = np.array([1e-4, 1e-2]), np.array([1e-9, 1e-9])
    assert is_worse(mean, error, np.full(2, 50), np.ones(2), 0.01).tolist() == [False, True]


def test_the_odd_one_fits_nowhere_and_the_others_fit_together(clustered: Any, odd_one_out: Any) -> None:
    _, selection, _, clustering, coterie = clustered(*odd_one_out)
    cluster_fit = measure_cluster_fit(clustering, selection, coterie)
    assert clustering.partition.labels.tolist() == [0, 0, 0, 1, 0, 0, 0, 0]
    assert cluster_fit.fits.tolist() == [[j != 3, False] for j in range(8)]
    assert cluster_fit.nearest_other.tolist() == [1, 1, 1, 0, 1, 1, 1, 1]
    # Alone in its cluster, it is predicted by nobody else there.
    assert cluster_fit.losses[3, 1] == np.inf
    assert np.isfinite(cluster_fit.losses[3, 0])
    assert cluster_fit.related.tolist() == [True, True]


def test_with_one_cluster_there_is_no_other(clustered: Any, odd_one_out: Any) -> None:
    _, selection, _, clustering, coterie = clustered(*odd_one_out, n_clusters=1)
    cluster_fit = measure_cluster_fit(clustering, selection, coterie)
    assert cluster_fit.nearest_other.tolist() == [-1] * 8
    assert not cluster_fit.fits[3, 0]
    assert cluster_fit.fits[[0, 1, 2, 4, 5, 6, 7], 0].all()


def test_responses_without_relation_are_seen_as_such(clustered: Any, odd_one_out: Any) -> None:
    X, y, groups = odd_one_out
    rng = np.random.default_rng(1)
    noise = np.isin(groups, ["learner 1", "learner 3", "learner 5"])
    y = np.where(noise, rng.normal(size=len(y)), y)
    _, selection, _, clustering, coterie = clustered(X, y, groups)
    cluster_fit = measure_cluster_fit(clustering, selection, coterie)
    labels = clustering.partition.labels
    assert cluster_fit.related[labels].tolist() == [True, False, True, False, True, False, True, True]


def test_a_learner_of_many_rows_fits_with_one_of_few(clustered: Any) -> None:
    # Predicted by the small one alone, the large one loses much; together with it, nothing.
    rng = np.random.default_rng(3)
    sizes = [400, 12, 60, 60]
    groups = np.repeat(["a", "b", "c", "d"], sizes)
    X = rng.normal(size=(sum(sizes), 4))
    truth = np.where(np.isin(groups, ["a", "b"])[:, None], [2.0, 1, 0, 0], [-2.0, 0, 1, 3])
    y = (X * truth).sum(axis=1) + rng.normal(size=len(X))
    _, selection, _, clustering, coterie = clustered(X, y, groups, n_clusters=2)
    cluster_fit = measure_cluster_fit(clustering, selection, coterie)
    assert clustering.partition.labels.tolist() == [0, 0, 1, 1]
    assert cluster_fit.fits[0, 0]
