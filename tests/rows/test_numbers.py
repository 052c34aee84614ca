"""Numbers of any kind as float64; units are divided by powers of two without losing a digit."""

import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from coterie import CoterieRegressor, load, save
from coterie.datasets import make_linear_learners
from coterie.rows.learners import gather_learners
from coterie.rows.numbers import NoNumberError, as_array, as_numbers, divided, extreme_exponents, is_missing
from coterie.rows.tables import check_predictors

DATA = make_linear_learners(6, n_rows=20, coefficients=[[2, 0, 1], [-2, 1, 0]], random_state=0)


def fitted(X: Any, candidates: Any = "lr", **options: Any) -> CoterieRegressor:
    model = CoterieRegressor(candidates, collaboration="pooled", n_bootstrap=0, **options)
    return model.fit(X, DATA.y, groups=DATA.groups)


@pytest.mark.parametrize("candidates", ["lr", "rf"])
@pytest.mark.parametrize("exponent", [-1000, -565, -130, -40, 130, 700, 1000])
def test_extreme_units_give_the_answer_of_ordinary_ones(candidates: str, exponent: int) -> None:
    # With 1e-170 lines ended in a LinAlgError, and forests, in single precision, saw zeros.
    plain = fitted(DATA.X, candidates, n_clusters=2)
    X = np.ldexp(DATA.X, [exponent, 0, 0])
    extreme = fitted(X, candidates, n_clusters=2)
    np.testing.assert_array_equal(extreme.learner_labels_, plain.learner_labels_)
    expected = plain.predict(DATA.X, DATA.groups)
    np.testing.assert_allclose(extreme.predict(X, DATA.groups), expected, rtol=1e-9)


def test_ordinary_units_are_left_as_they_are() -> None:
    X = DATA.X * [1e-3, 1.0, 1e25]
    exponents = extreme_exponents(X)
    assert not exponents.any()
    assert divided(X, exponents) is X


def test_units_hold_for_newcomers_and_after_saving(tmp_path: Any) -> None:
    X = np.ldexp(DATA.X, -600)
    first, last = slice(0, 80), slice(80, 120)
    model = CoterieRegressor("lr", n_clusters=2, n_bootstrap=0).fit(
        X[first], DATA.y[first], groups=DATA.groups[first]
    )
    save(model, tmp_path / "model.coterie")
    again = load(tmp_path / "model.coterie")
    labels = model.admit(X[last], DATA.y[last], groups=DATA.groups[last])
    np.testing.assert_array_equal(labels, model.learner_labels_[:2])
    np.testing.assert_array_equal(again.admit(X[last], DATA.y[last], groups=DATA.groups[last]), labels)
    np.testing.assert_array_equal(again.predict(X, DATA.groups), model.predict(X, DATA.groups))


def test_a_stage_refuses_units_that_trees_cannot_hold() -> None:
    with pytest.raises(
        ValueError, match=r"Column 1 of X in select_models is at most .* Give it in other units"
    ):
        gather_learners(DATA.X * [1, 1e-40, 1], DATA.y, DATA.groups, caller="select_models")


def test_rows_far_beyond_those_of_fit_are_refused_in_predict() -> None:
    model = fitted(DATA.X)
    with pytest.raises(
        ValueError, match=r"Column 2 of X in CoterieRegressor.predict is .*in the units of fit"
    ):
        model.predict(DATA.X * [1, 1, 1e300], DATA.groups)


def test_what_is_masked_is_missing() -> None:
    masked = np.ma.masked_array(np.ones((2, 2)), mask=[[False, True], [False, False]])
    np.testing.assert_array_equal(as_numbers(masked), [[1, np.nan], [1, 1]])
    np.testing.assert_array_equal(as_numbers(as_array(list(masked))), [[1, np.nan], [1, 1]])
    objects = np.ma.masked_array(np.array([1, "x"], dtype=object), mask=[False, True])
    np.testing.assert_array_equal(as_numbers(objects), [1, np.nan])
    assert np.isnan(check_predictors(masked, "fit")[0, 1])
    X = np.ma.masked_array(DATA.X, mask=np.zeros_like(DATA.X, dtype=bool))
    X[3, 1] = np.ma.masked
    with pytest.raises(ValueError, match="contains NaN in column 1 of learner"):
        fitted(X)


@pytest.mark.parametrize("gap", [None, np.nan, pd.NA, pd.NaT, np.ma.masked, Decimal("NaN")])
def test_every_kind_of_gap_becomes_nan(gap: Any) -> None:
    values = np.empty(2, dtype=object)
    values[:] = [1, gap]
    numbers = as_numbers(values)
    assert numbers[0] == 1
    assert np.isnan(numbers[1])


@pytest.mark.parametrize(
    "entry", [2, 2.0, "2", b"2", Fraction(2), Decimal(2), np.float32(2), np.longdouble(2)]
)
def test_every_kind_of_number_is_one(entry: Any) -> None:
    values = np.empty(1, dtype=object)
    values[0] = entry
    assert as_numbers(values).tolist() == [2.0]


@pytest.mark.parametrize(
    ("values", "why"),
    [
        (np.array(["2020-01-01"], dtype="datetime64[D]"), "dates"),
        (np.array([5], dtype="timedelta64[s]"), "dates"),
        (np.array([datetime.date(2020, 1, 1)], dtype=object), "dates"),
        (np.array([np.timedelta64(5, "s"), 1], dtype=object), "dates"),
        (np.array([1j]), "complex"),
        (np.array([1j, 1.0], dtype=object), "complex"),
        (np.array([10**400], dtype=object), "large"),
        (np.array([-(10**400)], dtype=object), "large"),
        (np.array([(1.0,)], dtype=[("a", float)]), "fields"),
        (np.array([{}], dtype=object), "other"),
        (np.array(["x"]), "other"),
    ],
)
def test_what_is_no_number_says_why(values: Any, why: str) -> None:
    with pytest.raises(NoNumberError) as caught:
        as_numbers(values)
    assert caught.value.why == why


def test_a_conversion_that_fails_in_its_own_way_is_no_number() -> None:
    class Stubborn:
        def __float__(self) -> float:
            raise RuntimeError("never")

    with pytest.raises(NoNumberError):
        as_numbers(np.array([Stubborn()], dtype=object))


@pytest.mark.parametrize(
    ("X", "sentence"),
    [
        (
            np.zeros((2, 2), dtype="datetime64[s]"),
            "X of fit holds dates or durations: turn them into numbers",
        ),
        ([[1, 10**400]], "The column 1 of X in fit holds a number beyond the range .* other units"),
        (pd.DataFrame({"a": [10**400]}), "The columns 'a' of X in fit hold a number beyond the range"),
        (pd.DataFrame({0: pd.to_datetime(["2020-01-01"])}), "The columns 0 of X in fit are not numeric"),
    ],
)
def test_predictors_that_are_no_numbers_are_refused_in_a_sentence(X: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        check_predictors(X, "fit")


def test_sparse_columns_of_pandas_are_numbers() -> None:
    frame = pd.DataFrame({"a": [0.0, 1.0], "b": [2.0, 0.0]})
    sparse = frame.astype(pd.SparseDtype(float, 0))
    np.testing.assert_array_equal(check_predictors(sparse, "fit"), frame.to_numpy())


@pytest.mark.parametrize("weight", [1e308, 1e-310])
def test_weights_of_any_size_count_by_what_they_are_to_each_other(weight: float) -> None:
    model = CoterieRegressor("lr", n_clusters=2, n_bootstrap=0)
    plain = model.fit(DATA.X, DATA.y, groups=DATA.groups).learner_labels_
    weights = np.full(len(DATA.y), weight)
    extreme = model.fit(DATA.X, DATA.y, groups=DATA.groups, sample_weight=weights).learner_labels_
    np.testing.assert_array_equal(extreme, plain)


def test_a_tuple_with_a_gap_is_missing() -> None:
    assert is_missing(("a", (1, None)))
    assert not is_missing(("a", 1))


def test_one_wild_cell_is_not_the_unit_of_a_column() -> None:
    X = np.ones((9, 2))
    X[4, 0] = 1e120
    X[:, 1] = 1e120
    assert extreme_exponents(X).tolist() == [0, 399]
