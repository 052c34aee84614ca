from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.collaboration.nested import sums as module
from coterie.collaboration.nested.sums import FoldSums, Units
from coterie.rows.learners import gather_learners


def plain(Z, y, weights, owner, rows, n_learners):
    """Moments by a loop over learners."""
    found = []
    for j in range(n_learners):
        mine = rows & (owner == j)
        z, w = Z[mine], weights[mine]
        found.append((w.sum(), w @ z, (w * y[mine]) @ z, w @ y[mine] ** 2, (z * w[:, None]).T @ z))
    return [np.array(part) for part in zip(*found, strict=True)]


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=5),
    st.integers(0, 1000),
    st.booleans(),
    st.integers(1, 4),
)
def test_sums_are_those_over_masks(sizes, seed, weighted, n_folds):
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    X, y = rng.normal(size=(len(owner), 2)), rng.normal(size=len(owner))
    given_weights = rng.uniform(0.2, 3, size=len(owner)) if weighted else None
    learners = gather_learners(X, y, owner, sample_weight=given_weights, caller="test")
    weights = np.ones(len(y)) if learners.weights is None else learners.weights
    # Any masks, as a splitter may make them: a row may be in no training set, or in all.
    training = rng.random((n_folds, len(y))) < 0.6
    Z = np.column_stack([X, np.ones(len(y))])
    sums = FoldSums(Z, y, learners, training)
    for folds in [(), (0,), (0, n_folds - 1), tuple(range(n_folds))]:
        rows = training[list(folds)].all(axis=0)
        np.testing.assert_array_equal(sums.rows(folds), rows)
        found = sums.within(folds)
        expected = plain(Z, y, weights, owner, rows, len(sizes))
        parts = found.counts, found.inputs, found.products, found.squares, found.grams
        for part, by_hand in zip(parts, expected, strict=True):
            np.testing.assert_allclose(part, by_hand, atol=1e-10)
        np.testing.assert_allclose(found.total, expected[-1].sum(axis=0), atol=1e-10)
        np.testing.assert_allclose(sums.total(folds), expected[-1].sum(axis=0), atol=1e-10)
        members = np.arange(len(sizes)) % 2 == 0
        np.testing.assert_allclose(sums.total(folds, members), expected[-1][members].sum(axis=0), atol=1e-10)


def test_moments_of_single_learners_are_not_kept_where_they_are_large(monkeypatch, make_learners):
    learners = make_learners()
    Z, y = np.column_stack([learners.X, np.ones(len(learners.y))]), learners.scalar_y
    training = np.arange(len(y)) % 2 != np.arange(2)[:, None]
    kept = FoldSums(Z, y, learners, training)
    monkeypatch.setattr(module, "MOST_SLOPES", 1)
    other = FoldSums(Z, y, learners, training)
    assert kept.slopes
    assert not other.slopes
    assert other.within((0,)).grams is None
    np.testing.assert_allclose(other.within((0,)).total, kept.within((0,)).total)
    members = np.array([1, 3])
    mask = np.isin(np.arange(5), members)
    expected = kept.within((1,)).take(members)
    taken = other.within((1,)).take(members, other.total((1,), mask))
    np.testing.assert_allclose(taken.total, expected.total)
    np.testing.assert_allclose(taken.products, expected.products)


@given(st.integers(0, 100), st.floats(-1e3, 1e3), st.floats(0.01, 100))
def test_coefficients_predict_the_same_outside(seed, shift, factor):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(9, 3)) * [1, 10, 0.1] + 5
    y = shift + factor * rng.normal(size=9)
    units = Units.of(X, y)
    inside = rng.normal(size=(2, 4))
    outside = units.outside(inside)
    expected = units.middle + units.size * (units.rows(X) @ inside.T)
    found = X @ outside[:, :-1].T + outside[:, -1]
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8 * (1 + abs(shift) + 100 * factor))
    without = units.outside(inside, level=False)
    np.testing.assert_allclose(without[:, -1] + units.middle, outside[:, -1])


def test_units_standardize_and_clip():
    X, y = np.array([[0.0, 7.0], [2.0, 7.0], [4.0, 7.0]]), np.array([5.0, 5.0, 5.0])
    units = Units.of(X, y)
    Z = units.rows(X)
    np.testing.assert_allclose(Z.mean(axis=0), [0, 0, 1])
    assert Z[:, 0].std() == pytest.approx(1)
    assert (units.response(y) == 0).all()
    np.testing.assert_array_equal(units.rows(np.array([[1e9, -1e9]])), units.rows(np.array([[5.2, 7.0]])))


def test_too_many_predictors_leave_levels_only():
    X = np.random.default_rng(0).normal(size=(4, 501))
    units = Units.of(X, np.arange(4.0))
    np.testing.assert_array_equal(units.rows(X), np.ones((4, 1)))
    np.testing.assert_allclose(units.outside(np.array([1.0])), [units.middle + units.size])


def test_lines_go_on_beyond_the_range_by_a_margin() -> None:
    X = np.linspace(0.0, 10.0, 21)[:, None]
    units = Units.of(X, 2 * X[:, 0])
    beyond = units.rows(np.array([[10.0], [12.0], [13.0], [99.0]]))[:, 0] * units.spread + units.centre
    np.testing.assert_allclose(beyond, [10.0, 12.0, 13.0, 13.0])
