from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.kernels.limits import Limits
from coterie.method.refine import moment_starts as moment_search
from coterie.method.refine.moment_starts import SEARCH, search_moments


def moments(truths: Any, noise: float = 0.1, n_rows: int = 30, seed: int = 0) -> tuple[Any, Any]:
    """Second moments of learners whose coefficients are the rows of ``truths``."""
    truths = np.asarray(truths, dtype=float)
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((len(truths), n_rows, truths.shape[1]))
    y = np.einsum("lnp,lp->ln", X, truths) + noise * rng.standard_normal(X.shape[:2])
    return X.transpose(0, 2, 1) @ X, np.einsum("lnp,ln->lp", X, y)[..., None]


def loss_by_hand(G: Any, c: Any, labels: Any, ridge: Any) -> tuple[float, float]:
    """Return the loss of a labelling, and what the ridge adds to it."""
    total, penalty, c = 0.0, 0.0, c[..., 0]
    for k in set(labels.tolist()):
        members = labels == k
        w = np.linalg.solve(G[members].sum(axis=0) + ridge, c[members].sum(axis=0))
        total += float(w @ G[members].sum(axis=0) @ w - 2 * c[members].sum(axis=0) @ w)
        penalty += float(w @ ridge @ w)
    return total, penalty


def same_partition(labels: Any, truth: Any) -> bool:
    pairs = set(zip(labels.tolist(), truth.tolist(), strict=True))
    return len(pairs) == len(set(labels.tolist())) == len(set(truth.tolist()))


@pytest.mark.parametrize("n_truths", [2, 3])
def test_truths_that_lie_far_apart_are_found_from_moments_alone(n_truths: int) -> None:
    truth = np.arange(12) % n_truths
    G, c = moments(3 * np.eye(4)[truth])
    assert same_partition(search_moments(G, c, 1e-6 * np.eye(4), n_truths, seed=0), truth)


def test_weak_signals_are_found_that_learners_alone_do_not_show() -> None:
    # A learner's own coefficients are off by more than the truths are apart.
    truth = np.arange(40) % 2
    G, c = moments(np.where(truth, 0.3, -0.3)[:, None] * np.ones((1, 10)), noise=2.0, n_rows=60)
    own = np.linalg.solve(G, c)[..., 0]
    assert np.mean(np.sum((own - own[truth == 0].mean(axis=0)) ** 2, axis=1)[truth == 0]) > 0.6
    assert same_partition(search_moments(G, c, 1e-6 * np.eye(10), 2, seed=0), truth)


@settings(max_examples=25, deadline=None)
@given(n_clusters=st.integers(1, 6), seed=st.integers(0, 99))
def test_the_labelling_is_no_worse_than_its_starts_or_than_one_cluster(n_clusters: int, seed: int) -> None:
    G, c = moments(np.random.default_rng(seed).standard_normal((6, 3)), noise=1.0, seed=seed)
    ridge = 1e-3 * np.eye(3)
    found = search_moments(G, c, ridge, n_clusters, seed)
    assert found.shape == (6,)
    assert 0 <= found.min() <= found.max() < n_clusters
    loss = loss_by_hand(G, c, found, ridge)[0]
    # Each step lowers the loss with the ridge's penalty, so that no start is better by more than its penalty.
    generator = np.random.default_rng(seed)
    for _ in range(SEARCH.starts):
        start = generator.permutation(np.arange(6) % n_clusters)
        assert loss <= sum(loss_by_hand(G, c, start, ridge)) + 1e-9
    # Clusters that all predict like the one model of everybody pay its penalty once each.
    one, penalty = loss_by_hand(G, c, np.zeros(6, dtype=int), ridge)
    assert loss <= one + n_clusters * penalty + 1e-9


def test_learners_without_information_do_not_break_the_search() -> None:
    found = search_moments(np.zeros((4, 2, 2)), np.zeros((4, 2, 1)), np.eye(2), 2, seed=0)
    assert found.shape == (4,)


def test_of_many_learners_a_sample_is_searched_and_the_others_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    truth = np.arange(60) % 2
    X = rng.normal(size=(60, 30, 3))
    y = np.einsum("lnp,lp->ln", X, np.array([[1.0, -1, 2], [-2.0, 1, 0]])[truth])
    G, c = np.einsum("lnp,lnq->lpq", X, X), np.einsum("lnp,ln->lp", X, y)[..., None]
    monkeypatch.setattr(moment_search, "LIMITS", Limits(many=20))
    best = moment_search.search_moments(G, c, 1e-6 * np.eye(3), 2, seed=0)
    assert best.shape == (60,)
    assert len(set(zip(best.tolist(), truth.tolist(), strict=True))) == 2
