"""One column at a time: what becomes of it, and that later rows are treated alike."""

from datetime import date, datetime, timedelta
from decimal import Decimal

import narwhals.stable.v1 as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.encoding.columns import encode_column, plan_column


def series(values, dtype=None):
    return nw.from_native(pl.Series("x", values, dtype=dtype, strict=False), series_only=True)


def plan(values, max_levels=12, min_share=0.0, dtype=None):
    return plan_column("x", series(values, dtype), max_levels, min_share)


def encoded(values, later=None, **options):
    made = plan(values, **options)
    return {name: column.tolist() for name, column in encode_column(made, series(later or values)).items()}


def test_numbers_stay_as_they_are():
    assert encoded([1, 2, 4]) == {"x": [1.0, 2.0, 4.0]}


def test_a_missing_or_infinite_number_becomes_the_median_and_is_marked():
    assert encoded([1.0, None, 3.0, float("inf"), 5.0, float("nan")]) == {
        "x": [1.0, 3.0, 3.0, 3.0, 5.0, 3.0],
        "x.missing": [0.0, 1.0, 0.0, 1.0, 0.0, 1.0],
    }


def test_a_number_missing_only_later_becomes_the_median_of_fit():
    assert encoded([1.0, 2.0, 9.0], later=[None, 4.0]) == {"x": [2.0, 4.0]}


def test_booleans_and_durations_are_numbers():
    assert encoded([True, False, None]) == {"x": [1.0, 0.0, 0.5], "x.missing": [0.0, 0.0, 1.0]}
    assert encoded([timedelta(seconds=1), timedelta(milliseconds=500)]) == {"x": [1.0, 0.5]}


def test_text_has_a_column_per_entry_but_the_most_frequent():
    assert encoded(["red", "red", "red", "blue", "blue", "green", "green"], max_levels=3) == {
        "x=blue": [0, 0, 0, 1, 1, 0, 0],
        "x=green": [0, 0, 0, 0, 0, 1, 1],
    }


def test_rare_entries_share_a_column_which_takes_new_ones_too():
    values = ["a"] * 5 + ["b"] * 3 + ["c", "d"]
    assert plan(values).levels == ("a", "b")
    assert encoded(values, later=["a", "b", "c", "new", None]) == {
        "x=b": [0, 1, 0, 0, 0],
        "x=(other)": [0, 0, 1, 1, 0],
    }


def test_at_most_so_many_entries_have_a_column():
    made = plan(list("aaaabbbccdd"), max_levels=2)
    assert (made.levels, made.other) == (("a", "b"), True)


def test_missing_text_is_marked_and_an_empty_text_is_an_entry():
    assert encoded(["a", "a", "a", "", "", None]) == {
        "x=": [0, 0, 0, 1, 1, 0],
        "x.missing": [0, 0, 0, 0, 0, 1],
    }


def test_categories_of_polars_are_text():
    assert encoded(["u", "v", "u", "v"], dtype=pl.Categorical) == {"x=v": [0, 1, 0, 1]}


def test_a_date_becomes_those_of_its_parts_that_vary():
    days = [date(2020, 1, 6), date(2021, 1, 5), None]
    assert encoded(days) == {
        "x.year": [2020, 2021, 2020.5],
        "x.weekday": [1, 2, 1.5],
        "x.missing": [0, 0, 1],
    }


def test_a_time_of_day_becomes_the_hour():
    assert encoded([datetime(2020, 1, 6, 3), datetime(2020, 1, 6, 15)]) == {"x.hour": [3, 15]}


def test_dates_where_fit_had_times_are_midnight():
    times = [datetime(2020, 1, 6, 3), datetime(2020, 1, 6, 15)]
    assert encoded(times, later=[date(2020, 1, 6)]) == {"x.hour": [0]}


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ([None, None], "empty"),
        ([2, 2, 2], "one value 2"),
        (["a", "a"], "one value 'a'"),
        ([date(2020, 1, 6)] * 2, "the same in all rows"),
        ([f"name {k}" for k in range(40)], "name rows"),
        ([[1], [2]], "List"),
    ],
)
def test_what_says_nothing_is_left_out_with_the_reason(values, why):
    made = plan(values, dtype=pl.Float64 if values == [None, None] else None)
    assert made.kind == "left out"
    assert made.features == ()
    assert why in made.remark


def test_the_remark_says_how_many_are_missing_and_what_they_become():
    assert plan([1.0, None, 3.0]).remark == "number, 1 of 3 missing (filled with the median 2, and marked)"


@pytest.mark.parametrize(
    ("first", "later"), [([1, 2], ["a", "b"]), ([date(2020, 1, 1), date(2021, 1, 1)], ["a", "b"])]
)
def test_another_type_than_in_fit_is_refused_by_name(first, later):
    with pytest.raises(ValueError, match=r"The column 'x' held a .* in fit and holds entries of type String"):
        encoded(first, later=later)


def test_an_empty_column_later_is_all_missing_whatever_its_type():
    made = plan([1.0, 3.0])
    assert encode_column(made, series([None], pl.String))["x"].tolist() == [2.0]
    made = plan([date(2020, 1, 1), date(2022, 1, 1)])
    assert encode_column(made, series([None], pl.String))["x.year"].tolist() == [2021.0]


@given(
    st.lists(st.one_of(st.none(), st.sampled_from(["a", "b", "c", "d"])), min_size=1, max_size=30).filter(
        lambda values: any(values)
    )
)
def test_every_row_of_text_is_in_one_column_at_most(values):
    made = plan(values)
    if made.kind == "category":
        columns = np.array(list(encode_column(made, series(values)).values()))
        assert set(columns.sum(axis=0)) <= {0.0, 1.0}


@pytest.mark.parametrize(
    ("values", "features", "remark"),
    [
        ([True, None, False], ("x", "x.missing"), "number, 1 of 3 missing"),
        ([Decimal("1.5"), Decimal(2), None], ("x", "x.missing"), "number, 1 of 3 missing"),
        ([date(2020, 1, 1), None, date(2021, 1, 1)], ("x.year", "x.weekday", "x.missing"), "date"),
        (["a", 3, 3, "a", 3], ("x=a",), "category: 2 entries, '3' as reference"),
        (["31.12.2020", "01.01.2021", None], ("x.year", "x.month", "x.weekday", "x.missing"), "date"),
        (["2020-12-31 10:00", "2021-01-01 11:00"], ("x.year", "x.month", "x.weekday", "x.hour"), "date"),
        (["12/01/2020", "01/12/2020"] * 2, ("x=12/01/2020",), "category"),
        ([None, None], (), "left out: it is empty"),
        ([[1], [2]], (), "left out: entries of type Object"),
    ],
)
def test_objects_and_text_of_pandas_are_taken_for_what_they_are(values, features, remark):
    column = nw.from_native(pd.Series(values, dtype=object), series_only=True)
    made = plan_column("x", column, 12, 0.0)
    assert made.features == features
    assert made.remark.startswith(remark)
    if features:
        assert all(np.isfinite(part).all() for part in encode_column(made, column).values())


def test_an_entry_that_fit_has_not_seen_is_named_with_its_column():
    with pytest.warns(
        UserWarning, match="'x' has entries that fit has not seen: 'c', 'd'. They count as 'a'"
    ):
        assert encoded(["a", "a", "b", "b"], later=["c", "b", "d", None]) == {"x=b": [0, 1, 0, 0]}
