import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.collaboration.nested.effects import (
    MOST_SLOPES,
    OFFSET_RATIOS,
    SLOPE_RATIOS,
    OwnRows,
    best_ratios,
    linear_values,
    slope_units,
)


def learners_of(offset: float, slope: float, n_learners: int = 60, n_rows: int = 30, seed: int = 0):
    """Rows and residuals of learners whose offsets and slopes have these standard deviations."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n_learners):
        X = rng.normal(size=(n_rows, 2))
        own = offset * rng.normal() + X @ (slope * rng.normal(size=2))
        found.append((X, (own + rng.normal(size=n_rows))[:, None]))
    return found


def ratios_of(found) -> np.ndarray:
    units = np.ones(2)
    summed = sum(OwnRows.of(X, units, 1.0).likelihoods(r) for X, r in found)
    return best_ratios(summed, slopes=True)[0]


def test_the_ratios_are_found():
    offset, slope = ratios_of(learners_of(1.0, 0.3))
    assert 0.3 <= offset <= 3.2
    assert 0.03 <= slope <= 0.32


def test_where_there_is_nothing_of_ones_own_nothing_is_found():
    offset, slope = ratios_of(learners_of(0.0, 0.0))
    assert offset <= 0.01
    assert slope <= 0.01
    assert ratios_of(learners_of(1.0, 0.0))[1] <= 0.01


def test_likelihoods_are_those_of_the_mixed_model():
    # Against the density of a multivariate normal with the noise known: a prior of endless weight.
    import coterie.collaboration.nested.effects as effects

    rng = np.random.default_rng(0)
    X, r = rng.normal(size=(8, 2)), rng.normal(size=(8, 1))
    Z = X - X.mean(axis=0)
    found = OwnRows.of(X, np.ones(2), 1.0).likelihoods(r)[0]
    for a, b in ((0, 0), (5, 3), (9, 7)):
        V = np.eye(8) + OFFSET_RATIOS[a] + SLOPE_RATIOS[b] * Z @ Z.T
        square = (r.T @ np.linalg.solve(V, r)).item()
        rows = 8 + effects.PRIOR_ROWS
        expected = -0.5 * (rows * np.log(square + effects.PRIOR_ROWS) + np.linalg.slogdet(V)[1])
        assert found[a, b] == pytest.approx(expected)


def test_coefficients_are_those_of_ridge_regression():
    rng = np.random.default_rng(0)
    X, r = rng.normal(size=(9, 2)), rng.normal(size=(9, 1))
    coefficients = OwnRows.of(X, np.array([1.0, 2.0]), 1.0).coefficients(r, np.array([[0.5, 0.25]]))
    Z = (X - X.mean(axis=0)) / [1, 2]
    offset = r.mean() * 9 * 0.5 / (1 + 9 * 0.5)
    slopes = np.linalg.solve(Z.T @ Z + np.eye(2) / 0.25, Z.T @ (r - r.mean()))[:, 0]
    np.testing.assert_allclose(linear_values(X, coefficients)[:, 0], offset + Z @ slopes)


@given(st.floats(1e-3, 1e3), st.floats(-1e3, 1e3))
def test_units_of_a_predictor_and_its_zero_do_not_matter(factor, shift):
    rng = np.random.default_rng(0)
    X, r = rng.normal(size=(12, 1)), rng.normal(size=(12, 1))
    ratios = np.array([[1.0, 0.1]])
    plain = OwnRows.of(X, np.ones(1), 1.0).coefficients(r, ratios)
    other = OwnRows.of(factor * X + shift, np.array([factor]), 1.0).coefficients(r, ratios)
    np.testing.assert_allclose(
        linear_values(X, plain), linear_values(factor * X + shift, other), rtol=1e-5, atol=1e-7
    )


def test_a_predictor_that_hardly_anybody_sees_vary_has_the_unit_of_those_who_do():
    assert slope_units(np.array([[0.0, 1.0], [0.0, 3.0], [4.0, 2.0]])).tolist() == [4.0, 2.0]
    units = slope_units(np.zeros((3, 1)))
    rows = OwnRows.of(np.ones((4, 1)), units, 1.0)
    coefficients = rows.coefficients(np.ones((4, 1)), np.array([[100.0, 1.0]]))
    assert coefficients[0, 0] == 0
    assert coefficients[0, 1] == pytest.approx(1, abs=0.01)


def test_many_predictors_leave_an_offset():
    X = np.random.default_rng(0).normal(size=(10, MOST_SLOPES + 1))
    coefficients = OwnRows.of(X, np.ones(MOST_SLOPES + 1), 1.0).coefficients(
        np.full((10, 2), 3.0), np.tile([100.0, 1.0], (2, 1))
    )
    assert coefficients.shape == (2, 1)
    np.testing.assert_allclose(linear_values(X, coefficients), 3.0, rtol=2e-3)
