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

from coterie import OutsideFitWarning, TableEncoder
from coterie.encoding.columns import encode_column, plan_column, plan_text


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
    sentence = "Column 'x' is missing in 1 of 2 rows, and was in 0 of 3 rows of fit: they count as the median"
    with pytest.warns(OutsideFitWarning, match=sentence):
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
    assert encoded(values, later=["a", "b", "c", "new", "a"]) == {
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
    for values, name, middle in (
        ([1.0, 3.0], "x", 2.0),
        ([date(2020, 1, 1), date(2022, 1, 1)], "x.year", 2021.0),
    ):
        with pytest.warns(OutsideFitWarning, match="is missing in 1 of 1 rows"):
            assert encode_column(plan(values), series([None], pl.String))[name].tolist() == [middle]


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
        OutsideFitWarning,
        match="'x' has entries that fit has not seen: 'c', 'd'. They are those of 2 of 3 rows, and count as",
    ):
        assert encoded(["a", "a", "b", "b"], later=["c", "b", "d"]) == {"x=b": [0, 1, 0]}


NUMBERS = [str(k) for k in range(1000, 1057)]


def of_pandas(values):
    return nw.from_native(pd.Series(values, dtype=object), series_only=True)


@pytest.mark.parametrize("make", [series, of_pandas])
@pytest.mark.parametrize(
    ("values", "kind"),
    [
        # One entry of twenty may be no number, one of nineteen may not.
        ([*NUMBERS, "defekt", "n/v", "k.A."], "number"),
        ([*NUMBERS[:19], "defekt"], "number"),
        ([*NUMBERS[:18], "defekt"], "left out"),
        (["1", "2", "3"] * 6 + ["K"], "category"),
        (["1", "2", "3"] * 7 + ["K"], "number"),
        # A gap is no entry.
        ([*NUMBERS[:19], "defekt", *[None] * 30], "number"),
        # Decimal commas, points between thousands, and blanks.
        (["12,5", "1.234,5", "7", " 8 "] * 5 + ["k.A."], "number"),
        (["12,5", "7,25"] * 3, "number"),
        (["12.5", " 7.25"] * 3, "number"),
        # Commas that may part thousands, and lists of answers.
        (["1,234", "5,678"] * 3, "category"),
        (["1,2", "1,3,4", "2"] * 3, "category"),
        # Codes keep their meaning: nothing but digits, leading zeros, letters among them.
        (["007", "012"] * 10 + ["n/v"], "category"),
        (["10115", "20095"] * 10, "category"),
        (["01067", "10115", "20095"] * 10 + ["n/v"], "category"),
        (["A1", "12", "13", "14"] * 10, "category"),
        (["12", "13"] * 9 + ["14", "A1"], "number"),
        (["12", "13"] * 9 + ["A1", "A2"], "category"),
        (["2020-01-01", "2021-02-02"] * 10, "date"),
        (["inf", "nan"] * 3, "category"),
    ],
)
def test_text_that_is_nearly_all_numbers_is_numbers_and_no_code_is(make, values, kind):
    assert plan_text("x", make(values), 12, 0.0).kind == kind


def test_a_category_of_the_library_is_never_taken_for_numbers():
    values = [*["12", "13"] * 10, "n/v"]
    assert plan_text("x", series(values, pl.Categorical), 12, 0.0).kind == "category"
    assert plan_text("x", series(values), 12, 0.0).kind == "number"


def test_a_note_names_the_column_the_count_and_examples():
    made = plan_text("x", series(["1", "2,5"] * 29 + ["defekt", "k.A."]), 12, 0.0)
    assert made.note == (
        "Column 'x' is text and was taken for numbers: 2 of 60 entries are none ('defekt', 'k.A.') and "
        "count as missing. If it holds codes, make it a category."
    )
    assert made.remark.startswith("number, 2 of 60 missing")
    assert plan_text("x", series(["12.5", " 13"]), 12, 0.0).note == (
        "Column 'x' is text and was taken for numbers."
    )
    # Objects may be numbers and text at once.
    mixed = [*range(30), np.int64(7), np.float64(1.5), "defekt"]
    made = plan_text("x", of_pandas(mixed), 12, 0.0)
    assert "1 of 33 entries are none ('defekt')" in made.note
    assert encode_column(made, of_pandas(mixed))["x"].tolist() == [*range(30), 7.0, 1.5, made.fills[0]]


def test_later_text_is_read_entry_by_entry_by_the_decimal_sign_of_fit():
    made = plan_text("x", series(["1", "2,5"] * 29 + ["defekt"]), 12, 0.0)
    # Alone or among others, in whatever share.
    for later, numbers, gaps in (
        (["2,5"], [2.5], [0]),
        (["1.500,5", "defekt", "2.5"], [1500.5, 1.75, 1.75], [0, 1, 1]),
        ([7.5], [7.5], [0]),
        (["007"], [7.0], [0]),
    ):
        assert encode_column(made, series(later)) == {
            "x": pytest.approx(numbers),
            "x.missing": pytest.approx(gaps),
        }
    # Fit saw numbers only: words are named, nothing but words is another column.
    made = plan([1.0, 2.0, 4.0])
    with pytest.warns(
        OutsideFitWarning, match="2 of 40 entries are none \\('defekt'\\): they count as missing"
    ):
        assert (
            encode_column(made, series(["1.5"] * 38 + ["defekt"] * 2))["x"].tolist() == [1.5] * 38 + [2.0] * 2
        )


def test_a_category_of_which_most_entries_are_rare_has_a_note():
    values = ["a"] * 50 + ["b"] * 50 + [f"rare {k}" for k in range(6)]
    assert plan_text("x", series(values), 12, 0.01).note == (
        "Column 'x' is a category of 8 entries, and 6 of them are rare and were joined (6 of 106 rows): join "
        "them by meaning, or make it numbers if it is."
    )
    # A few rows are no loss, and as many frequent entries as rare ones are a category.
    assert plan_text("x", series(values[:105]), 12, 0.01).note == ""
    assert plan_text("x", series([*["a", "b"] * 10, "rare 1", "rare 2"]), 12, 0.01).note == ""


RED = ["red"] * 60 + ["blue"] * 40


@pytest.mark.parametrize(
    ("values", "later", "match"),
    [
        (
            RED,
            [1.5, 2.0, 3.0],
            "entries that fit has not seen: '1.5', '2.0', '3.0'. They are those of 3 of 3",
        ),
        ([*RED, "x", "y"], [1.5, 2.0], "of 2 of 2 rows, where 2 of 102 were rare, and count as rare ones"),
        ([*RED, "x", "y"], ["new"] * 30 + ["red"] * 70, "of 30 of 100 rows, where 2 of 102 were rare"),
        (
            RED,
            [None] * 30,
            "is missing in 30 of 30 rows, and was in 0 of 100 rows of fit: they count as 'red'",
        ),
        ([*RED, None], [None] * 30, "is missing in 30 of 30 rows, and was in 1 of 101 rows of fit"),
    ],
)
def test_entries_that_are_unlike_those_of_fit_are_named(values, later, match):
    made = plan_text("x", series(values), 12, 0.015)
    with pytest.warns(OutsideFitWarning, match=match):
        encode_column(made, series(later))


@pytest.mark.parametrize(
    ("values", "later"),
    [
        # One row with a rare entry, or a gap, where fit had some, is an ordinary row.
        ([*RED, "x", "y"], ["z"]),
        ([*RED, None, None], [None]),
        # As many as in fit, all in the rows of one learner.
        ([*RED, *[None] * 20], [None] * 20),
        # Whole numbers that are written as text, and become fractions beside a gap.
        (["1", "2"] * 30, [1, 2]),
        (["1", "2", None] * 30, [1.0, 2.0, None]),
    ],
)
def test_ordinary_rows_are_quiet(values, later):
    made = plan_text("x", series(values), 12, 0.015)
    assert sum(column.sum() for column in encode_column(made, series(later)).values()) <= len(later)


def test_an_encoder_keeps_its_notes():
    table = pl.DataFrame({"x": [*NUMBERS, "defekt"], "z": range(58)})
    assert [plan.kind for plan in TableEncoder().fit(table).columns_] == ["number", "number"]
