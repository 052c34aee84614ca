from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.collaboration.nested.line import Ratios, fit_line, likely_ratios, own_effects
from coterie.collaboration.nested.sums import FoldSums
from coterie.rows.learners import gather_learners


def table(offset=0.0, slope=0.0, n_learners=12, n=15, noise=0.5, seed=0, weighted=False):
    """Rows of learners with offsets and slopes of their own, and their moments."""
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(n_learners), n)
    X = rng.normal(size=(len(owner), 2))
    own = slope * rng.normal(size=(n_learners, 2))
    y = ((X * ([1.0, -0.5] + own[owner])).sum(axis=1)) + offset * rng.normal(size=n_learners)[owner]
    y = y + noise * rng.normal(size=len(owner))
    weights = rng.uniform(0.5, 2, size=len(y)) if weighted else None
    learners = gather_learners(X, y, owner, sample_weight=weights, caller="test")
    Z = np.column_stack([X, np.ones(len(y))])
    return Z, y, learners, FoldSums(Z, y, learners, np.ones((1, len(y)), dtype=bool)).within()


def dense(Z, y, learners, ratios):
    """The same model by the covariance of all rows: common part, departures, minus twice the likelihood."""
    D = np.diag([ratios.slope] * (Z.shape[1] - 1) + [ratios.offset])
    weights = np.ones(len(y)) if learners.weights is None else learners.weights
    same = learners.owner[:, None] == learners.owner
    V = np.diag(1 / weights) + same * (Z @ D @ Z.T)
    penalty = np.array([ratios.ridge] * (Z.shape[1] - 1) + [1e-6])
    common = np.linalg.solve(Z.T @ np.linalg.solve(V, Z) + np.diag(penalty), Z.T @ np.linalg.solve(V, y))
    residuals = np.linalg.solve(V, y - Z @ common)
    own = [D @ Z[learners.span(j)].T @ residuals[learners.span(j)] for j in range(len(learners))]
    return common, np.array(own)


@settings(max_examples=20, deadline=None)
@given(
    st.sampled_from([0.0, 0.1, 5.0]),
    st.sampled_from([0.0, 0.03, 2.0]),
    st.sampled_from([0.1, 10.0]),
    st.booleans(),
    st.integers(0, 99),
)
def test_the_line_is_that_of_the_dense_mixed_model(offset, slope, ridge, weighted, seed):
    Z, y, learners, sums = table(1.0, 0.5, n_learners=4, n=5, seed=seed, weighted=weighted)
    ratios = Ratios(offset, slope, ridge)
    line = fit_line(sums, ratios)
    common, own = dense(Z, y, learners, ratios)
    # A variance of zero is 1e-9 where slopes vary.
    np.testing.assert_allclose(line.common, common, atol=1e-6)
    np.testing.assert_allclose(line.own, own, atol=1e-6)
    expected = np.einsum("nq,nq->n", Z, common + own[learners.owner])
    np.testing.assert_allclose(line.values(Z, learners.owner), expected, atol=1e-5)


def test_without_departures_it_is_a_ridge_regression():
    Z, y, _, sums = table(1.0, 0.5)
    line = fit_line(sums, Ratios(0.0, 0.0, 3.0))
    expected = np.linalg.solve(Z.T @ Z + np.diag([3.0, 3.0, 1e-6]), Z.T @ y)
    np.testing.assert_allclose(line.common, expected)
    assert not line.own.any()


def log_likelihood(Z, y, learners, ratios):
    """Minus twice the marginal log likelihood by the covariance of all rows, the level of all nearly free."""
    D = np.diag([ratios.slope] * (Z.shape[1] - 1) + [ratios.offset])
    prior = np.diag([1 / ratios.ridge] * (Z.shape[1] - 1) + [1e6])
    same = learners.owner[:, None] == learners.owner
    V = np.eye(len(y)) + same * (Z @ D @ Z.T) + Z @ prior @ Z.T
    return len(y) * np.log(y @ np.linalg.solve(V, y) / len(y)) + np.linalg.slogdet(V)[1]


def test_the_likelihood_is_that_of_all_rows_together():
    from coterie.collaboration.nested.line import _solved

    Z, y, learners, sums = table(1.0, 0.5, n_learners=4, n=5)
    for ratios in (Ratios(0.5, 0.0, 1.0), Ratios(3.0, 0.2, 10.0), Ratios(0.1, 2.0, 0.1)):
        assert _solved(sums, ratios)[1] == pytest.approx(log_likelihood(Z, y, learners, ratios), rel=1e-5)


def test_learners_alike_do_not_depart():
    ratios = likely_ratios([table()[-1]])
    assert ratios.offset <= 0.02
    assert ratios.slope <= 0.02


def test_offsets_and_slopes_are_found_where_they_are():
    far = likely_ratios([table(offset=5.0)[-1]])
    # Five squared over half squared is a hundred.
    assert far.offset >= 30
    assert far.slope <= 0.02
    both = likely_ratios([table(offset=5.0, slope=1.0)[-1]])
    assert 1 <= both.slope <= 10
    # Two parts at different levels, of learners alike inside each.
    parts = [table(seed=s)[-1] for s in (1, 2)]
    assert likely_ratios(parts).offset <= 0.05


def test_who_has_no_rows_does_not_depart():
    _, _, learners, _ = table(2.0, 1.0)
    Z = np.column_stack([learners.X, np.ones(len(learners.y))])
    training = (learners.owner != 3)[None]
    sums = FoldSums(Z, learners.scalar_y, learners, training).within((0,))
    for ratios in (Ratios(1.0), Ratios(1.0, 1.0)):
        own = own_effects(sums, np.ones(3), ratios)
        assert not own[3].any()
        assert own[2].any()
