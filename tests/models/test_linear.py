"""Least squares in any units: what scikit-learn would leave out counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import ElasticNetCV, LassoCV, LinearRegression
from sklearn.utils.estimator_checks import check_estimator

from coterie.candidates import make_candidates
from coterie.models.linear import Line, QuickElasticNet, QuickLasso

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


PAIRS = [(QuickLasso, LassoCV), (QuickElasticNet, ElasticNetCV)]


def rows(n: int, p: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n + p)
    X = rng.normal(size=(n, p))
    return X, X[:, 0] - X[:, 1] + rng.normal(size=n), rng.uniform(0.5, 2, n)


def assert_same(mine: Any, theirs: Any) -> None:
    assert mine.alpha_ == theirs.alpha_
    assert mine.intercept_ == theirs.intercept_
    np.testing.assert_array_equal(mine.coef_, theirs.coef_)
    np.testing.assert_array_equal(mine.mse_path_, theirs.mse_path_)


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(25, 5), (100, 20), (30, 60)])
def test_the_fit_is_that_of_scikit_learn(pair: tuple, shape: tuple[int, int], weighted: bool) -> None:
    X, y, weights = rows(*shape)
    given = {"sample_weight": weights} if weighted else {}
    assert_same(*(kind(cv=2).fit(X, y, **given) for kind in pair))


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("table", [np.float32, np.asfortranarray, sparse.csc_array])
def test_other_tables_too(pair: tuple, table: Any) -> None:
    X, y, _ = rows(40, 6)
    assert_same(*(kind(cv=2).fit(table(X), y) for kind in pair))


@pytest.mark.parametrize("pair", PAIRS)
def test_rows_stay_as_they_were(pair: tuple) -> None:
    X, y, _ = rows(40, 6)
    X.flags.writeable = y.flags.writeable = False
    assert_same(*(kind(cv=2).fit(X, y) for kind in pair))


@pytest.mark.parametrize("kind", [QuickLasso, QuickElasticNet])
def test_they_are_scikit_learn_estimators(kind: type) -> None:
    as_theirs = {
        f"check_sample_weight_equivalence_on_{form}_data": "as scikit-learn's" for form in ("dense", "sparse")
    }
    check_estimator(kind(cv=2), on_skip=None, expected_failed_checks=as_theirs, on_fail="raise")
