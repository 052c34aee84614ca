"""Columns that were agreed on: an entry is read by itself, and alike in every kind of file."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import narwhals.stable.v1 as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest

from coterie.encoding import ColumnPlan
from coterie.encoding.agreed import encode_agreed, number_of, places_of, rows_of, texts_of

LEVELS = ("0", "1", "2.5", "red", "NA", "True")
OTHER, GAP = float(len(LEVELS)), float("nan")


@pytest.mark.parametrize(
    ("text", "point", "comma"),
    [
        ("1", 1, 1),
        ("-0.5", -0.5, GAP),
        ("1,5", GAP, 1.5),
        (",5", GAP, 0.5),
        (".5", 0.5, GAP),
        ("5.", 5, GAP),
        ("+1e3", 1000, 1000),
        ("1.234", 1.234, 1234),
        ("1.234,5", GAP, 1234.5),
        ("007", 7, 7),
        ("true", 1, 1),
        ("FALSE", 0, 0),
        ("1e400", GAP, GAP),
        ("inf", GAP, GAP),
        ("nan", GAP, GAP),
        ("1_000", GAP, GAP),
        ("\u0663", GAP, GAP),
        ("", GAP, GAP),
        ("abc", GAP, GAP),
        ("0x1", GAP, GAP),
        (".", GAP, GAP),
        (",", GAP, GAP),
        (None, GAP, GAP),
    ],
)
def test_a_text_is_a_number_by_itself(text, point, comma):
    np.testing.assert_equal([number_of(text, "."), number_of(text, ",")], [float(point), float(comma)])


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("1", 1),
        ("1.0", 1),
        ("01", 1),
        ("1e0", 1),
        ("2.50", 2),
        ("red", 3),
        ("Red", OTHER),
        ("1.5", OTHER),
        # A level may be called as a gap is; and what is true is one.
        ("NA", 4),
        ("n/a", GAP),
        ("True", 5),
        ("true", 1),
        ("", GAP),
        (None, GAP),
    ],
)
def test_a_level_is_a_text_or_a_number(text, place):
    np.testing.assert_equal(places_of([text], LEVELS), [float(place)])


PLANS = (
    ColumnPlan("x", "number", "", fills=(9.0,), indicator=True),
    ColumnPlan("level", "category", "", levels=("0", "1"), other=True),
    ColumnPlan("day", "date", "", fills=(0.0, 0.0), parts=("year", "hour")),
)
WANTED = [[1.0, 0.0, 1.0, 0.0, 2020.0, 12.0], [9.0, 1.0, 0.0, 0.0, 0.0, 0.0]]
TIME = datetime(2020, 1, 2, 12)


@pytest.mark.parametrize(
    ("x", "level", "day"),
    [
        (["1", "abc"], ["1", None], ["2020-01-02 12:00:00", "soon"]),
        (["1.0", ""], ["1.0", "NA"], ["2020-01-02T12:00", ""]),
        ([1, None], [1, None], [TIME, None]),
        ([1.0, float("nan")], [1.0, None], [TIME.replace(tzinfo=UTC), None]),
        ([True, None], [True, None], ["2020-01-02 12:00", "2020-13-02"]),
        ([timedelta(seconds=1), None], [True, None], ["02.01.2020", None]),
        (["1", "[2]"], ["1", None], [date(2020, 1, 2), None]),
    ],
)
@pytest.mark.parametrize("made", [pl.DataFrame, pd.DataFrame])
def test_what_holds_the_entries_makes_no_difference(made, x, level, day):
    # A day has no hour.
    hour = 0.0 if day[0] in ("02.01.2020", TIME.date()) else 12.0
    table = made({"x": x, "level": level, "day": day})
    assert encode_agreed(table, PLANS).tolist() == [[*WANTED[0][:-1], hour], WANTED[1]]


def test_a_number_of_a_typed_column_has_the_decimal_sign_that_was_agreed():
    plan = ColumnPlan("x", "number", "", fills=(0.0,))
    assert encode_agreed(pl.DataFrame({"x": [1.234, 1e-7]}), [plan], ",").tolist() == [[1.234], [1e-7]]
    assert encode_agreed(pl.DataFrame({"x": ["1.234", "1,5"]}), [plan], ",").tolist() == [[1234.0], [1.5]]


def test_entries_that_are_no_text_are_gaps():
    plan = ColumnPlan("x", "number", "", fills=(0.0,), indicator=True)
    assert encode_agreed(pl.DataFrame({"x": [[1], [2, 3]]}), [plan]).tolist() == [[0.0, 1.0]] * 2


def test_what_cannot_be_read_is_said():
    notes: list[str] = []
    table = pl.DataFrame({"x": ["1", "abc", "NA"], "level": ["0"] * 3, "day": [""] * 3})
    encode_agreed(table, PLANS, ".", notes)
    assert notes == ["1 of 3 entries of 'x' are no number and count as gaps: 'abc'."]


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        ("1,2", ["1", "2"]),
        ('"1","2"', ["1", "2"]),
        ('"a,b",2', ["a,b", "2"]),
        ('"a""b",2', ['a"b', "2"]),
        ('a"b,2', ['a"b', "2"]),
        ("1", None),
        ("1,2,3", None),
        ("", None),
        ('"1,2', None),
        ('1,"2', None),
        ('"1"x,2', None),
        ("x" * 200_000 + ",2", None),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_broken_line_is_a_row_of_gaps_and_touches_no_other(line, fields, end):
    names, rows = rows_of(end.join(["a,b", '"0",0', line, '9,"9"', ""]), ",")
    assert names == ["a", "b"]
    assert rows == [["0", "0"], fields or [None, None], ["9", "9"]]


def test_a_line_break_in_quotes_is_one_row_where_lines_end_otherwise():
    assert rows_of('a,b\r\n1,"x\ny"\r\n3,4', ",")[1] == [["1", "x\ny"], ["3", "4"]]
    assert rows_of('a,b\n1,"x\ny"\n3,4', ",")[1] == [[None, None], [None, None], ["3", "4"]]
    assert rows_of("a,b", ",")[1] == rows_of("a,b\n", ",")[1] == []
    assert rows_of("a,b\n\n1,2\n\n", ",")[1] == [[None, None], ["1", "2"], [None, None]]


@pytest.mark.parametrize(
    ("series", "texts"),
    [
        # One entry that is no text is one gap.
        (pl.Series([b"red", b"\xff", b"blue"]), ["red", None, "blue"]),
        (pl.Series([b"1", None]), ["1", None]),
        (pl.Series([[1], [2]]), [None, None]),
        # Files may hold any whole number as a date.
        (pl.Series([2**31 - 1, 0, -(2**31)], dtype=pl.Int32).cast(pl.Date), [None, "1970-01-01", None]),
        *(
            (
                pl.Series([2**63 - 1, 0, -(2**63) + 1]).cast(pl.Datetime(unit, zone)),
                [None, "1970-01-01 00:00:00" + digits, None],
            )
            for unit, digits in (("ms", ".000"), ("us", ".000000"))
            for zone in (None, "UTC")
        ),
    ],
)
def test_an_entry_that_cannot_be_read_is_a_gap_by_itself(series, texts):
    assert texts_of(nw.from_native(series, series_only=True)) == texts


def test_nanoseconds_have_no_year_beyond_the_calendar():
    ends = pl.Series([2**63 - 1, -(2**63) + 1]).cast(pl.Datetime("ns"))
    assert [text[:4] for text in texts_of(nw.from_native(ends, series_only=True))] == ["2262", "1677"]
