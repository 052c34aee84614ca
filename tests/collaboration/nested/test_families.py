from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import HuberRegressor, LassoCV, LinearRegression, PoissonRegressor, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from coterie.candidates import make_candidates
from coterie.collaboration.nested.families import ModelFit, by_least_squares, fit_or_replace


@pytest.mark.parametrize(
    ("candidate", "linear"),
    [
        (LinearRegression(), True),
        (make_pipeline(StandardScaler(), LassoCV()), True),
        (make_candidates("ridge")["ridge"], True),
        (TransformedTargetRegressor(Ridge(), transformer=StandardScaler()), True),
        (TransformedTargetRegressor(Ridge(), func=np.log, inverse_func=np.exp), False),
        (make_pipeline(PolynomialFeatures(), Ridge()), False),
        (LinearRegression(positive=True), False),
        (LinearRegression(fit_intercept=False), False),
        (HuberRegressor(), False),
        (PoissonRegressor(), False),
        (RandomForestRegressor(), False),
    ],
)
def test_least_squares_are_told_from_the_rest(candidate, linear):
    assert by_least_squares(candidate) == linear


def test_known_lines_are_by_least_squares_and_other_models_are_not() -> None:
    known = make_candidates("paper") | make_candidates("linear")
    linear = {name for name, candidate in known.items() if by_least_squares(candidate)}
    assert linear == {"lr", "ridge", "lasso", "lars", "en"}


class Stubborn(BaseEstimator):
    """Has no default to be copied by, and names that mean something else in scikit-learn."""

    def __init__(self, held: Any = None) -> None:
        self.held = [held]
        self.positive = self.fit_intercept = np.ones(2)

    def fit(self, X: Any, y: Any) -> None: ...

    def predict(self, X: Any) -> Any: ...


def test_what_the_user_brought_is_not_asked() -> None:
    assert not by_least_squares(Stubborn())


class Hopeless(BaseEstimator):
    """Cannot be fitted."""

    def fit(self, X: Any, y: Any) -> Any:
        raise RuntimeError("out of cheese")


def test_where_a_fit_fails_the_mean_or_what_was_given_stands_in() -> None:
    X, y = np.arange(8.0).reshape(4, 2), np.array([1.0, 2.0, 3.0, 6.0])
    assert fit_or_replace(ModelFit(Hopeless(), X, y, None, 0)).predict(X).tolist() == [3.0] * 4
    otherwise = LinearRegression()
    assert fit_or_replace(ModelFit(Hopeless(), X, y, None, 0, otherwise)) is otherwise
    assert fit_or_replace(ModelFit(LinearRegression(), X, y, None, 0, otherwise)) is not otherwise
