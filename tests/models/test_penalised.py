"""The quick lasso and elastic net are scikit-learn's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import ElasticNetCV, LassoCV
from sklearn.utils.estimator_checks import check_estimator

from coterie.models.penalised import QuickElasticNet, QuickLasso

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
