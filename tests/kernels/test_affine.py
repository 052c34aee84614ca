from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import (
    ARDRegression,
    BayesianRidge,
    ElasticNet,
    ElasticNetCV,
    HuberRegressor,
    Lars,
    LarsCV,
    Lasso,
    LassoCV,
    LassoLars,
    LassoLarsCV,
    LassoLarsIC,
    LinearRegression,
    OrthogonalMatchingPursuit,
    OrthogonalMatchingPursuitCV,
    PoissonRegressor,
    QuantileRegressor,
    Ridge,
    RidgeCV,
    SGDRegressor,
    TheilSenRegressor,
    TweedieRegressor,
)
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVR, LinearSVR

from coterie.candidates import make_candidates
from coterie.kernels.affine import (
    AffineLosses,
    StandardizedColumns,
    affine_form,
    affine_matrix,
    second_moments,
)
from coterie.rows.learners import Learners, gather_learners


class SquaredLasso(Lasso):
    def predict(self, X: Any) -> Any:
        return super().predict(X) ** 2


class SquaredRidge(Ridge):
    def predict(self, X: Any) -> Any:
        return super().predict(X) ** 2


class SquaredPipeline(Pipeline):
    def predict(self, X: Any) -> Any:
        return super().predict(X) ** 2


class SquaredTarget(TransformedTargetRegressor):
    def predict(self, X: Any) -> Any:
        return super().predict(X) ** 2


def rows(n: int = 40, p: int = 3) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p)) * [1, 50, 0.02][:p] + [0, 300, -1][:p]
    return X, X @ [1, 0.1, 30][:p] + 5 + rng.normal(size=n)


def scaled(*steps: Any) -> Any:
    return make_pipeline(*steps, LinearRegression())


AFFINE = [
    LinearRegression(),
    LinearRegression(fit_intercept=False),
    Ridge(),
    RidgeCV(),
    Lasso(0.01),
    LassoCV(cv=2),
    ElasticNet(0.01),
    ElasticNetCV(cv=2),
    LarsCV(cv=2),
    LassoLars(0.01),
    BayesianRidge(),
    ARDRegression(),
    Lars(n_nonzero_coefs=2),
    LassoLarsCV(cv=2),
    LassoLarsIC(),
    LinearSVR(max_iter=100_000, C=0.01),
    OrthogonalMatchingPursuit(),
    OrthogonalMatchingPursuitCV(cv=2),
    QuantileRegressor(alpha=0.01),
    make_pipeline(StandardScaler(), SGDRegressor(random_state=0)),
    TheilSenRegressor(random_state=0),
    HuberRegressor(max_iter=1000),
    scaled(StandardScaler()),
    scaled(StandardScaler(with_mean=False)),
    scaled(StandardScaler(with_std=False)),
    scaled(StandardScaler(with_mean=False, with_std=False)),
    scaled(MinMaxScaler()),
    scaled(MinMaxScaler(feature_range=(-3, 5))),
    scaled(MaxAbsScaler()),
    scaled(RobustScaler()),
    scaled(RobustScaler(with_centering=False)),
    scaled(RobustScaler(with_scaling=False)),
    scaled("passthrough"),
    scaled(StandardScaler(), "passthrough", MinMaxScaler(), RobustScaler()),
    make_pipeline(StandardScaler(), scaled(MaxAbsScaler())),
    TransformedTargetRegressor(LinearRegression(), transformer=StandardScaler()),
    TransformedTargetRegressor(scaled(StandardScaler()), transformer=MinMaxScaler()),
    TransformedTargetRegressor(Lasso(0.01), transformer=StandardScaler(with_mean=False)),
    make_pipeline(RobustScaler(), TransformedTargetRegressor(LinearRegression(), transformer=RobustScaler())),
]

NOT_AFFINE = [
    PoissonRegressor(),
    TweedieRegressor(power=1.5),
    RandomForestRegressor(3, random_state=0),
    KNeighborsRegressor(),
    SVR(kernel="linear"),
    SquaredLasso(),
    SquaredRidge(),
    scaled(MinMaxScaler(clip=True)),
    scaled(PolynomialFeatures(2)),
    scaled(FunctionTransformer(np.abs)),
    TransformedTargetRegressor(LinearRegression(), func=np.log, inverse_func=np.exp),
    TransformedTargetRegressor(RandomForestRegressor(3, random_state=0), transformer=StandardScaler()),
    make_pipeline(StandardScaler(), RandomForestRegressor(3, random_state=0)),
    SquaredPipeline([("only", LinearRegression())]),
    SquaredTarget(LinearRegression(), transformer=StandardScaler()),
]


@pytest.mark.parametrize("model", AFFINE, ids=lambda m: " ".join(repr(m).split()))
def test_linear_models_are_recognised_and_predict_as_their_form(model: Any) -> None:
    X, y = rows()
    fitted = clone(model).fit(X, y)
    form = affine_form(fitted, 3)
    assert form is not None
    far = 10 * X + 7
    assert np.allclose(far @ form[0] + form[1], fitted.predict(far), rtol=1e-9)


@pytest.mark.parametrize("model", NOT_AFFINE, ids=lambda m: " ".join(repr(m).split()))
def test_other_models_are_not_taken_for_linear(model: Any) -> None:
    X, y = rows()
    assert affine_form(clone(model).fit(X, np.abs(y) + 1), 3) is None


def test_a_scaler_that_clips_is_not_taken_where_there_is_one() -> None:
    if "clip" not in MaxAbsScaler().get_params():
        pytest.skip("this scikit-learn's MaxAbsScaler does not clip")
    X, y = rows()
    assert affine_form(scaled(MaxAbsScaler(clip=True)).fit(X, y), 3) is None


def test_models_of_another_shape_are_not_taken() -> None:
    X, y = rows()
    assert affine_form(LinearRegression().fit(X, np.column_stack([y, y])), 3) is None
    assert affine_form(LinearRegression().fit(X, y), 2) is None


@pytest.mark.parametrize("name", ["lr", "lasso", "lars", "en", "ridge"])
def test_the_linear_candidates_are_recognised(name: str) -> None:
    X, y = rows()
    assert affine_form(make_candidates(name)[name].fit(X, y), 3) is not None


def test_a_constant_column_does_not_spoil_the_form() -> None:
    X, y = rows()
    X[:, 1] = 4.0
    for scaler in (StandardScaler(), MinMaxScaler(), RobustScaler(), MaxAbsScaler()):
        fitted = scaled(scaler).fit(X, y)
        form = affine_form(fitted, 3)
        assert form is not None
        assert np.allclose((X + 1) @ form[0] + form[1], fitted.predict(X + 1))


def test_the_matrix_of_models_has_nan_where_a_model_is_not_affine() -> None:
    X, y = rows()
    models = [LinearRegression().fit(X, y), KNeighborsRegressor().fit(X, y), Lasso(0.1).fit(X, y)]
    vectors, affine = affine_matrix(models, 3)
    assert affine.tolist() == [True, False, True]
    assert np.isnan(vectors[1]).all()
    assert vectors[0].tolist() == [*models[0].coef_, models[0].intercept_]


def test_a_model_with_a_coefficient_that_is_not_finite_is_not_affine() -> None:
    X, y = rows()
    model = LinearRegression().fit(X, y)
    model.coef_[1] = np.inf
    assert not affine_matrix([model], 3)[1].any()


# The frame and the moments.


def test_in_the_frame_columns_have_mean_zero_and_spread_one(make_learners: Callable[..., Learners]) -> None:
    learners = make_learners()
    frame = StandardizedColumns(learners)
    Z = frame.rows(learners.X)
    assert np.allclose(Z[:, :-1].mean(axis=0), 0)
    assert np.allclose(Z[:, :-1].std(axis=0), 1)
    assert (Z[:, -1] == 1).all()
    # Responses are measured from their mean, so that the model that always answers it is zero.
    assert np.allclose(frame.vectors(np.array([[0.0, 0.0, learners.scalar_y.mean()]])), 0)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.integers(0, 999), st.floats(-6, 6))
def test_a_model_keeps_its_predictions_in_the_frame(seed: int, power: float) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(9, 2)) * [1, 10**power] + [5, 10**power]
    X[:, 0] = 5.0 if seed % 3 == 0 else X[:, 0]
    frame = StandardizedColumns(gather_learners(X, rng.normal(size=9), caller="test"))
    vectors = rng.normal(size=(4, 3))
    inside = frame.rows(X) @ frame.vectors(vectors).T + frame.middle
    assert np.allclose(inside, X @ vectors[:, :-1].T + vectors[:, -1], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_second_moments_are_means_over_rows(weighted: bool, make_learners: Callable[..., Learners]) -> None:
    learners = make_learners(weighted=weighted)
    G, c, s = second_moments(learners.X, learners.y, learners)
    for j in range(len(learners)):
        span = learners.span(j)
        X, y = learners.X[span], learners.scalar_y[span]
        w = np.ones(len(y)) if learners.weights is None else learners.weights[span]
        assert np.allclose(G[j], sum(w[i] * np.outer(X[i], X[i]) for i in range(len(y))) / len(y))
        assert np.allclose(c[j, :, 0], sum(w[i] * X[i] * y[i] for i in range(len(y))) / len(y))
        assert s[j] == pytest.approx(np.average(y**2, weights=w))


# Losses.


def explicit(vectors: Any, learners: Learners) -> tuple[Any, Any]:
    """Losses by the double loop, and how far rounding alone may take a mean of squares."""
    losses = np.empty((len(vectors), len(learners)))
    rounding = np.empty_like(losses)
    for i, v in enumerate(vectors):
        for j in range(len(learners)):
            span = learners.span(j)
            X, y = learners.X[span], learners.scalar_y[span]
            weights = None if learners.weights is None else learners.weights[span]
            losses[i, j] = np.average((X @ v[:-1] + v[-1] - y) ** 2, weights=weights)
            size = (np.abs(X) @ np.abs(v[:-1]) + np.abs(v[-1]) + np.abs(y)).max()
            slip = 4 * len(v) * np.finfo(float).eps * size
            rounding[i, j] = 2 * np.sqrt(losses[i, j]) * slip + slip**2
    return losses, rounding


def planted(
    seed: int = 0,
    n_learners: int = 6,
    n: int = 30,
    p: int = 3,
    noise: float = 0.0,
    shift: float = 0.0,
    units: Any = 1.0,
    collinear: float = 1.0,
    apart: float = 0.0,
    weighted: bool = False,
) -> tuple[Any, Learners]:
    """Models and learners: model i is the truth of learner i, so that some losses are tiny."""
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(n_learners), n)
    X = rng.normal(size=(n_learners * n, p))
    if p > 1:
        X[:, 1] = X[:, 0] + collinear * X[:, 1]
    X = X + apart * rng.normal(size=(n_learners, p))[owner]
    slopes = rng.normal(size=(2, p))[np.arange(n_learners) % 2]
    X, slopes = X * units, slopes / units
    y = (X * slopes[owner]).sum(axis=1) + shift + noise * rng.normal(size=len(X))
    weights = rng.uniform(0.1, 2, size=len(X)) if weighted else None
    learners = gather_learners(X, y, owner, sample_weight=weights, caller="test")
    return np.column_stack([slopes, np.full(n_learners, shift)]), learners


CASES = {
    "noise-free": {},
    "noisy": {"noise": 1.0},
    "weighted": {"noise": 1.0, "weighted": True},
    "weighted, noise-free": {"weighted": True},
    "far response": {"shift": 1e6},
    "far response, little noise": {"shift": 1e6, "noise": 1e-3},
    "units": {"units": np.array([1e6, 1.0, 1e-6])},
    "units, little noise": {"units": np.array([1e6, 1.0, 1e-6]), "noise": 1e-4},
    "nearly collinear": {"collinear": 1e-6, "noise": 1e-3},
    "learners far apart": {"apart": 1e3, "noise": 0.1},
    "learners very far apart": {"apart": 1e6, "noise": 1e-3},
    "more predictors than rows": {"p": 40, "n": 5, "noise": 0.1},
    "more predictors than rows, weighted": {"p": 40, "n": 5, "noise": 0.1, "weighted": True},
    "one learner": {"n_learners": 1, "noise": 0.1},
    "one row each": {"n": 1, "noise": 0.1},
    "one row": {"n_learners": 1, "n": 1},
    "one predictor": {"p": 1, "noise": 0.1},
}


@pytest.mark.parametrize("case", CASES)
def test_losses_equal_the_double_loop(case: str) -> None:
    vectors, learners = planted(**CASES[case])
    everybody = np.arange(len(learners))
    losses = AffineLosses(vectors, learners).tile(everybody, everybody)
    expected, rounding = explicit(vectors, learners)
    gap = np.abs(losses - expected)
    assert (gap <= 1e-8 * learners.scalar_y.var() + rounding).all()
    assert (gap <= 1e-6 * expected + rounding).all()
    assert (losses >= 0).all()


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.integers(0, 9999),
    st.integers(1, 5),
    st.integers(1, 12),
    st.integers(1, 6),
    st.floats(-8, 1),
    st.floats(-3, 6),
    st.floats(-2, 4),
    st.booleans(),
)
def test_losses_equal_the_double_loop_wherever_the_data_lie(
    seed: int, n_learners: int, n: int, p: int, noise: float, shift: float, apart: float, weighted: bool
) -> None:
    vectors, learners = planted(
        seed, n_learners, n, p, 10**noise, 10**shift, apart=10**apart, weighted=weighted
    )
    everybody = np.arange(n_learners)
    losses = AffineLosses(vectors, learners).tile(everybody, everybody)
    expected, rounding = explicit(vectors, learners)
    assert (np.abs(losses - expected) <= 1e-6 * expected + rounding).all()


@pytest.mark.parametrize("case", ["noise-free", "noisy", "more predictors than rows"])
def test_some_models_on_some_learners_are_a_piece_of_the_whole(case: str) -> None:
    vectors, learners = planted(**CASES[case])
    moments = AffineLosses(vectors, learners)
    everybody = np.arange(len(learners))
    models, some = np.array([4, 0]), np.array([5, 1, 2])
    whole = moments.tile(everybody, everybody)
    assert np.allclose(moments.tile(models, some), whole[np.ix_(models, some)], rtol=1e-9, atol=1e-20)
    assert moments.tile(models, np.array([], dtype=int)).shape == (2, 0)
    assert moments.n_learners == len(learners)


def test_there_may_be_more_models_than_learners() -> None:
    _, learners = planted(n_learners=2, noise=0.1)
    many = np.random.default_rng(0).normal(size=(7, 4))
    losses = AffineLosses(many, learners).tile(np.arange(7), np.arange(2))
    assert np.allclose(losses, explicit(many, learners)[0])


def test_models_whose_losses_overflow_are_not_finite() -> None:
    vectors, learners = planted(noise=0.1)
    vectors[2] *= 1e160
    assert AffineLosses(vectors, learners).finite.tolist() == [True, True, False, True, True, True]


@pytest.mark.parametrize("size", [1e160, 1e308])
def test_models_whose_losses_overflow_warn_of_nothing(size: float) -> None:
    vectors, learners = planted(noise=0.1)
    vectors[2] = size
    moments = AffineLosses(vectors, learners)
    assert not moments.finite[2]
    losses = moments.tile(np.arange(6), np.arange(6))
    assert np.isfinite(losses).all(axis=1).tolist() == [True, True, False, True, True, True]


def test_units_of_predictors_are_not_one_learner_s() -> None:
    rng = np.random.default_rng(0)
    X, owner = rng.normal(2, 3, (240, 3)), np.repeat(np.arange(8), 30)
    X[:, 2] = owner == 3
    usual = StandardizedColumns(gather_learners(X, X[:, 0], owner, caller="test"))
    np.testing.assert_array_equal(usual.spread, X.std(axis=0))
    np.testing.assert_array_equal(usual.centre, X.mean(axis=0))
    X[owner == 5, 0] += 1e6
    far = StandardizedColumns(gather_learners(X, X[:, 1], owner, caller="test"))
    np.testing.assert_allclose(far.centre[0], 2, atol=1)
    np.testing.assert_allclose(far.spread[0], 3, rtol=0.3)
    np.testing.assert_array_equal(far.spread[1:], usual.spread[1:])
    # A model keeps its predictions in any frame.
    vectors = rng.normal(size=(2, 4))
    predicted = far.rows(X) @ far.vectors(vectors).T + far.middle
    np.testing.assert_allclose(predicted, X @ vectors[:, :3].T + vectors[:, 3], rtol=1e-9, atol=1e-9)
