import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

from coterie.rows.ids import as_ids
from coterie.rows.tables import (
    as_table,
    check_finite,
    check_predictors,
    check_response,
    check_weights,
    column_names,
    split_group_column,
    whose,
)

TABLES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
SERIES = {"pandas": pd.Series, "polars": pl.Series, "pyarrow": lambda v: pa.chunked_array([v]), "list": list}


@pytest.fixture(params=TABLES)
def table(request: pytest.FixtureRequest) -> Any:
    """Make a table of a dict of columns, by each library."""
    return TABLES[request.param]


@pytest.fixture(params=SERIES)
def series(request: pytest.FixtureRequest) -> Any:
    """Make a column of a list, by each library."""
    return SERIES[request.param]


# Predictors.


def test_every_kind_of_table_gives_the_same_array(table: Any) -> None:
    columns = {"a": [1, 2, 3], "b": [0.5, -1.5, 2.5], "c": [True, False, True]}
    expected = [[1, 0.5, 1], [2, -1.5, 0], [3, 2.5, 1]]
    for X in (table(columns), expected, np.array(expected), np.array(expected, dtype=object)):
        array = check_predictors(X, "fit")
        assert array.dtype == np.float64
        assert array.tolist() == expected


@pytest.mark.parametrize("dtype", ["Int64", "Float64", "boolean", "int64[pyarrow]", "bool[pyarrow]", "uint8"])
def test_nullable_columns_without_gaps_are_numbers(dtype: str) -> None:
    X = pd.DataFrame({"a": pd.array([1, 0, 1], dtype=dtype)})
    assert check_predictors(X, "fit").tolist() == [[1], [0], [1]]


def test_gaps_in_a_table_become_nan_to_be_named_later(table: Any) -> None:
    array = check_predictors(table({"a": [1, None, 3], "b": [True, None, False]}), "fit")
    assert np.array_equal(array, [[1, 1], [np.nan, np.nan], [3, 0]], equal_nan=True)


@pytest.mark.parametrize("dtype", ["Int64", "Float64", "int64[pyarrow]", "boolean", "bool[pyarrow]"])
def test_gaps_in_nullable_columns_become_nan(dtype: str) -> None:
    X = pd.DataFrame({"a": pd.array([1, None, 0], dtype=dtype)})
    assert np.array_equal(check_predictors(X, "fit"), [[1], [np.nan], [0]], equal_nan=True)


def test_an_object_column_of_numbers_is_numeric() -> None:
    X = pd.DataFrame({"a": np.array([1, Decimal("2.5"), True], dtype=object)})
    assert check_predictors(X, "fit").tolist() == [[1], [2.5], [1]]


@pytest.mark.parametrize("names", [[0, 1], ["a", 1], [("a", 1), ("b", 2)]])
def test_columns_need_no_text_for_a_name(names: list[Any]) -> None:
    X = pd.DataFrame([[1.0, 2.0], [3.0, 4.0]], columns=pd.Index(names, tupleize_cols=False))
    assert check_predictors(X, "fit").tolist() == [[1, 2], [3, 4]]


def test_an_index_of_its_own_does_not_matter() -> None:
    X = pd.DataFrame({"a": [1.0, 2.0], "b": [3, 4]}, index=[7, 3])
    assert check_predictors(X, "fit").tolist() == [[1, 3], [2, 4]]


def test_columns_that_are_not_numeric_are_named(table: Any) -> None:
    X = table({"a": [1, 2], "city": ["x", "y"], "day": [dt.datetime(2020, 1, 1)] * 2})
    with pytest.raises(ValueError, match=r"The columns 'city', 'day' of X in fit are not numeric\. Encode"):
        check_predictors(X, "fit")


@pytest.mark.parametrize(
    "column",
    [
        pd.Categorical(["x", "y"]),
        pd.Categorical([1, 2]),
        pd.to_timedelta([1, 2]),
        np.array([1, "y"], dtype=object),
        np.array([[1], [2, 3]], dtype=object),
    ],
    ids=["categories", "numeric categories", "durations", "mixed", "lists"],
)
def test_other_columns_that_are_not_numeric_are_named_too(column: Any) -> None:
    with pytest.raises(ValueError, match="The columns 'odd' of X in predict are not numeric"):
        check_predictors(pd.DataFrame({"fine": [1, 2], "odd": column}), "predict")


@pytest.mark.parametrize(
    ("X", "sentence"),
    [
        (np.array([[1j]]), "Complex data not supported"),
        (pd.DataFrame({"a": [1j]}), "Complex data not supported"),
        (np.arange(3.0), r"Expected 2D array as X of fit.* got 1D array of shape \(3,\)\. Reshape your data"),
        (pl.Series([1.0, 2.0]), "Expected 2D array"),
        (pd.Series([1.0, 2.0]), "Expected 2D array"),
        ({"a": 1}, "Expected 2D array as X of fit, rows by columns, got dict"),
        ([[1], [1, 2]], "X of fit has entries of different lengths"),
        (np.zeros(3, dtype=[("a", float), ("b", float)]), "records with the fields 'a', 'b': pass a table"),
        (np.zeros((2, 2, 2)), "Found array with dim 3"),
        (np.empty((0, 3)), r"0 sample\(s\)"),
        (np.empty((3, 0)), r"0 feature\(s\)"),
        (pd.DataFrame({"a": np.empty(0)}), r"0 sample\(s\)"),
        (pl.DataFrame({"a": []}, schema={"a": pl.Float64}), r"0 sample\(s\)"),
        (pd.DataFrame(index=range(3)), r"0 feature\(s\)"),
        ([["x", "y"]], "The column 0 of X in fit is not numeric. Encode it first"),
        (pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]), "Two columns of X have the same name: rename one"),
    ],
)
def test_what_is_no_table_of_numbers_is_refused(X: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        check_predictors(X, "fit")


@pytest.mark.parametrize("kind", [scipy.sparse.csr_matrix, scipy.sparse.coo_array])
def test_sparse_predictors_are_refused(kind: Any) -> None:
    with pytest.raises(TypeError, match="Sparse data was passed, but dense data is required"):
        check_predictors(kind(np.eye(3)), "fit")


def test_a_table_is_told_from_an_array(table: Any) -> None:
    assert as_table(table({"a": [1]})).columns == ["a"]
    assert as_table(np.zeros((2, 2))) is None
    assert as_table([[1.0]]) is None


def test_column_names_are_there_when_all_are_text(table: Any) -> None:
    assert column_names(table({"b": [1], "a": [2]})) == ["b", "a"]
    assert column_names(np.zeros((2, 2))) is None
    assert column_names(pd.DataFrame([[1, 2]])) is None
    assert column_names(pd.DataFrame([[1, 2]], columns=["a", 1])) is None


# Cells that are not finite.


def refusal(X: Any, names: list[str] | None = None) -> str:
    X = np.asarray(X, dtype=float)
    with pytest.raises(ValueError) as caught:
        check_finite(X, names, np.arange(len(X)), np.array([f"site {i}" for i in range(len(X))]), "fit")
    return str(caught.value)


def test_nan_and_infinity_are_named_with_their_column_and_learner() -> None:
    assert "fit contains NaN in column 'b' of learner 'site 1'." in refusal([[1, 2], [3, np.nan]], ["a", "b"])
    assert "fit contains infinity in column 'a' of learner 'site 0'." in refusal([[-np.inf, 2]], ["a", "b"])
    assert "fit contains NaN in column 1 of learner 'site 1'." in refusal([[1, 2], [3, np.nan]])


def test_both_infinities_are_refused_without_a_warning() -> None:
    assert "contains infinity in column 0" in refusal([[np.inf], [-np.inf]])


def test_finite_cells_pass() -> None:
    check_finite(np.array([[1.0, -2.0]]), None, np.zeros(1, dtype=int), np.array(["a"]), "fit")


def test_finite_cells_whose_sum_overflows_pass() -> None:
    check_finite(np.full((2, 2), 1e308), None, np.zeros(2, dtype=int), np.array(["a"]), "fit")


def test_a_learner_is_named_as_the_user_wrote_it() -> None:
    assert whose(1, np.array(["a", "b"])) == "learner 'b'"
    assert whose(0, np.array([7, 8])) == "learner 7"


# Responses.


def test_every_kind_of_response_gives_the_same_array(series: Any) -> None:
    values = check_response(series([1, 2, 3]), "fit", 3)
    assert values.dtype == np.float64
    assert values.tolist() == [1, 2, 3]


def test_booleans_are_a_response() -> None:
    assert check_response([True, False], "fit", 2).tolist() == [1, 0]


@pytest.mark.parametrize("dtype", ["Int64", "Float64", "float64[pyarrow]"])
def test_gaps_in_a_response_become_nan_to_be_named_later(dtype: str) -> None:
    values = check_response(pd.Series([1, None], dtype=dtype), "fit", 2)
    assert np.array_equal(values, [1, np.nan], equal_nan=True)


def test_a_column_for_a_response_is_taken_with_a_warning() -> None:
    with pytest.warns(UserWarning, match="column-vector y was passed"):
        assert check_response([[1], [2]], "fit", 2).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("y", "sentence"),
    [
        (None, "fit requires y to be passed, but the target y is None"),
        ([1j, 2, 3], "Complex data not supported in y of fit"),
        ([1, 2], r"The 'y' argument of fit must have one entry per row of X \(3\)\. Got 2"),
        (["x", "y", "z"], "The 'y' argument of fit must be numeric: fit classes with CoterieClassifier"),
        (np.zeros((3, 2)), r"must have one dimension, one response per row of X\. Got the shape \(3, 2\)"),
        (5.0, "must have one dimension.* Got float"),
        ([10**400, 1, 2], "The 'y' argument of fit holds a number beyond the range of floating point"),
        (np.zeros(3, dtype=[("a", float)]), "must be numeric"),
    ],
)
def test_what_is_no_response_is_refused(y: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        check_response(y, "fit", 3)


# Ids.


def test_every_kind_of_column_gives_the_same_ids(series: Any) -> None:
    assert as_ids(series(["b", "a", "b"]), "fit").tolist() == ["b", "a", "b"]
    assert as_ids(series([3, 1, 3]), "fit").tolist() == [3, 1, 3]


@pytest.mark.parametrize(
    "groups",
    [
        pd.Categorical(["b", "a"]),
        pd.Series(pd.Categorical(["b", "a"])),
        pd.Index(["b", "a"]),
        pl.Series(["b", "a"], dtype=pl.Categorical),
        pl.Series(["b", "a"], dtype=pl.Enum(["a", "b"])),
        pa.array(["b", "a"]),
        np.array([["b"], ["a"]]),
        pd.DataFrame({"site": ["b", "a"]}),
        ("b", "a"),
    ],
)
def test_categories_and_single_columns_are_ids(groups: Any) -> None:
    assert as_ids(groups, "fit").tolist() == ["b", "a"]


def test_objects_pairs_and_dates_are_ids() -> None:
    pairs = [("a", 1), ("b", 2), ("a", 1)]
    assert as_ids(pairs, "fit").tolist() == pairs
    assert as_ids(pd.Series(pairs), "fit").tolist() == pairs
    tags = [uuid.UUID(int=2), uuid.UUID(int=1)]
    days = [dt.date(2021, 1, 1), dt.date(2020, 1, 1)]
    assert as_ids(tags, "fit").tolist() == tags
    assert as_ids(days, "fit").tolist() == days
    assert as_ids(pl.Series(days), "fit").tolist() == days
    assert as_ids(pd.Series(pd.to_datetime(days)), "fit").tolist() == pd.to_datetime(days).tolist()
    assert as_ids(np.array(days, dtype="M8[D]"), "fit").dtype.kind == "M"


def test_a_list_of_dates_stays_a_list_of_dates() -> None:
    days = list(np.array(["2021-01-01", "2020-01-01"], dtype="M8[ns]"))
    assert [str(i)[:4] for i in as_ids(days, "fit")] == ["2021", "2020"]


@pytest.mark.parametrize(
    "kind",
    [list, lambda v: pd.Series(v, dtype=object), lambda v: np.array(v, dtype=object)],
    ids=["list", "pandas", "array"],
)
def test_ids_of_several_types_stay_what_they_are(kind: Any) -> None:
    assert as_ids(kind([1, "1"]), "fit").tolist() == [1, "1"]


@pytest.mark.parametrize(
    "groups",
    [
        ["a", None],
        [1.0, np.nan],
        [Decimal("nan"), Decimal(1)],
        np.array(["a", None], dtype=object),
        np.array(["a", np.nan], dtype=object),
        np.array(["a", pd.NaT], dtype=object),
        np.array(["2020-01-01", "NaT"], dtype="M8[D]"),
        np.array([1, "NaT"], dtype="m8[s]"),
        pd.Series(["a", None]),
        pd.Series(["a", np.nan], dtype=object),
        pd.Series(["a", pd.NA], dtype=object),
        pd.Series(["a", pd.NA], dtype="string"),
        pd.Series([1, None], dtype="Int64"),
        pd.Series([1.0, np.nan]),
        pd.Series(pd.to_datetime(["2020-01-01", None])),
        pd.Series(pd.Categorical(["a", None])),
        pd.Categorical(["a", None]),
        pd.DataFrame({"site": ["a", None]}),
        pl.Series(["a", None]),
        pl.Series([1.0, float("nan")]),
        pa.array(["a", None]),
        pa.chunked_array([["a"], [None]]),
        ["a", np.nan],
        ["a", pd.NA],
        ["a", pd.NaT],
        np.array(["a", pd.NA], dtype=object),
    ],
    ids=lambda groups: f"{type(groups).__module__.split('.')[0]}-{str(groups)[:20]}",
)
def test_missing_ids_are_counted_and_refused(groups: Any) -> None:
    with pytest.raises(ValueError, match=r"fit must name a learner for every row\. 1 entry is missing"):
        as_ids(groups, "fit")


@pytest.mark.parametrize(
    ("groups", "shape"),
    [
        (np.zeros((3, 2)), r"\(3, 2\)"),
        (pd.DataFrame({"a": [1], "b": [2]}), r"\(1, 2\)"),
        ([["a", 1], ["b", 2]], r"\(2, 2\)"),
    ],
)
def test_ids_of_another_dimension_are_refused(groups: Any, shape: str) -> None:
    with pytest.raises(
        ValueError, match=f"must have one dimension, one id per row of X. Got the shape {shape}"
    ):
        as_ids(groups, "fit")


@pytest.mark.parametrize(("groups", "kind"), [(5, "int"), ((g for g in "ab"), "generator")])
def test_what_is_no_list_of_ids_is_refused(groups: Any, kind: str) -> None:
    with pytest.raises(ValueError, match=f"must be a list or an array with one id per row of X.*Got {kind}"):
        as_ids(groups, "fit")


# The column of ids inside X.


def test_the_column_of_ids_is_taken_out_by_name(table: Any) -> None:
    X, ids = split_group_column(table({"a": [1.0, 2.0], "site": ["x", "y"], "b": [3, 4]}), "site", "fit")
    assert ids.tolist() == ["x", "y"]
    assert column_names(X) == ["a", "b"]
    assert check_predictors(X, "fit").tolist() == [[1, 3], [2, 4]]


@pytest.mark.parametrize("position", [1, -2])
def test_the_column_of_ids_is_taken_out_by_position(table: Any, position: int) -> None:
    X, ids = split_group_column(table({"a": [1.0, 2.0], "site": ["x", "y"], "b": [3, 4]}), position, "fit")
    assert ids.tolist() == ["x", "y"]
    assert check_predictors(X, "fit").tolist() == [[1, 3], [2, 4]]


@pytest.mark.parametrize("position", [0, -2])
def test_the_column_of_ids_of_an_array_is_taken_out_by_position(position: int) -> None:
    X, ids = split_group_column(np.array([[7, 0.5], [8, 1.5]]), position, "fit")
    assert ids.tolist() == [7, 8]
    assert X.tolist() == [[0.5], [1.5]]
    X, ids = split_group_column([["x", 1.5], ["y", 2]], position, "fit")
    assert ids.tolist() == ["x", "y"]
    assert check_predictors(X, "fit").tolist() == [[1.5], [2]]


def test_a_position_in_a_table_names_the_same_learners_as_the_name(table: Any) -> None:
    X = table({"a": [0.5, 1.5], "site": [3, 4]})
    by_name, by_position = (split_group_column(X, column, "fit")[1] for column in ("site", 1))
    assert [str(i) for i in by_position] == [str(i) for i in by_name] == ["3", "4"]


def test_a_gap_beside_a_column_of_ids_by_position_becomes_nan() -> None:
    table = pd.DataFrame({"a": pd.array([1, None], dtype="Int64"), "site": ["x", "y"]})
    X, _ = split_group_column(table, 1, "fit")
    assert np.array_equal(check_predictors(X, "fit"), [[1], [np.nan]], equal_nan=True)


def test_a_missing_column_lists_the_columns(table: Any) -> None:
    with pytest.raises(
        ValueError,
        match=r"The groups column 'sit' of fit is not a column of X\. X has the columns 'a', 'site'\.",
    ):
        split_group_column(table({"a": [1], "site": ["x"]}), "sit", "fit")


@pytest.mark.parametrize("X", [np.zeros((2, 2)), pd.DataFrame(np.zeros((2, 2)))], ids=["array", "pandas"])
@pytest.mark.parametrize("position", [2, -3])
def test_a_position_outside_of_the_table_is_refused(X: Any, position: int) -> None:
    with pytest.raises(ValueError, match=rf"{position} of fit is not a column of X, .* shape \(2, 2\)"):
        split_group_column(X, position, "fit")


def test_a_name_needs_a_table() -> None:
    with pytest.raises(ValueError, match="'site' of fit needs X to be a table with named columns"):
        split_group_column(np.zeros((2, 2)), "site", "fit")
    with pytest.raises(ValueError, match=r"has the shape \(3,\)"):
        split_group_column(np.zeros(3), 0, "fit")


def test_a_missing_id_in_the_column_is_refused(table: Any) -> None:
    X = table({"a": [1.0, 2.0], "site": ["x", None]})
    for column in ("site", 1):
        with pytest.raises(ValueError, match="1 entry is missing"):
            split_group_column(X, column, "fit")


# Weights.


def test_weights_are_numbers_as_given(series: Any) -> None:
    weights = check_weights(series([1, 0, 3]), 3, "fit")
    assert weights.dtype == np.float64
    assert weights.tolist() == [1, 0, 3]


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        ([1, 1], r"one entry per row of X \(3\)\. Got the shape \(2,\)"),
        (2.0, r"Got the shape \(\)"),
        (np.ones((3, 1)), r"Got the shape \(3, 1\)"),
        ([1, -1, 1], "must be finite and non-negative"),
        ([1, np.nan, 1], "must be finite and non-negative"),
        ([1, np.inf, 1], "must be finite and non-negative"),
        ([0, 0, 0], "at least one positive entry"),
    ],
)
def test_what_is_no_weight_for_every_row_is_refused(weights: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        check_weights(weights, 3, "fit")
