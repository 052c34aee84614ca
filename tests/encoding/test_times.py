"""The time of each row, whatever it is written as."""

from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pytest

from coterie.encoding.times import in_time_order, split_time_column, time_ranks
from coterie.rows.learners import gather_learners


@pytest.mark.parametrize(
    "times",
    [
        [2001, 1999, 1999, 2020],
        pd.Series([2001.5, 1999.0, 1999.0, 2020.0]),
        pl.Series([date(2001, 1, 1), date(1999, 1, 1), date(1999, 1, 1), date(2020, 1, 1)]),
        pd.Series(["02.01.2001", "31.12.1999", "31.12.1999", "01.01.2020"]),
        np.array(["2001-01", "1999-12", "1999-12", "2020-01"]),
        ["10", "9", "9.0", "1e2"],
        ["02.01.2001", "31.12.1999", "31.12.1999", "01.01.2020"],
        pl.Series(["2001-01-01T10:00Z", "1999-12-31T10:00Z", "1999-12-31T11:00+01:00", "2020-01-01T00:00Z"]),
    ],
)
def test_equal_times_have_equal_ranks(times):
    assert time_ranks(times, 4, "fit").tolist() == [1, 0, 0, 2]


@pytest.mark.parametrize(
    ("times", "why"),
    [
        ([1, 2], "one entry per row of X"),
        ([1, None, 2], "missing in 1 of 3 rows"),
        ([1, "a", 2], "mixes entries"),
        (
            ["12/01/2023", "12/02/2023", "12/01/2024"],
            "2024: '12/01/2023'. Pass dates",
        ),
        (["1", "2", "nan"], "is no number, .*: 'nan'"),
        (["1", "2", "2024-12-31"], "mixes entries"),
        ([[1], [2], [3]], "must have one dimension"),
        (np.ones((3, 1)), "must have one dimension"),
        (7, "must have one dimension"),
    ],
)
def test_what_is_no_time_is_refused(times, why):
    with pytest.raises(ValueError, match=why):
        time_ranks(pl.Series(times) if isinstance(times, list) and None in times else times, 3, "fit")


def test_a_column_of_times_is_taken_out_of_a_table():
    X, times = split_time_column(pl.DataFrame({"a": [1], "t": [2]}), "t", "fit")
    assert (X.columns, times.to_list()) == (["a"], [2])
    assert split_time_column(X, "t", "predict", needed=False)[1] is None
    with pytest.raises(ValueError, match="'t' of fit is not a column of X, which has the columns 'a'"):
        split_time_column(X, "t", "fit")


def test_rows_of_each_learner_follow_their_time():
    learners = gather_learners([[1.0], [2], [3], [4]], [1, 2, 3, 4], ["a", "b", "a", "b"], caller="fit")
    assert in_time_order(learners, np.array([1, 0, 0, 1])).y[:, 0].tolist() == [3, 1, 2, 4]
