import warnings
from typing import Any

import numpy as np
import pytest
from scipy.linalg import LinAlgWarning
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from coterie.method.fitting import (
    FitJob,
    choose_candidate,
    fit_candidate,
    fit_model,
    quiet_fits,
    weight_parameter,
)
from coterie.method.select import split_halves

N = 9


class Witness(RegressorMixin, BaseEstimator):
    """Predicts zero and remembers what it was fitted on."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        self.rows_, self.weights_ = X[:, 0].tolist(), sample_weight
        return self

    def predict(self, X: Any) -> Any:
        return np.zeros(len(X))


class Troubled(RegressorMixin, BaseEstimator):
    """Predicts zero, except that it fails in a way of its own."""

    def __init__(self, trouble: str = "half") -> None:
        self.trouble = trouble

    def fit(self, X: Any, y: Any) -> Any:
        if (self.trouble == "half" and len(y) < N) or (self.trouble == "refit" and len(y) == N):
            raise RuntimeError(f"no fit on {len(y)} rows")
        self.n_ = len(y)
        return self

    def predict(self, X: Any) -> Any:
        if self.trouble == "predict":
            raise MemoryError("too large")
        if self.trouble == "shape":
            return np.zeros((len(X), 2))
        if self.trouble == "column":
            return np.zeros((len(X), 1))
        wrong = {"nan": np.nan, "infinity": np.inf, "late nan": np.nan if self.n_ == N else 0.0}
        return np.full(len(X), wrong.get(self.trouble, 0.0))


def job(candidates: dict[str, Any], **changes: Any) -> FitJob:
    """Rows 0 to 8 with small responses: fold 0 holds out the even ones, fold 1 the odd ones."""
    parts: dict[str, Any] = {
        "owner": "learner 'north'",
        "X": np.arange(float(N))[:, None],
        "y": np.linspace(-0.1, 0.1, N),
        "folds": np.arange(N) % 2,
        "scored": (0,),
        "candidates": candidates,
        "seed": 0,
    }
    parts |= changes
    parts["y"] = parts["y"][:, None]
    folds = parts["folds"]
    # Every fold trains on the rows that it does not hold out, unless a test says otherwise.
    others = np.array([folds != fold for fold in range(folds.max() + 1)])
    return FitJob(**({"training": others} | parts))


# Halves.


@pytest.mark.parametrize("n", [4, 5, 8, 9])
def test_the_candidates_are_trained_on_the_smaller_half_and_scored_on_the_rest(n: int) -> None:
    folds, training = split_halves(n, np.random.default_rng(0))
    X, y = np.arange(float(n))[:, None], np.ones(n)
    result = choose_candidate(job({"w": Witness()}, X=X, y=y, folds=folds, training=training))
    first, second = result.fold_models
    assert len(first.rows_) == n // 2
    assert sorted(first.rows_ + second.rows_) == X[:, 0].tolist()
    assert result.model.rows_ == X[:, 0].tolist()


def test_the_score_is_that_of_fold_zero_alone() -> None:
    y = np.where(np.arange(N) % 2 == 0, 2.0, 3.0)
    result = choose_candidate(job({"w": Witness()}, y=y))
    assert result.held_out_error == 4
    assert result.candidate_errors == {"w": 4}
    assert result.error == pytest.approx(np.mean(y**2))
    assert result.residuals[:, 0].tolist() == y.tolist()


def test_several_scored_folds_count_alike() -> None:
    y = np.where(np.arange(N) % 2 == 0, 2.0, 3.0)
    result = choose_candidate(job({"w": Witness()}, y=y, scored=(0, 1)))
    assert result.held_out_error == pytest.approx((4 + 9) / 2)


def test_the_best_candidate_on_held_out_rows_wins() -> None:
    x = np.arange(float(N))
    result = choose_candidate(job({"mean": DummyRegressor(), "line": LinearRegression()}, y=2 * x + 1))
    assert result.name == "line"
    assert result.candidate_errors["line"] < 1e-20 < result.candidate_errors["mean"]
    assert result.model.predict([[10.0]]) == pytest.approx(21)
    assert result.failures == {}


def test_a_row_that_is_never_held_out_has_no_honest_residual_but_is_trained_on() -> None:
    folds = np.array([-1, -1, 0, 0, 0, 1, 1, 1, 1])
    result = choose_candidate(job({"w": Witness()}, folds=folds, scored=(0, 1)))
    assert np.isnan(result.residuals[:, 0]).tolist() == [True] * 2 + [False] * 7
    assert result.fold_models[0].rows_ == [0, 1, 5, 6, 7, 8]
    assert result.fold_models[1].rows_ == [0, 1, 2, 3, 4]


def test_a_fold_trains_on_its_own_rows_which_need_not_be_all_the_others() -> None:
    # Blocks in time: a fold trains on what came before.
    folds = np.array([-1, -1, -1, 0, 0, 0, 1, 1, 1])
    training = np.array([np.arange(N) < 3, np.arange(N) < 6])
    result = choose_candidate(job({"w": Witness()}, folds=folds, training=training, scored=(0, 1)))
    assert result.fold_models[0].rows_ == [0, 1, 2]
    assert result.fold_models[1].rows_ == [0, 1, 2, 3, 4, 5]
    assert result.model.rows_ == list(range(N))
    assert np.isnan(result.residuals[:, 0]).tolist() == [True] * 3 + [False] * 6


def test_honest_residuals_come_from_models_that_did_not_see_the_row() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 1)), rng.normal(size=20)
    folds = np.arange(20) % 4
    result = choose_candidate(job({"nearest": KNeighborsRegressor(1)}, X=X, y=y, folds=folds))
    assert result.error == 0
    assert (np.abs(result.residuals) > 1e-6).all()
    for fold in range(4):
        out = folds == fold
        again = KNeighborsRegressor(1).fit(X[~out], y[~out])
        assert np.allclose(result.residuals[out, 0], y[out] - again.predict(X[out]))
        assert np.allclose(result.fold_models[fold].predict(X), again.predict(X))


def test_candidates_are_copied_and_seeded() -> None:
    forest = RandomForestRegressor(2)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(N, 1)), rng.normal(size=N)
    one, again, other = (
        choose_candidate(job({"rf": forest}, X=X, y=y, seed=seed)).residuals for seed in (1, 1, 2)
    )
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)
    assert not hasattr(forest, "estimators_")
    assert forest.random_state is None


# Failures.


@pytest.mark.parametrize(
    ("trouble", "cause"),
    [
        ("half", "RuntimeError: no fit on 4 rows"),
        ("refit", "RuntimeError: no fit on 9 rows"),
        ("predict", "MemoryError: too large"),
        ("nan", "ValueError: predicted values that are not finite"),
        ("infinity", "ValueError: predicted values that are not finite"),
        ("late nan", "ValueError: predicted values that are not finite"),
        ("shape", r"ValueError: predicted the shape \(5, 2\) for 5 rows"),
    ],
)
def test_a_candidate_that_fails_is_dropped_and_named(trouble: str, cause: str) -> None:
    # Zero predicts these rows better than the far constant, so that failing alone decides.
    far = DummyRegressor(strategy="constant", constant=50.0)
    result = choose_candidate(job({"troubled": Troubled(trouble), "far": far}))
    assert result.name == "far"
    assert list(result.failures) == ["troubled"]
    assert result.failures["troubled"] == cause.replace("\\", "")
    assert list(result.candidate_errors) == ["far"]
    with pytest.raises(
        ValueError, match=rf"No candidate could be fitted for learner 'north' \(only: {cause}\)\. Give it"
    ):
        choose_candidate(job({"only": Troubled(trouble)}))


def test_when_all_fail_every_cause_is_named() -> None:
    with pytest.raises(ValueError, match=r"one: RuntimeError: .*; two: ValueError: predicted values"):
        choose_candidate(job({"one": Troubled("half"), "two": Troubled("nan")}))


def test_a_column_of_predictions_is_as_good_as_a_row() -> None:
    result = choose_candidate(job({"column": Troubled("column")}))
    assert np.array_equal(result.residuals[:, 0], np.linspace(-0.1, 0.1, N))


def test_the_loser_is_not_refitted() -> None:
    result = choose_candidate(
        job({"fine": Witness(), "far": DummyRegressor(strategy="quantile", quantile=1)})
    )
    assert result.name == "fine"
    lazy = choose_candidate(job({"fine": Witness(), "late": Troubled("refit")}, y=np.zeros(N)))
    assert lazy.failures == {}
    assert set(lazy.candidate_errors) == {"fine", "late"}


# Weights.


@pytest.mark.parametrize(
    ("estimator", "name"),
    [
        (Ridge(), "sample_weight"),
        (KNeighborsRegressor(), None),
        (make_pipeline(StandardScaler(), Ridge()), "ridge__sample_weight"),
        (make_pipeline(StandardScaler(), KNeighborsRegressor()), None),
        (TransformedTargetRegressor(Ridge()), "sample_weight"),
        (TransformedTargetRegressor(KNeighborsRegressor()), None),
        (TransformedTargetRegressor(make_pipeline(StandardScaler(), Ridge())), "ridge__sample_weight"),
        (
            make_pipeline(StandardScaler(), TransformedTargetRegressor(Ridge())),
            "transformedtargetregressor__sample_weight",
        ),
        (TransformedTargetRegressor(), "sample_weight"),
        (GridSearchCV(Ridge(), {"alpha": [1, 2]}), "sample_weight"),
    ],
    ids=lambda value: " ".join(repr(value).split()),
)
def test_the_place_of_sample_weights_is_found(estimator: Any, name: str | None) -> None:
    assert weight_parameter(estimator) == name


@pytest.mark.parametrize("around", [lambda e: e, lambda e: make_pipeline(StandardScaler(), e)])
@pytest.mark.parametrize("target", [lambda e: e, lambda e: TransformedTargetRegressor(e)])
def test_sample_weights_reach_the_estimator(around: Any, target: Any) -> None:
    weights = np.arange(1.0, N + 1)
    result = choose_candidate(job({"w": target(around(Witness()))}, weights=weights))
    for model, rows in zip(
        (*result.fold_models, result.model), ([1, 3, 5, 7], [0, 2, 4, 6, 8], range(N)), strict=True
    ):
        inner = getattr(model, "regressor_", model)
        inner = inner.steps[-1][1] if hasattr(inner, "steps") else inner
        assert inner.weights_.tolist() == weights[list(rows)].tolist()


def test_a_weight_of_two_is_a_row_that_stands_there_twice() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(N, 2)), rng.normal(size=N)
    weights = np.where(np.arange(N) < 4, 2.0, 1.0)
    twice = np.repeat(np.arange(N), weights.astype(int))
    for candidate in (LinearRegression(), make_pipeline(StandardScaler(with_std=False), LinearRegression())):
        weighted = choose_candidate(job({"c": candidate}, X=X, y=y, weights=weights))
        repeated = choose_candidate(
            job({"c": candidate}, X=X[twice], y=y[twice], folds=(np.arange(N) % 2)[twice])
        )
        assert weighted.error == pytest.approx(repeated.error)
        assert weighted.held_out_error == pytest.approx(repeated.held_out_error)
        assert np.allclose(weighted.residuals[twice], repeated.residuals)


def test_weights_that_an_estimator_does_not_take_still_count_in_its_error() -> None:
    weights = np.where(np.arange(N) == 0, 10.0, 0.001)
    result = choose_candidate(job({"c": Troubled("none")}, weights=weights))
    assert result.error == pytest.approx(0.01, rel=0.01)
    assert fit_candidate(clone(Troubled("none")), job({}, weights=weights), np.arange(3)).n_ == 3


# Warnings.


def test_fits_are_quiet_about_themselves_only() -> None:
    # Warnings are errors in these tests, unless something silences them.
    with quiet_fits():
        warnings.warn("slow", ConvergenceWarning, stacklevel=1)
        warnings.warn("ill", LinAlgWarning, stacklevel=1)
        with pytest.raises(UserWarning, match="mine"):
            warnings.warn("mine", UserWarning, stacklevel=1)
    with pytest.raises(ConvergenceWarning, match="slow"):
        warnings.warn("slow", ConvergenceWarning, stacklevel=1)


class RecordingModel:
    """Returns what it is told to return from fit, and remembers the weights."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        self.weights_ = sample_weight
        return self.answer


def test_a_fit_that_returns_nothing_has_fitted_the_model_itself() -> None:
    X, y, other = np.zeros((2, 1)), np.ones(2), object()
    silent = RecordingModel(None)
    assert fit_model(silent, X, y) is silent
    assert silent.weights_ is None
    assert fit_model(RecordingModel(other), X, y) is other
    fit_model(silent, X, y, np.array([1.0, 2.0]))
    assert silent.weights_.tolist() == [1.0, 2.0]
