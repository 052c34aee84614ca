import math

import numpy as np
import pytest
from sklearn.datasets import make_friedman2, make_friedman3

from reproductions.simulation2.friedman import friedman2, friedman3, friedman_predictors


def test_functions_agree_with_plain_arithmetic() -> None:
    X = friedman_predictors(n_rows=5, n_features=7, random_state=1)
    for row, second, third in zip(X.tolist(), friedman2(X), friedman3(X), strict=True):
        x1, x2, x3, x4 = row[:4]
        inner = x2 * x3 - 1 / (x2 * x4)
        assert math.isclose(second, math.sqrt(x1**2 + inner**2))
        assert math.isclose(third, math.atan(inner / x1))


def test_functions_agree_with_scikit_learn() -> None:
    X, y = make_friedman2(n_samples=50, noise=0.0, random_state=0)
    np.testing.assert_allclose(friedman2(X), y)
    X, y = make_friedman3(n_samples=50, noise=0.0, random_state=0)
    np.testing.assert_allclose(friedman3(X), y)


def test_third_function_has_its_limit_at_zero() -> None:
    assert friedman3([[0.0, 1.0, 2.0, 1.0]])[0] == pytest.approx(math.pi / 2)


def test_only_four_columns_count() -> None:
    X = friedman_predictors(n_rows=20, n_features=10)
    for function in (friedman2, friedman3):
        assert np.array_equal(function(X), function(X[:, :4]))


def test_predictors_fill_their_ranges() -> None:
    X = friedman_predictors(n_rows=20_000, n_features=6, random_state=0)
    low = np.array([0, 40 * math.pi, 0, 1])
    high = np.array([100, 560 * math.pi, 1, 11])
    share = (X[:, :4] - low) / (high - low)
    assert share.min() >= 0
    assert share.max() <= 1
    # A uniform share has mean 1/2 and variance 1/12; both are met within five standard errors.
    assert np.abs(share.mean(axis=0) - 1 / 2).max() < 5 * math.sqrt(1 / 12 / 20_000)
    assert np.abs(share.var(axis=0) - 1 / 12).max() < 5 * math.sqrt(1 / 180 / 20_000)
    assert np.abs(X[:, 4:].mean(axis=0)).max() < 5 / math.sqrt(20_000)
    assert np.abs(X[:, 4:].var(axis=0) - 1).max() < 5 * math.sqrt(2 / 20_000)


def test_errors_are_a_sentence() -> None:
    with pytest.raises(ValueError, match=r"'X' argument of friedman2 .* Got .* shape \(5, 3\)\."):
        friedman2(np.ones((5, 3)))
    with pytest.raises(ValueError, match=r"'X' argument of friedman3 .* Got .* shape \(4,\)\."):
        friedman3(np.ones(4))
    with pytest.raises(ValueError, match=r"at least 4, because .* Got 3\."):
        friedman_predictors(n_features=3)
    with pytest.raises(ValueError, match=r"'n_rows' .* at least 1\. Got 0\."):
        friedman_predictors(n_rows=0)
