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
from coterie.collaboration.nested.families import (
    TREES_THAT_STAY,
    Family,
    by_least_squares,
    family_for_traits,
    possible_families,
    rivals,
    with_more_trees,
    worth_fitting,
)
from coterie.models.boosting import BoostedTrees
from coterie.models.forest import QuickForest, RandomCuts


@pytest.mark.parametrize(
    ("candidate", "linear"),
    [
        (LinearRegression(), True),
        (make_pipeline(StandardScaler(), LassoCV()), True),
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


def test_linear_candidates_become_one_family():
    assert possible_families([make_candidates("linear")], by_moments=True) == (Family("linear"),)
    names = [family.name for family in possible_families([make_candidates()] * 3, by_moments=True)]
    assert names == ["linear", "rf", "rf, random cuts", "rf, boosted"]


def test_without_moments_linear_candidates_stay_what_they_are():
    names = [family.name for family in possible_families([make_candidates()], by_moments=False)]
    assert names == ["ridge", "lasso", "rf", "rf, random cuts", "rf, boosted"]


def test_families_of_learners_with_other_candidates_are_joined():
    sets = [make_candidates(["ridge"]), make_candidates(["knn", "ridge"]), make_candidates(["rf"])]
    names = [family.name for family in possible_families(sets, by_moments=True)]
    assert names == ["linear", "knn", "rf", "rf, random cuts", "rf, boosted"]


def kept(losses: list[list[float]], linear: list[float] | None) -> list[str]:
    families = tuple(Family(name, LinearRegression()) for name in "abcd"[: len(losses)])
    chosen = worth_fitting(families, np.array(losses), None if linear is None else np.array(linear))
    return [family.name for family in chosen]


def test_a_family_that_linear_models_beat_everywhere_is_left_out():
    assert kept([[1.5, 1.5]], [1.0, 1.0]) == []
    # Near them inside the chosen clusters, or ahead of them among all, it stays.
    assert kept([[1.05, 1.5]], [1.0, 1.0]) == ["a"]
    assert kept([[1.5, 0.9]], [1.0, 1.0]) == ["a"]
    assert kept([[1.5, 1.0]], [1.0, 1.0]) == []


def test_the_best_three_are_kept_and_failures_are_not():
    assert kept([[3, 3], [1, 1], [np.nan, 1], [2, 2]], None) == ["b", "d", "a"]
    assert kept([[3, 3], [1, 1], [4, 4], [2, 2]], None) == ["b", "d", "a"]


def test_forests_that_stay_have_more_trees_unless_the_user_brought_them() -> None:
    inner = with_more_trees(make_candidates("rf")["rf"])
    assert inner.regressor.n_estimators == TREES_THAT_STAY
    assert make_candidates("rf")["rf"].regressor.n_estimators == 50
    own = RandomForestRegressor(7)
    assert with_more_trees(own).n_estimators == 7
    assert with_more_trees(QuickForest(500)).n_estimators == 500
    assert with_more_trees(QuickForest(5)).n_estimators == TREES_THAT_STAY


def test_default_forests_have_rivals_and_those_of_users_do_not() -> None:
    found = rivals(make_candidates("rf")["rf"])
    assert list(found) == ["random cuts", "boosted"]
    cut = found["random cuts"]
    assert type(cut.regressor) is RandomCuts
    assert cut.regressor.min_samples_leaf == 2
    assert with_more_trees(cut).regressor.n_estimators == TREES_THAT_STAY
    assert type(found["boosted"].regressor) is BoostedTrees
    assert rivals(QuickForest(9, max_depth=3, max_features=0.5))["random cuts"].max_depth == 3
    bent = TransformedTargetRegressor(QuickForest(5), func=np.log, inverse_func=np.exp)
    assert all(rival.func is np.log for rival in rivals(bent).values())
    families = possible_families([{"own": RandomForestRegressor(7)}], by_moments=True)
    assert [family.name for family in families] == ["own"]


def test_random_cuts_are_told_where_they_are_kept_else_the_best() -> None:
    rf, cut, boosted = possible_families([make_candidates("rf")], by_moments=True)
    assert family_for_traits((rf, cut)) is cut
    assert family_for_traits((boosted, rf, cut)) is cut
    assert family_for_traits((rf, boosted)) is rf


class Stubborn(BaseEstimator):
    """Has no default to be copied by, and names that mean something else in scikit-learn."""

    def __init__(self, held: Any = None) -> None:
        self.held = [held]
        self.positive = self.fit_intercept = np.ones(2)

    def fit(self, X: Any, y: Any) -> None: ...

    def predict(self, X: Any) -> Any: ...


def test_what_the_user_brought_is_neither_asked_nor_copied() -> None:
    stubborn = Stubborn()
    assert not by_least_squares(stubborn)
    assert with_more_trees(stubborn) is stubborn
    assert [f.candidate for f in possible_families([{"own": stubborn}], by_moments=True)] == [stubborn]
