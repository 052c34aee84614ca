"""Tables as they come, and what a refused or a later call leaves of a fit."""

from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import coterie
from coterie import CoterieClassifier, CoterieRegressor, TableEncoder

N = 160
RNG = np.random.default_rng(0)
SITES = np.repeat([f"0{k}" for k in range(4)], N // 4)
SIZE = RNG.normal(size=N)
COLOUR = RNG.choice(["red", "green", "blue"], N)
EFFECT = np.where(SITES < "02", 2.0, -2.0)
Y = EFFECT * SIZE + 3 * (COLOUR == "blue") + 0.1 * RNG.normal(size=N)
COLUMNS: dict[str, list[Any]] = {
    "size": [None if k % 5 == 0 else v for k, v in enumerate(SIZE.tolist())],
    "colour": [None if k % 11 == 0 else c for k, c in enumerate(COLOUR.tolist())],
    "sold": [date(2020 + k % 3, 1 + k % 12, 1) for k in range(N)],
    "new": [None if k % 7 == 0 else k % 2 == 0 for k in range(N)],
    "id": [f"row {k}" for k in range(N)],
    "site": SITES.tolist(),
}
MAKERS: dict[str, Any] = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": lambda columns: pl.DataFrame(columns).to_arrow(),
}


def regressor(**options: Any) -> CoterieRegressor:
    return CoterieRegressor(**{"candidates": "linear", "n_clusters": 2, "n_bootstrap": 0, **options})


@pytest.fixture(scope="module")
def model() -> CoterieRegressor:
    """One fit for the tests that only look at it."""
    return regressor().fit(pd.DataFrame(COLUMNS), pd.Series(Y, name="price"), groups="site")


@pytest.mark.parametrize("kind", list(MAKERS))
def test_every_library_s_table_is_encoded_as_the_command_line_does(
    kind: str, model: CoterieRegressor
) -> None:
    table = MAKERS[kind](COLUMNS)
    again = regressor().fit(table, Y, groups="site")
    by_hand = TableEncoder().fit(pl.DataFrame(COLUMNS).drop("site"))
    assert again.predictors_ == by_hand.get_feature_names_out().tolist()
    assert {"size.missing", "colour=green", "sold.month", "new"} < set(again.predictors_)
    assert again.feature_names_in_.tolist() == ["size", "colour", "sold", "new", "id"]
    assert again.n_features_in_ == 5
    assert "Left out of the predictors: 'id'. Why, encoder_.columns_ says." in again.partition_.notes
    assert_array_equal(again.predict(table), model.predict(pd.DataFrame(COLUMNS)))


def test_a_table_and_its_encoded_form_give_the_same_bits(model: CoterieRegressor) -> None:
    X = model.encoder_.transform(pd.DataFrame(COLUMNS)).to_numpy()
    again = regressor().fit(X, Y, groups=SITES)
    assert_array_equal(again.predict(X, groups=SITES), model.predict(pd.DataFrame(COLUMNS)))


def test_numbers_without_gaps_are_not_encoded() -> None:
    table = pd.DataFrame({"size": SIZE, "one": 1.0})
    model = regressor().fit(table, Y, groups=SITES)
    assert model.encoder_ is None
    assert model.predictors_ == ["size", "one"]
    assert regressor().fit(table.to_numpy(), Y, groups=SITES).predictors_ is None


def test_a_saved_model_keeps_its_encoder(model: CoterieRegressor, tmp_path: Any) -> None:
    coterie.save(model, tmp_path / "m.coterie")
    again = coterie.load(tmp_path / "m.coterie")
    table = pd.DataFrame(COLUMNS)
    assert_array_equal(again.predict(table), model.predict(table))
    assert again.table_ == model.table_
    assert (again.table_.target, again.table_.group) == ("price", "site")


def test_whatever_takes_rows_takes_the_table(model: CoterieRegressor) -> None:
    table = pd.DataFrame(COLUMNS)
    again = regressor().fit(table, Y, groups="site")
    assert again.admit(table[:40].assign(site="newcomer"), Y[:40]).shape == (1,)
    low, high = again.predict_interval(table).T
    assert (low <= high).all()
    from coterie.verdicts import compare_clusters

    assert set(compare_clusters(model, 0, 1).predictors) == set(model.predictors_)


def test_classes_are_predicted_from_tables() -> None:
    table = pd.DataFrame(COLUMNS)
    model = CoterieClassifier("linear", n_clusters=2, n_bootstrap=0).fit(table, Y > 0, groups="site")
    assert model.predict_proba(table).shape == (N, 2)
    assert model.score(table, Y > 0) > 0.8


def test_an_array_is_refused_where_fit_had_a_table(model: CoterieRegressor) -> None:
    with pytest.raises(ValueError, match=r"predict takes a table with the columns of fit.* Got ndarray"):
        model.predict(np.zeros((2, 5)), groups=["00", "01"])
    with pytest.raises(ValueError, match="lacks the column 'size'"):
        model.predict(pd.DataFrame(COLUMNS).drop(columns="size"))


def test_an_entry_that_fit_has_not_seen_is_named(model: CoterieRegressor) -> None:
    table = pd.DataFrame(COLUMNS)
    table.loc[3, "colour"] = "purple"
    with pytest.warns(UserWarning, match="'colour' has entries that fit has not seen: 'purple'"):
        model.predict(table)


def test_it_works_in_a_clone_a_pipeline_and_a_grid(model: CoterieRegressor) -> None:
    table = pd.DataFrame(COLUMNS)
    estimator = regressor(group_column="site")
    pipeline = make_pipeline(FunctionTransformer(), clone(estimator)).fit(table, Y)
    assert_array_equal(pipeline.predict(table), model.predict(table))
    cv = KFold(2, shuffle=True, random_state=0)
    grid = GridSearchCV(estimator, {"n_clusters": [1, 2]}, cv=cv, error_score="raise").fit(table, Y)
    assert grid.best_params_ == {"n_clusters": 2}


def test_a_refused_fit_leaves_the_model_as_it_was(model: CoterieRegressor) -> None:
    again = regressor().fit(pd.DataFrame(COLUMNS), Y, groups="site")
    before = dict(vars(again))
    with pytest.raises(ValueError, match="must have one entry per row"):
        again.fit(SIZE[:, None], Y[:-1], groups=SITES)
    assert vars(again) == before
    fresh = regressor()
    with pytest.raises(ValueError, match="must have one entry per row"):
        fresh.fit(pd.DataFrame({"size": SIZE}), Y[:-1], groups=SITES)
    assert not hasattr(fresh, "n_features_in_")
    assert not hasattr(fresh, "feature_names_in_")


def test_options_set_after_the_fit_wait_for_the_next_fit(tmp_path: Any) -> None:
    model = regressor().fit(SIZE[:, None], Y, groups=SITES)
    model.set_params(candidates="paper", nested_folds=2, n_jobs=2)
    model.admit(SIZE[:40, None], Y[:40], groups=["new"] * 40)
    model.remove("new")
    assert (model.record_.options.candidates, model.record_.options.nested_folds) == ("linear", 4)
    assert model.record_.options.n_jobs == 2
    coterie.save(model, tmp_path / "m.coterie")
    assert coterie.load(tmp_path / "m.coterie").candidates == "linear"


def test_a_small_learner_is_predicted_with_others_where_all_are_asked_alone() -> None:
    keep = np.r_[: N - 38]
    X, groups = SIZE[keep, None], SITES[keep]
    model = regressor().fit(X, Y[keep], groups=groups)
    with pytest.warns(UserWarning, match="'03' has too few rows for an own model and is predicted with"):
        alone = model.predict(X, groups=groups, using="alone")
    small = groups == "03"
    assert_array_equal(alone[small], model.predict(X, groups=groups, using="others")[small])
    assert not np.array_equal(alone[~small], model.predict(X, groups=groups, using="others")[~small])


def test_a_classifier_names_sets_where_intervals_are_asked_for() -> None:
    assert not hasattr(CoterieClassifier(), "predict_interval")
    with pytest.raises(AttributeError, match="use predict_set"):
        CoterieClassifier().predict_interval(SIZE[:, None])


def test_a_fitted_model_says_its_answer(model: CoterieRegressor) -> None:
    assert str(model) == model.summary()
    assert "Root mean squared error of price on rows not seen" in model.summary()
    assert str(regressor()) == repr(regressor())
    with pytest.raises(NotFittedError):
        regressor().summary()


def test_a_fitted_model_draws_its_gains(model: CoterieRegressor) -> None:
    pytest.importorskip("matplotlib").use("agg")
    display = model.plot()
    assert (
        display.frame()["learner"].tolist() == model.gains_.sort("gain", descending=True)["learner"].tolist()
    )
    display.figure_.clf()


def test_fit_without_groups_says_that_there_is_one_learner() -> None:
    with pytest.warns(UserWarning, match="all rows belong to one learner"):
        regressor().fit(SIZE[:, None], Y)


def test_rows_are_brought_into_time_order_whatever_their_order_in_the_table() -> None:
    days = np.tile(np.arange(N // 4), 4)
    table = pd.DataFrame({"size": SIZE, "day": days})
    shuffled = np.random.default_rng(1).permutation(N)
    model = regressor(time="day").fit(table, Y, groups=SITES)
    again = regressor().fit(SIZE[shuffled, None], Y[shuffled], groups=SITES[shuffled], time=days[shuffled])
    column = regressor(time="day").fit(table.iloc[shuffled], Y[shuffled], groups=SITES[shuffled])
    for other in (again, column):
        assert_array_equal(other.gains_.sort("learner")["gain"], model.gains_.sort("learner")["gain"])
    assert model.predictors_ == ["size"]
    assert_array_equal(model.predict(table, SITES), model.predict(table[["size"]], SITES))
    assert any("Errors are those of forecasts" in note for note in model.partition_.notes)
    assert again.record_.options.time is True
    said = regressor().fit(SIZE[:, None], Y, groups=SITES, time=True)
    assert_array_equal(said.gains_["gain"], model.gains_["gain"])
    with pytest.raises(ValueError, match=r"time column 'day' of CoterieRegressor\.admit is not a column"):
        model.admit(table[["size"]][:40], Y[:40], groups=["new"] * 40)
    assert model.admit(table[:40], Y[:40], groups=["new"] * 40).shape == (1,)


def test_what_comes_later_changes_no_forecast() -> None:
    late = np.tile(np.arange(N // 4), 4) >= 34
    changed = np.where(late, Y + 5.0, Y)
    first, second = (
        regressor(candidates=["lr"], time=True).fit(SIZE[:, None], y, groups=SITES).record_.own.residuals
        for y in (Y, changed)
    )
    for one, other in zip(first, second, strict=True):
        assert np.isnan(one[:20]).all()
        assert_array_equal(one[20:33], other[20:33])
        assert (one[34:] != other[34:]).all()


def test_a_time_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="'time' option must be the name of a column of X, True"):
        regressor(time=3).fit(SIZE[:, None], Y, groups=SITES)
    table = pd.DataFrame({"size": SIZE, "site": SITES})
    with pytest.raises(ValueError, match=r"'site' of .* cannot be group and time at once"):
        regressor().fit(table, Y, groups="site", time="site")


def test_the_log_of_the_response_is_undone(tmp_path: Any) -> None:
    y = np.exp(Y)
    model = regressor(log_target=True).fit(SIZE[:, None], pd.Series(y, name="price"), groups=SITES)
    plain = regressor().fit(SIZE[:, None], Y, groups=SITES)
    rows = {"X": SIZE[:, None], "groups": SITES}
    np.testing.assert_allclose(model.predict(**rows), np.exp(plain.predict(**rows)))
    np.testing.assert_allclose(model.predict_interval(**rows), np.exp(plain.predict_interval(**rows)))
    assert "of the log of price on rows not seen" in model.summary()
    coterie.save(model, tmp_path / "m.coterie")
    again = coterie.load(tmp_path / "m.coterie").set_params(log_target=False)
    assert_array_equal(again.predict(**rows), model.predict(**rows))
    again.admit(SIZE[:40, None], y[:40], groups=["new"] * 40)
    assert again.predict(SIZE[:1, None], groups=["new"])[0] > 0
    with pytest.raises(ValueError, match=r"must be positive where log_target=True\. The smallest is -"):
        regressor(log_target=True).fit(SIZE[:, None], Y, groups=SITES)
