from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from coterie.method.refine.reassign import _most_probable, _NoiseMoments, log_probability, reassigned_labels

RIDGE = 1e-6


def moments(X, y, owner):
    """Second moments of every learner's rows with a column of ones."""
    rows = [np.column_stack([np.ones(np.sum(owner == j)), X[owner == j]]) for j in np.unique(owner)]
    responses = [y[owner == j] for j in np.unique(owner)]
    G = np.array([Z.T @ Z for Z in rows])
    c = np.array([Z.T @ r[:, None] for Z, r in zip(rows, responses, strict=True)])
    return G, c, np.array([r @ r for r in responses])


def reassign(data, labels, closed=()):
    G, c, squares = moments(*data)
    ridge = RIDGE * np.eye(G.shape[-1])
    open_to = np.ones((max(labels) + 1, len(G)), dtype=bool)
    open_to[:, list(closed)] = False
    return reassigned_labels(G, c, squares, len(data[1]), ridge, np.array(labels), open_to)


def two_truths(n_learners=8, n=20, noise=0.5, seed=0):
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(n_learners), n)
    X = rng.normal(size=(len(owner), 2))
    slopes = np.where(owner % 2, -1.0, 1.0)
    return X, slopes * X[:, 0] + noise * rng.normal(size=len(owner)), owner


@given(st.integers(0, 50), st.floats(0.01, 100.0))
@settings(deadline=None)
def test_the_probability_is_that_of_the_normal_distribution(seed, precision):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(5, 2)), rng.normal(size=5)
    exact = multivariate_normal(np.zeros(5), np.eye(5) + X @ X.T / precision).logpdf(y)
    constant = -0.5 * (y @ y + 5 * np.log(2 * np.pi))
    assert log_probability(X.T @ X, X.T @ y[:, None], precision) + constant == pytest.approx(exact)


def test_right_labels_stay_and_a_learner_in_the_wrong_cluster_moves():
    truth = np.arange(8) % 2
    assert reassign(two_truths(), truth).tolist() == truth.tolist()
    wrong = truth.copy()
    wrong[3] = 0
    assert reassign(two_truths(), wrong).tolist() == truth.tolist()


def test_several_in_the_wrong_cluster_move():
    truth = np.arange(12) % 2
    wrong = truth.copy()
    wrong[[1, 4, 9]] = 1 - wrong[[1, 4, 9]]
    assert reassign(two_truths(12), wrong).tolist() == truth.tolist()


def test_learners_whose_losses_are_clear_stay_whatever_is_probable():
    wrong = np.arange(8) % 2
    wrong[[3, 6]] = 0, 1
    found = reassign(two_truths(), wrong, closed=[3])
    assert found[3] == 0
    assert found[6] == 0


def test_no_cluster_becomes_empty_though_one_truth_needs_no_second():
    rng = np.random.default_rng(0)
    owner = np.repeat(np.arange(6), 20)
    X = rng.normal(size=(len(owner), 2))
    y = X[:, 0] + rng.normal(size=len(owner))
    for labels in ([0, 0, 0, 0, 0, 1], [0, 1, 0, 1, 0, 1], [0, 1, 2, 2, 2, 2]):
        found = reassign((X, y, owner), labels)
        assert len(set(found.tolist())) == len(set(labels))


@given(st.integers(0, 30))
@settings(deadline=None)
def test_settling_never_makes_the_rows_less_probable(seed):
    rng = np.random.default_rng(seed)
    X, y, owner = two_truths(6, 8, noise=2.0, seed=seed)
    labels = np.r_[0, 1, rng.integers(0, 2, 4)]
    G, c, squares = moments(X, y, owner)
    ridge = RIDGE * np.eye(3)
    found = reassigned_labels(G, c, squares, len(y), ridge, labels, np.ones((2, 6), dtype=bool))
    one = np.linalg.solve(G.sum(axis=0) + ridge, c.sum(axis=0))
    # In the units of noise of the start, which are those of the search.
    about = c - G @ one
    sums = _NoiseMoments(G, about).of_clusters(labels, 2)
    fitted = np.linalg.solve(sums[0] + ridge, sums[1])
    residuals = squares - 2 * np.einsum("jdc,dc->j", c, one) + np.einsum("jde,dc,ec->j", G, one, one)
    noise = (residuals.sum() - np.sum(fitted * sums[1])) / (len(y) - 6)
    rows = _NoiseMoments(G / noise, about / noise)
    before, after = (_most_probable(rows, tried, 2)[0] for tried in (labels, found))
    assert after >= before - 1e-9
    # Few learners: all partitions can be looked at, and none that differs in one learner is more probable
    # under the prior that the answer itself prefers.
    best = max(_most_probable(rows, np.array(p), 2)[0] for p in product((0, 1), repeat=6) if 0 < sum(p) < 6)
    assert after <= best + 1e-9


@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_units_do_not_matter(factor):
    X, y, owner = two_truths(noise=1.5, seed=3)
    labels = np.array([0, 1, 0, 1, 0, 0, 1, 1])
    assert reassign((X, y, owner), labels).tolist() == reassign((X, factor * y, owner), labels).tolist()


def test_without_noise_the_labels_stay():
    X, y, owner = two_truths(noise=0.0)
    labels = np.arange(8) % 2
    assert reassign((X, y, owner), labels).tolist() == labels.tolist()
