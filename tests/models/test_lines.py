"""Least squares in any units: what scikit-learn would leave out counts."""

import numpy as np
from sklearn.linear_model import LinearRegression

from coterie.candidates import make_candidates
from coterie.models.lines import Line

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(50, 3))
Y = X @ [1.0, 2.0, -1.0] + 0.1 * GENERATOR.normal(size=50)


def test_columns_of_similar_size_are_fitted_as_by_scikit_learn():
    for scaled in (X, X * [1, 20, 0.1], np.column_stack([X[:, 0], np.ones(50)])):
        mine, theirs = Line().fit(scaled, Y), LinearRegression().fit(scaled, Y)
        np.testing.assert_array_equal(mine.coef_, theirs.coef_)
        assert mine.intercept_ == theirs.intercept_


def test_a_small_column_counts_beside_a_large_one():
    # A column of 1e9 made scikit-learn 1.9 leave out the two others.
    expected = LinearRegression().fit(X, Y)
    for powers in ([0, 30, 0], [-60, 0, 60], [0, 0, 12]):
        line = Line().fit(np.ldexp(X, powers), Y)
        np.testing.assert_allclose(np.ldexp(line.coef_, powers), expected.coef_, rtol=1e-9)
        np.testing.assert_allclose(line.predict(np.ldexp(X, powers)), expected.predict(X), rtol=1e-9)


def test_weights_reach_it():
    weights = GENERATOR.uniform(size=50)
    expected = LinearRegression().fit(X, Y, weights).coef_
    line = Line().fit(np.ldexp(X, [0, 40, 0]), Y, weights)
    np.testing.assert_allclose(np.ldexp(line.coef_, [0, 40, 0]), expected, rtol=1e-9)


def test_it_is_the_candidate_lr():
    assert type(make_candidates("lr")["lr"]) is Line
