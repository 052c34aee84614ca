"""Every regressor of scikit-learn, and odd ones of other libraries, as candidates."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.cross_decomposition import CCA, PLSCanonical
from sklearn.ensemble import RandomForestRegressor
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import GammaRegressor, LinearRegression, PoissonRegressor, Ridge, TweedieRegressor
from sklearn.neighbors import RadiusNeighborsRegressor
from sklearn.utils import all_estimators

import coterie
from coterie import CoterieRegressor
from coterie.verdicts import compare_clusters, find_outliers

# What a regressor needs, or what makes it quick.
NEEDED: dict[str, dict[str, Any]] = {
    "ElasticNetCV": {"alphas": [0.01, 0.1], "cv": 2},
    "HistGradientBoostingRegressor": {"max_iter": 5},
    "LassoCV": {"alphas": [0.01, 0.1], "cv": 2},
    "MLPRegressor": {"hidden_layer_sizes": (4,), "max_iter": 20},
    "MultiOutputRegressor": {"estimator": Ridge()},
    "RANSACRegressor": {"max_trials": 10},
    "RegressorChain": {"estimator": Ridge()},
    "StackingRegressor": {"estimators": [("a", Ridge()), ("b", LinearRegression())], "cv": 2},
    "TheilSenRegressor": {"max_subpopulation": 20, "max_iter": 10},
    "VotingRegressor": {"estimators": [("a", Ridge()), ("b", LinearRegression())]},
}
SEVERAL = "needs several responses, and learners have one: take a regressor for a single response"
# Refused whatever stands beside them.
NEVER = [
    "MultiOutputRegressor",
    "MultiTaskElasticNet",
    "MultiTaskElasticNetCV",
    "MultiTaskLasso",
    "MultiTaskLassoCV",
    "RegressorChain",
]
# Refused on these rows, as they are by default: each says why.
NOT_HERE = {
    "CCA": "Reduce `n_components`",
    "GammaRegressor": "out of the valid range of the loss 'HalfGammaLoss'",
    "IsotonicRegression": "should be a 1d array or 2d array with 1 feature",
    "PLSCanonical": "Reduce `n_components`",
    "PoissonRegressor": "out of the valid range of the loss 'HalfPoissonLoss'",
    "RadiusNeighborsRegressor": "not finite",
}
REGRESSORS = dict(all_estimators(type_filter="regressor"))
COLLABORATIONS = ["auto", "pooled", "average", "local", "global"]

pytestmark = [
    pytest.mark.filterwarnings("ignore:Class PassiveAggressiveRegressor is deprecated:FutureWarning"),
    pytest.mark.filterwarnings("ignore:One or more samples have no neighbors:UserWarning"),
]


def rows(n_learners: int = 4, n_features: int = 2) -> tuple[Any, Any, Any]:
    """Learners of 24 rows; the first half of them has another slope than the second."""
    rng = np.random.default_rng(0)
    groups = np.repeat([f"s{j}" for j in range(n_learners)], 24)
    X = rng.normal(size=(len(groups), n_features))
    slope = np.where(np.repeat(np.arange(n_learners), 24) < n_learners / 2, 1.0, -1.0)
    return X, slope * X[:, 0] + X[:, -1] + 0.3 * rng.normal(size=len(groups)), groups


def made(name: str) -> Any:
    few = {"n_estimators": 3} if "n_estimators" in inspect.signature(REGRESSORS[name]).parameters else {}
    return REGRESSORS[name](**(few | NEEDED.get(name, {})))


def assert_fits(candidates: Any, data: tuple[Any, Any, Any] | None = None, **options: Any) -> Any:
    X, y, groups = rows() if data is None else data
    model = CoterieRegressor(candidates, **({"n_bootstrap": 0} | options)).fit(X, y, groups=groups)
    assert np.isfinite(model.predict(X, groups=groups)).all()
    return model


def try_regressor(name: str, **options: Any) -> None:
    """Fit with a regressor alone and in a list, or see it refused."""
    with_a_line = [made(name), LinearRegression()]
    if name in NEVER:
        for candidates in ([made(name)], with_a_line, {"mine": made(name)}):
            with pytest.raises(ValueError, match=f"The candidate {name} {SEVERAL}"):
                assert_fits(candidates, **options)
        return
    if name in NOT_HERE:
        with pytest.raises(
            ValueError, match=rf"No candidate could be fitted .*\({name.lower()}: .*{NOT_HERE[name]}"
        ):
            assert_fits([made(name)], **options)
        with pytest.warns(UserWarning, match=f"The candidate '{name.lower()}' was dropped for learner"):
            assert_fits(with_a_line, **options)
        return
    model = assert_fits([made(name)], **options)
    assert set(model.selection_.names) == {name.lower()}
    assert_fits(with_a_line, **options)


@pytest.mark.parametrize("name", REGRESSORS)
def test_a_regressor_works_by_default_or_is_refused_by_name(name: str) -> None:
    try_regressor(name)


@pytest.mark.slow
@pytest.mark.parametrize("refine", ["pooled", "average", None])
@pytest.mark.parametrize("collaboration", COLLABORATIONS)
@pytest.mark.parametrize("name", REGRESSORS)
def test_a_regressor_works_with_all_options_or_is_refused(
    name: str, collaboration: str, refine: str | None
) -> None:
    try_regressor(name, collaboration=collaboration, refine=refine)


@pytest.mark.parametrize(
    ("candidate", "n_features", "positive"),
    [
        (CCA(1), 2, False),
        (PLSCanonical(1), 2, False),
        (RadiusNeighborsRegressor(10.0), 2, False),
        (IsotonicRegression(out_of_bounds="clip"), 1, False),
        (GammaRegressor(), 2, True),
        (PoissonRegressor(), 2, True),
        (TweedieRegressor(power=1.5), 2, True),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_refused_elsewhere_works_where_it_suits(
    candidate: Any, n_features: int, positive: bool
) -> None:
    X, y, groups = rows(n_features=n_features)
    y = np.exp(y / 2) if positive else y
    model = assert_fits(candidate, (X, y, groups))
    own = LinearRegression().fit(X, y).predict(X)
    assert np.mean((model.predict(X, groups=groups) - y) ** 2) < np.mean((own - y) ** 2)


class Bare:
    """Least squares with ``fit`` and ``predict`` and nothing else: no parameters, and fit returns nothing."""

    # Names that mean something in scikit-learn, and something else here.
    steps, positive, random_state = 7, np.ones(2), None

    def fit(self, X: Any, y: Any) -> None:
        self.w_ = np.linalg.lstsq(np.c_[X, np.ones(len(X))], y, rcond=None)[0]

    def predict(self, X: Any) -> Any:
        return (np.c_[X, np.ones(len(X))] @ self.w_).tolist()


class Truthless(Bare):
    """Has neither a truth value nor a length."""

    def __bool__(self) -> bool:
        raise RuntimeError("no truth value")

    def __len__(self) -> int:
        raise RuntimeError("no length")


class Unequal(Bare):
    """Cannot be compared."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("not comparable")

    __hash__ = None  # type: ignore[assignment]


class Arrayed(Bare):
    """Compares as arrays do."""

    def __eq__(self, other: object) -> Any:
        return np.array([True, False])

    __hash__ = Bare.__hash__


class Column(Bare):
    """Predicts a column."""

    def predict(self, X: Any) -> Any:
        return np.array(super().predict(X))[:, None]


class Dice(Bare):
    """Is never the same twice."""

    def fit(self, X: Any, y: Any) -> None:
        super().fit(X, y)
        self.w_ = self.w_ + 0.01 * np.random.default_rng().normal(size=len(self.w_))


class Halfway(RegressorMixin, Bare):
    """Has a mixin of scikit-learn, and its tags fail for want of the rest."""


class Proper(RegressorMixin, BaseEstimator):
    """Keeps scikit-learn's contract, takes weights, and can neither be compared nor asked for its truth."""

    __bool__, __len__ = Truthless.__bool__, Truthless.__len__
    __eq__, __hash__ = Unequal.__eq__, None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Proper:
        self.line_ = LinearRegression().fit(X, y, sample_weight)
        return self

    def predict(self, X: Any) -> Any:
        return self.line_.predict(X)


ODD = [Bare, Truthless, Unequal, Arrayed, Column, Dice, Halfway, Proper]


@pytest.mark.parametrize("cls", ODD)
def test_regressors_of_other_libraries_work(cls: type) -> None:
    alone = assert_fits([cls()])
    # As good as the linear model that it is.
    X, y, groups = rows()
    usual = assert_fits(["lr"])
    assert alone.learner_labels_.tolist() == usual.learner_labels_.tolist()
    if cls is not Dice:
        assert_allclose(alone.selection_.errors, usual.selection_.errors)
    assert_fits({"mine": cls(), "line": "lr"})
    assert_fits(cls(), collaboration="pooled", refine="average")
    weighted = CoterieRegressor([cls(), "ridge"], n_bootstrap=0)
    weighted.fit(X, y, groups=groups, sample_weight=np.ones(len(y)))


def test_the_users_own_candidate_stays_unfitted() -> None:
    candidate = Bare()
    assert_fits([candidate])
    assert vars(candidate) == {}


class Rows:
    """Where a learner's rows lie."""

    def __init__(self, X: Any, y: Any) -> None:
        self.X, self.y, self.n_rows = X, y, len(y)

    def read(self, most: int) -> tuple[Any, Any]:
        return self.X[:most], self.y[:most]


@pytest.mark.parametrize("cls", [None, Bare, Proper])
def test_a_fitted_model_of_such_candidates_can_do_all_that_others_can(cls: Any, tmp_path: Path) -> None:
    X, y, groups = rows(6)
    first = groups != "s5"
    candidates = [RandomForestRegressor(3) if cls is None else cls(), LinearRegression()][: 1 if cls else 2]
    model = assert_fits(candidates, (X[first], y[first], groups[first]), n_clusters=2, n_bootstrap=3)
    compare_clusters(model, 0, 1)
    find_outliers(model)
    assert "s0" in coterie.Report(model).html()
    assert "CoterieRegressor" in repr(clone(model))
    assert model._repr_mimebundle_()["text/html"]
    coterie.save(model, tmp_path / "model.coterie")
    if cls is not None:
        with pytest.raises(coterie.persistence.PersistenceError, match=f"names .*{cls.__name__}, which"):
            coterie.load(tmp_path / "model.coterie")
    again = coterie.load(tmp_path / "model.coterie", trusted=[] if cls is None else [cls])
    for one in (model, again):
        one.admit(X[~first], y[~first], groups=groups[~first])
        one.remove(["s0"])
    known = groups != "s0"
    predictions = [one.predict(X[known], groups=groups[known]) for one in (model, again)]
    assert np.isfinite(predictions).all()
    assert_allclose(*predictions)
    sources = {name: Rows(X[groups == name], y[groups == name]) for name in np.unique(groups)}
    CoterieRegressor(candidates, n_bootstrap=0).fit_sources(sources)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in REGRESSORS if name not in NEVER and name not in NOT_HERE])
def test_a_model_of_any_regressor_is_loaded_again(name: str, tmp_path: Path) -> None:
    X, _, groups = rows()
    model = assert_fits([made(name)])
    coterie.save(model, tmp_path / "model.coterie")
    again = coterie.load(tmp_path / "model.coterie")
    assert_allclose(again.predict(X, groups=groups), model.predict(X, groups=groups))
