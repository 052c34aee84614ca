from typing import Any
from unittest.mock import ANY

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import StackingRegressor
from sklearn.linear_model import Lasso, LinearRegression, MultiTaskLasso, Ridge
from sklearn.multioutput import MultiOutputRegressor, RegressorChain
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from coterie._seeds import seed_estimator
from coterie.candidates import KNOWN, PRESETS, candidates_per_learner, make_candidates, names_learners
from coterie.method.fitting import quiet_fits


class Model2(Ridge):
    """A name that ends in a digit."""


def rows(n: int = 30) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3)) * [1, 100, 0.01]
    return X, X @ [1, 0.02, 0] + np.sin(X[:, 0]) + 0.3 * rng.normal(size=n)


@pytest.mark.parametrize("name", KNOWN)
def test_every_name_builds_a_candidate_that_learns(name: str) -> None:
    X, y = rows()
    candidates = make_candidates(name)
    assert list(candidates) == [name]
    with quiet_fits():
        model = seed_estimator(clone(candidates[name]), 0).fit(X, y)
    assert np.mean((model.predict(X) - y) ** 2) < 0.5 * y.var()


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_builds_its_candidates_in_order(preset: str) -> None:
    assert tuple(make_candidates(preset)) == PRESETS[preset]


def test_presets_are_what_the_documents_say() -> None:
    assert list(make_candidates(None)) == list(make_candidates("default"))
    assert set(PRESETS["paper"]) == {"rf", "knn", "svr", "nn", "gb", "lasso", "lars", "en", "ridge"}
    assert set(PRESETS["linear"]) == {"lr", "ridge", "lasso"}


def test_candidates_are_made_anew_each_time() -> None:
    assert make_candidates("lr")["lr"] is not make_candidates("lr")["lr"]


@pytest.mark.parametrize("spec", ["forest", ["rf", "forest"], {"mine": "forest"}])
def test_an_unknown_name_lists_the_known_ones(spec: Any) -> None:
    with pytest.raises(ValueError, match="The candidate 'forest' is not known") as caught:
        make_candidates(spec)
    for known in (*KNOWN, *PRESETS):
        assert repr(known) in str(caught.value)


def test_a_regressor_is_named_after_its_class() -> None:
    one = LinearRegression()
    assert make_candidates(one) == {"linearregression": one}
    assert list(make_candidates(make_pipeline(StandardScaler(), Ridge()))) == ["ridge"]


def test_regressors_of_one_class_get_names_of_their_own() -> None:
    three = [Ridge(1), Ridge(2), Ridge(3)]
    assert make_candidates(three) == dict(zip(["ridge", "ridge-2", "ridge-3"], three, strict=True))


@pytest.mark.parametrize(
    "spec",
    [
        ["ridge", Ridge()],
        ["linear", make_pipeline(StandardScaler(), Ridge())],
        [Lasso(1), Ridge(), Lasso(2), Ridge(2)],
        [Ridge(), "ridge"],
        [Model2(1), Model2(2)],
        [Ridge(), "ridge", Ridge(), "linear"],
    ],
    ids=str,
)
def test_no_candidate_of_a_list_is_lost(spec: list[Any]) -> None:
    candidates = make_candidates(spec)
    names = {name for s in spec if isinstance(s, str) for name in PRESETS.get(s, (s,))}
    assert len(candidates) == len(names) + sum(not isinstance(s, str) for s in spec)
    own = {id(s) for s in spec if not isinstance(s, str)}
    assert own <= {id(candidate) for candidate in candidates.values()}


def test_a_list_mixes_presets_names_and_regressors() -> None:
    assert list(make_candidates(["linear", "rf", Lasso()])) == ["lr", "ridge", "lasso", "rf", "lasso-2"]
    assert list(make_candidates(name for name in ("lr", "rf"))) == ["lr", "rf"]


def test_a_dict_names_its_candidates() -> None:
    mine = Ridge(5)
    candidates = make_candidates({"mine": mine, "forest": "rf", 3: LinearRegression()})
    assert list(candidates) == ["mine", "forest", "3"]
    assert candidates["mine"] is mine


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        (Ridge, r"The 'candidates' option takes a preset .*Got <class"),
        ([Ridge], r"instances, not classes\)\. Got <class"),
        (
            {"mine": Ridge},
            "The candidate 'mine' must be a known name or a scikit-learn regressor. Got <class",
        ),
        ([StandardScaler()], r"Got StandardScaler\(\)"),
        ([], "The 'candidates' option is empty"),
        ({}, "The 'candidates' option is empty"),
        (3, r"takes a preset \('default', 'linear', 'paper'\), a list, or a dict. Got 3"),
        ([None], "Got None"),
    ],
)
def test_what_is_no_candidate_is_refused(spec: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        make_candidates(spec)


class Bare:
    """A regressor of no library, whose ``steps`` are no pipeline's."""

    steps = 100

    def fit(self, X: Any, y: Any) -> None: ...

    def predict(self, X: Any) -> Any: ...


def test_a_regressor_need_not_be_scikit_learns() -> None:
    one = Bare()
    assert make_candidates(one) == {"bare": one}
    assert make_candidates({"mine": one}) == {"mine": one}


def test_a_regressor_that_cannot_predict_yet_is_one() -> None:
    stack = StackingRegressor([("a", Ridge()), ("b", LinearRegression())])
    assert not hasattr(stack, "predict")
    assert make_candidates([stack, "lr"]) == {"stackingregressor": stack, "lr": ANY}
    with pytest.raises(ValueError, match="Got Pipeline"):
        make_candidates(make_pipeline(StandardScaler()))


@pytest.mark.parametrize(
    "regressor", [MultiTaskLasso(), MultiOutputRegressor(Ridge()), RegressorChain(Ridge())]
)
def test_who_needs_several_responses_is_refused_by_name(regressor: Any) -> None:
    for spec in (regressor, [regressor, "lr"], {"mine": regressor}):
        with pytest.raises(
            ValueError, match=f"The candidate {type(regressor).__name__} needs several responses"
        ):
            make_candidates(spec)


def test_learners_share_one_set_or_have_their_own() -> None:
    shared = candidates_per_learner("linear", ["u", "v"])
    assert [list(s) for s in shared] == [["lr", "ridge", "lasso"]] * 2
    own = candidates_per_learner({"v": "lr", "u": ["rf", Ridge()]}, ["u", "v"])
    assert [list(s) for s in own] == [["rf", "ridge"], ["lr"]]
    numbered = candidates_per_learner({1: "lr", 2: "default"}, [2, 1])
    assert [list(s) for s in numbered] == [["ridge", "rf"], ["lr"]]


def test_a_dict_of_names_is_not_taken_for_one_of_learners() -> None:
    assert not names_learners({"mine": Ridge()}, ["u", "v"])
    assert names_learners({"u": Ridge()}, ["u", "v"])
    assert not names_learners("linear", ["linear"])
    assert [list(s) for s in candidates_per_learner({"mine": Ridge()}, ["u", "v"])] == [["mine"]] * 2


def test_a_mapping_that_leaves_a_learner_out_names_it() -> None:
    with pytest.raises(ValueError, match="names no candidates for learner 'v', 'w': give every learner"):
        candidates_per_learner({"u": "lr"}, ["u", "v", "w"])


@pytest.mark.parametrize("name", [n for n in KNOWN if n not in ("rf", "gb")])
def test_a_change_of_the_predictors_units_changes_nothing(name: str) -> None:
    X, y = rows(60)
    with quiet_fits():
        one, other = (
            seed_estimator(KNOWN[name](), 0).fit(X[:30] * u, y[:30]).predict(X[30:] * u)
            for u in (1, [1e3, 1e-3, 50])
        )
    assert np.allclose(other, one, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("power", [20, -40])
@pytest.mark.parametrize("name", KNOWN)
def test_a_change_of_unit_changes_nothing(name: str, power: int) -> None:
    # About 1e6 and 1e-12: powers of two, for a forest breaks ties between equal splits by rounding.
    X, y = rows()
    unit = 2.0**power
    with quiet_fits():
        one, other = (seed_estimator(KNOWN[name](), 0).fit(X, u * y).predict(X) for u in (1, unit))
    assert np.allclose(other / unit, one, rtol=1e-6, atol=1e-6)
