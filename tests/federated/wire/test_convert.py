"""Every family that travels predicts as it does at home; those that keep rows do not travel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    AdaBoostRegressor,
    BaggingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
    StackingRegressor,
    VotingRegressor,
)
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.isotonic import IsotonicRegression
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor, RadiusNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer, StandardScaler
from sklearn.svm import SVR, NuSVR

from coterie.candidates import KNOWN
from coterie.federated import wire
from coterie.federated.wire.convert import convert

PRECISION = 1e-12


def other_rows(X: np.ndarray, n: int = 300) -> np.ndarray:
    random = np.random.default_rng(1)
    return X.mean(axis=0) + X.std(axis=0) * random.normal(scale=2, size=(n, X.shape[1]))


def test_every_family_predicts_as_it_does_at_home(table: Any, fitted: dict[str, Any]) -> None:
    X, _ = table
    rows = other_rows(X)
    models = [wire.unpack(wire.pack(model, X.shape[1]), X.shape[1]) for model in fitted.values()]
    answers = wire.predict_each(models, rows)
    assert not answers.troubles
    for (name, model), answer in zip(fitted.items(), answers.predictions, strict=True):
        predicted = model.predict(rows)
        np.testing.assert_allclose(
            answer, predicted, rtol=0, atol=PRECISION * np.abs(predicted).max(), err_msg=name
        )


def test_rows_that_float32_cannot_tell_apart_take_the_same_turns() -> None:
    # Around 1.7e9 float32 knows steps of 128: trees compare what is left of x after rounding. Every other row
    # lies in the middle, where thresholds are.
    X = 1.7e9 + 64.0 * np.arange(40)[:, None]
    model = RandomForestRegressor(5, random_state=0).fit(X, np.sin(X[:, 0] / 300))
    received = wire.unpack(wire.pack(model, 1), 1)
    np.testing.assert_allclose(
        wire.predict_each([received], X).predictions[0], model.predict(X), rtol=0, atol=1e-14
    )


def test_linear_candidates_travel_as_coefficients_exactly(table: Any) -> None:
    X, y = table
    for name in ("lr", "ridge", "lasso", "en", "lars"):
        model = KNOWN[name]().fit(X, y)
        received = wire.unpack(wire.pack(model, X.shape[1]), X.shape[1])
        assert received.affine is not None
        assert received.onnx is None
        np.testing.assert_allclose(
            wire.predict_each([received], X).predictions[0], model.predict(X), rtol=1e-10
        )


KEEPERS = {
    "k nearest neighbours": KNeighborsRegressor(3),
    "radius neighbours": RadiusNeighborsRegressor(1e12),
    "support vectors": SVR(),
    "nu support vectors": NuSVR(),
    "kernel ridge": KernelRidge(kernel="rbf"),
    "Gaussian process": GaussianProcessRegressor(optimizer=None),
    "candidate knn": KNOWN["knn"](),
    "candidate svr": KNOWN["svr"](),
    "inside a pipeline and a target": TransformedTargetRegressor(
        make_pipeline(StandardScaler(), KNeighborsRegressor(3)), transformer=StandardScaler()
    ),
    "inside voting": VotingRegressor([("a", Ridge()), ("b", KNeighborsRegressor(3))]),
    "inside stacking": StackingRegressor([("a", Ridge()), ("b", SVR())], cv=2),
    "at the end of stacking": StackingRegressor(
        [("a", Ridge())], final_estimator=KernelRidge(kernel="rbf"), cv=2
    ),
    "inside bagging": BaggingRegressor(KNeighborsRegressor(3), n_estimators=2),
    "landmarks": make_pipeline(Nystroem(n_components=5), Ridge()),
    "quantiles": make_pipeline(QuantileTransformer(n_quantiles=10), Ridge()),
}


@pytest.mark.parametrize("name", KEEPERS)
def test_models_that_keep_training_rows_are_refused(name: str, table: Any) -> None:
    X, y = table
    model = KEEPERS[name].fit(X, y)
    with pytest.raises(wire.WireError, match=r"it keeps .*training rows.*: choose among linear models"):
        wire.pack(model, X.shape[1])


def test_isotonic_regression_keeps_values_of_rows_too(table: Any) -> None:
    X, y = table
    with pytest.raises(wire.WireError, match="keeps values of its training rows"):
        wire.pack(IsotonicRegression().fit(X[:, 0], y), 1)


def test_what_cannot_be_written_down_is_refused_by_name(table: Any) -> None:
    X, y = table
    with pytest.raises(wire.WireError, match="A AdaBoostRegressor cannot be shared"):
        wire.pack(AdaBoostRegressor(n_estimators=2).fit(X, y), X.shape[1])

    class Doubled(RandomForestRegressor):
        def predict(self, X: Any) -> Any:
            return 2 * super().predict(X)

    with pytest.raises(wire.WireError, match="A Doubled cannot be shared"):
        wire.pack(Doubled(2).fit(X, y), X.shape[1])


def test_categorical_questions_do_not_travel(table: Any) -> None:
    X, y = table
    coded = np.column_stack([X[:, 0], np.arange(len(X)) % 3])
    model = HistGradientBoostingRegressor(max_iter=2, categorical_features=[1]).fit(coded, y)
    with pytest.raises(wire.WireError, match="categorical predictors"):
        wire.pack(model, 2)


def test_two_responses_do_not_travel(table: Any) -> None:
    X, y = table
    forest = RandomForestRegressor(2).fit(X, np.column_stack([y, y]))
    with pytest.raises(wire.WireError, match="more than one response"):
        wire.pack(forest, X.shape[1])
    with pytest.raises(wire.WireError, match="cannot write it down"):
        wire.pack(LinearRegression().fit(X, np.column_stack([y, y])), X.shape[1])


def test_ways_back_from_the_response_are_few(table: Any) -> None:
    X, y = table
    model = TransformedTargetRegressor(RandomForestRegressor(2), func=np.sqrt, inverse_func=np.square).fit(
        X, y
    )
    with pytest.raises(wire.WireError, match="only scalers, exp and expm1"):
        convert(model, X.shape[1])


def test_a_model_that_is_too_large_says_what_to_do(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = table
    model = RandomForestRegressor(5).fit(X, y)
    monkeypatch.setattr("coterie.federated.wire.envelope.MAX_BYTES", 1000)
    with pytest.raises(wire.WireError, match="use fewer trees, or larger leaves"):
        wire.pack(model, X.shape[1])
    monkeypatch.setattr("coterie.federated.wire.program.MAX_TREES", 4)
    with pytest.raises(wire.WireError, match=r"because it has 5 trees.*: use fewer"):
        wire.pack(model, X.shape[1])
