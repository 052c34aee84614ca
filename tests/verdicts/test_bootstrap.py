from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from coterie import CoterieRegressor
from coterie.datasets import make_linear_learners
from coterie.verdicts import bootstrap, bootstrap_clustering
from coterie.verdicts.bootstrap import _block_starts, resampled_counts

TRUTHS = [[2.0, 0, 1], [-2.0, 1, 0]]


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 40), st.integers(1, 20), st.integers(0, 2**31))
def test_every_replicate_draws_as_many_rows_as_there_are(n_rows: int, n_replicates: int, seed: int) -> None:
    counts = resampled_counts(n_rows, n_replicates, np.random.default_rng(seed))
    assert counts.shape == (n_rows, n_replicates)
    assert (counts >= 0).all()
    assert (counts.sum(axis=0) == n_rows).all()


def test_rows_are_drawn_alike() -> None:
    counts = resampled_counts(4, 20_000, np.random.default_rng(0))
    assert_allclose(counts.mean(axis=1), 1, atol=0.03)
    assert_allclose(counts.var(axis=1), 1 - 1 / 4, atol=0.03)


def test_many_rows_are_cut_into_blocks() -> None:
    starts, counts = _block_starts(np.array([3, 0, 10]), 4)
    assert counts.tolist() == [3, 0, 4]
    assert starts.tolist() == [0, 1, 2, 3, 5, 8, 10]


def test_rows_that_depend_on_their_neighbours_are_resampled_in_blocks() -> None:
    starts, counts = _block_starts(np.array([9, 0, 10]), 100, 3.0)
    assert counts.tolist() == [3, 0, 4]
    assert starts.tolist() == [0, 3, 6, 9, 11, 14, 16]


def clear(**options: Any) -> CoterieRegressor:
    data = make_linear_learners(8, n_rows=30, coefficients=TRUTHS, random_state=0)
    return CoterieRegressor(["lr"], **options).fit(data.X, data.y, groups=data.groups)


def test_clear_clusters_are_sure() -> None:
    model = clear()
    stability = model.stability_
    assert stability.learner_ids.tolist() == model.learner_ids_.tolist()
    assert_array_equal(stability.membership, np.eye(2)[model.learner_labels_])
    assert_array_equal(model.gains_["membership"], np.ones(8))
    assert stability.n_replicates == 100
    assert_allclose(stability.shares.sum(), 1)
    assert stability.n_clusters[stability.shares.argmax()] == 2


def test_a_given_number_is_not_resampled() -> None:
    stability = clear(n_clusters=2, n_bootstrap=7).stability_
    assert stability.n_clusters.tolist() == [2]
    assert stability.shares.tolist() == [1.0]
    assert stability.n_replicates == 7


def test_it_can_be_turned_off() -> None:
    model = clear(n_bootstrap=0)
    assert model.stability_ is None
    assert np.isnan(model.gains_["membership"]).all()
    assert model.gains_["second_cluster"].tolist() == [1, 0] * 4
    with pytest.raises(ValueError, match="'n_bootstrap' option must be an integer of at least 0"):
        clear(n_bootstrap=-1)


def test_order_changes_nothing() -> None:
    data = make_linear_learners(8, n_rows=25, coefficients=TRUTHS, noise_variance=30.0, random_state=0)
    # Learners in another order, each one's rows as they were.
    turned = np.arange(len(data.y)).reshape(8, 25)[::-1].ravel()
    one = CoterieRegressor(["lr"], n_clusters=2).fit(data.X, data.y, groups=data.groups)
    other = CoterieRegressor(["lr"], n_clusters=2).fit(
        data.X[turned], data.y[turned], groups=data.groups[turned]
    )
    assert 0 < one.gains_["membership"].min() < 1
    assert_array_equal(one.gains_["membership"], other.gains_["membership"][::-1])


def test_blocks_of_rows_say_what_rows_say(monkeypatch: pytest.MonkeyPatch, clustered: Any) -> None:
    data = make_linear_learners(8, n_rows=80, coefficients=TRUTHS, noise_variance=40.0, random_state=0)
    clustering = clustered(data.X, data.y, data.groups, n_clusters=2)[3]
    by_rows = bootstrap_clustering(clustering, n_replicates=400, entropy=0).membership
    monkeypatch.setattr(bootstrap, "MAX_LOSSES_HELD", 1)
    by_blocks = bootstrap_clustering(clustering, n_replicates=400, entropy=0).membership
    assert not np.array_equal(by_rows, by_blocks)
    assert_allclose(by_rows, by_blocks, atol=0.2)


def test_memberships_are_the_shares_of_a_plain_bootstrap(clustered: Any) -> None:
    data = make_linear_learners(8, n_rows=30, coefficients=TRUTHS, noise_variance=20.0, random_state=2)
    clustering = clustered(data.X, data.y, data.groups, n_clusters=2)[3]
    stability = bootstrap_clustering(clustering, n_replicates=2000, entropy=0)
    labels = clustering.partition.aligned_to(clustering.learner_ids).labels
    rows = clustering.losses.by_row(labels)
    rng = np.random.default_rng(0)
    for j in range(8):
        mine = rows[:, clustering.losses.learners.span(j)]
        draws = rng.integers(30, size=(2000, 30))
        nearest = mine[:, draws].mean(axis=-1).argmin(axis=0)
        place = stability.learner_ids.tolist().index(clustering.learner_ids[j])
        assert_allclose(stability.membership[place, 1], nearest.mean(), atol=0.06)


def accuracy_by_membership(n_draws: int) -> tuple[float, float, float]:
    """Return the mean membership of unsure learners and their share of right labels; that of sure ones."""
    unsure, right_unsure, right_sure = [], [], []
    for seed in range(n_draws):
        data = make_linear_learners(
            20, n_rows=20, coefficients=TRUTHS, noise_variance=25.0, random_state=100 + seed
        )
        model = CoterieRegressor(["lr"], n_clusters=2).fit(data.X, data.y, groups=data.groups)
        labels, truth = model.learner_labels_, np.asarray(data.truth)
        if np.mean(labels == truth) < 0.5:
            truth = 1 - truth
        sure = model.gains_["membership"] >= 0.9
        unsure += model.gains_["membership"][~sure].tolist()
        right_unsure += (labels == truth)[~sure].tolist()
        right_sure += (labels == truth)[sure].tolist()
    return float(np.mean(unsure)), float(np.mean(right_unsure)), float(np.mean(right_sure))


def test_who_is_sure_is_right_more_often_than_who_is_not() -> None:
    _, right_unsure, right_sure = accuracy_by_membership(3)
    assert right_sure > 0.85
    assert right_sure > right_unsure


@pytest.mark.slow
def test_memberships_are_about_the_share_of_right_labels() -> None:
    membership, right_unsure, right_sure = accuracy_by_membership(20)
    assert abs(membership - right_unsure) < 0.15
    assert right_sure > 0.9
