import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, Ridge

from coterie.collaboration.nested.linear import Moments
from coterie.kernels.affine import Frame
from coterie.rows.learners import gather_learners


@pytest.fixture
def learners():
    rng = np.random.default_rng(0)
    owner = np.repeat([0, 1, 2], [12, 9, 15])
    X = 5 + rng.normal(size=(36, 2)) * [1, 100] + owner[:, None]
    y = X @ [1.0, 0.02] + 10 * owner + rng.normal(size=36)
    weights = rng.uniform(0.5, 2, size=36)
    return gather_learners(X, y, owner, sample_weight=weights, caller="test")


MEMBERS = np.array([True, False, True])


def test_plain_moments_are_weighted_least_squares_on_the_members_rows(learners):
    moments = Moments.of(learners, Frame(learners))
    model = moments.as_model(moments.solve(MEMBERS, 1e-9), centred=False)
    rows = MEMBERS[learners.owner]
    expected = LinearRegression().fit(learners.X[rows], learners.scalar_y[rows], learners.weights[rows])
    np.testing.assert_allclose(model.predict(learners.X), expected.predict(learners.X), rtol=1e-6)


def test_a_ridge_is_in_units_of_rows_and_spares_the_intercept(learners):
    frame = Frame(learners)
    moments = Moments.of(learners, frame)
    model = moments.as_model(moments.solve(MEMBERS, 10.0), centred=False)
    rows = MEMBERS[learners.owner]
    Z = frame.rows(learners.X)[:, :-1]
    expected = Ridge(10.0).fit(Z[rows], learners.scalar_y[rows], learners.weights[rows])
    np.testing.assert_allclose(model.predict(learners.X), expected.predict(Z), rtol=1e-6)


def test_centred_moments_are_fixed_effects(learners):
    moments = Moments.of(learners, Frame(learners)).centred()
    model = moments.as_model(moments.solve(np.ones(3, bool), 1e-9), centred=True)
    with_levels = np.column_stack([learners.X, np.eye(3)[learners.owner]])
    expected = LinearRegression(fit_intercept=False).fit(with_levels, learners.scalar_y, learners.weights)
    np.testing.assert_allclose(model.coef_, expected.coef_[:2], rtol=1e-6)


def test_a_predictor_that_does_not_vary_is_no_failure():
    X = np.column_stack([np.ones(8), np.arange(8.0)])
    learners = gather_learners(X, 2 * X[:, 1], np.repeat([0, 1], 4), caller="test")
    moments = Moments.of(learners, Frame(learners))
    for form, centred in ((moments, False), (moments.centred(), True)):
        model = form.as_model(form.solve(np.ones(2, bool), 1e-6), centred=centred)
        assert model.coef_[1] == pytest.approx(2, abs=1e-4)
        assert np.isfinite(model.predict(X)).all()
