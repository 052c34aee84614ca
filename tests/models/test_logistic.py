"""Logistic regression whose penalty is chosen by rows left out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from coterie.models.logistic import QuickLogistic, deviance


@parametrize_with_checks(
    [QuickLogistic()],
    expected_failed_checks=lambda _: {
        "check_sample_weight_equivalence_on_dense_data": "a row of weight two is left out whole"
    },
)
def test_scikit_learn_s_own_checks_pass(estimator, check):
    check(estimator)


def rows(n=80, p=3, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * [1, 10, 0.1][:p]
    scores = X / X.std(axis=0) @ rng.normal(size=(p, n_classes)) + rng.gumbel(size=(n, n_classes))
    return X, scores.argmax(axis=1)


@pytest.mark.parametrize("alpha", [0.1, 1.0, 30.0])
def test_coefficients_are_those_of_scikit_learn(alpha):
    X, y = rows()
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    ours = QuickLogistic(alphas=(alpha,)).fit(X, y)
    theirs = LogisticRegression(C=1 / alpha, tol=1e-10, max_iter=1000).fit(Z, y)
    assert_allclose(ours.coef_ * X.std(axis=0), theirs.coef_, rtol=1e-4, atol=1e-5)
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(Z), atol=1e-5)


def test_the_penalty_is_the_one_that_loses_least_with_each_row_left_out():
    X, y = rows(n=40)
    alphas = (0.01, 1.0, 100.0)
    losses = []
    for alpha in alphas:
        leave_one_out = []
        for row in range(len(y)):
            kept = np.arange(len(y)) != row
            model = QuickLogistic(alphas=(alpha,)).fit(X[kept], y[kept])
            leave_one_out.append(deviance(y[row], model.decision_function(X[[row]])[0]))
        losses.append(np.mean(leave_one_out))
    best = QuickLogistic(alphas=(alphas[int(np.argmin(losses))],)).fit(X, y)
    assert_allclose(QuickLogistic(alphas=alphas).fit(X, y).coef_, best.coef_, rtol=1e-6)


def test_several_classes_have_a_line_each_and_shares_that_sum_to_one():
    X, y = rows(n_classes=4, n=200)
    model = QuickLogistic().fit(X, y)
    assert model.coef_.shape == (4, 3)
    chances = expit(X @ model.coef_.T + model.intercept_)
    assert_allclose(model.predict_proba(X), chances / chances.sum(axis=1, keepdims=True))
    assert model.score(X, y) > 0.5


def test_separable_rows_and_more_predictors_than_rows_have_a_finite_answer():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 40))
    X[:, 1:20] += 3 * X[:, :1]
    model = QuickLogistic().fit(X, X[:, 0] > 0)
    assert np.isfinite(model.predict_proba(X)).all()
    assert model.score(X, X[:, 0] > 0) > 0.9


def test_weights_are_as_good_as_repeated_rows():
    X, y = rows(n=30)
    weights = np.arange(30) % 3 + 1
    alone = QuickLogistic(alphas=(1.0,)).fit(X, y, sample_weight=weights)
    again = np.repeat(np.arange(30), weights)
    repeated = QuickLogistic(alphas=(1.0,)).fit(X[again], y[again])
    assert_allclose(alone.predict_proba(X), repeated.predict_proba(X), atol=1e-6)


def test_one_class_is_refused():
    with pytest.raises(ValueError, match="needs two classes"):
        QuickLogistic().fit(np.zeros((3, 1)), np.ones(3, dtype=int))
