"""What users pass, turned into arrays, or refused in one sentence."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray
from sklearn.utils import check_array, column_or_1d

from coterie._options import listed

Array = NDArray[Any]


def as_table(X: Any) -> Any:
    """Return X as a narwhals table where it is one with named columns, else None.

    Tables are those of pandas, polars and pyarrow. A table whose columns are numbered is an array.
    """
    try:
        table = nw.from_native(X, eager_only=True, pass_through=True)
    except DuplicateError:
        raise ValueError("Two columns of X have the same name: rename one of them.") from None
    named = isinstance(table, nw.DataFrame) and all(isinstance(name, str) for name in table.columns)
    return table if named else None


def column_names(X: Any) -> list[str] | None:
    """Return the column names of a table, or None."""
    table = as_table(X)
    return None if table is None else list(table.columns)


def split_group_column(X: Any, column: Any, caller: str) -> tuple[Any, Array]:
    """Take the column of learner ids out of X."""
    table = as_table(X)
    if table is not None and isinstance(column, str):
        if column not in table.columns:
            raise ValueError(
                f"The groups column {column!r} of {caller} is not a column of X. "
                f"X has the columns {listed(table.columns, most=12)}."
            )
        ids = as_ids(table[column].to_native(), caller)
        return table.drop(column).to_native(), ids
    if (
        table is not None
        and not isinstance(column, str)
        and -len(table.columns) <= column < len(table.columns)
    ):
        return split_group_column(X, table.columns[int(column)], caller)
    if isinstance(column, str):
        raise ValueError(
            f"The groups column {column!r} of {caller} needs X to be a table with named columns. "
            "Pass a table, one id per row, or the column's position."
        )
    array = np.asarray(X) if table is None else np.asarray(table.to_native())
    if array.ndim != 2 or not -array.shape[1] <= column < array.shape[1]:
        raise ValueError(
            f"The groups column {column} of {caller} is not a column of X, which has the shape {array.shape}."
        )
    return np.delete(array, column, axis=1), as_ids(array[:, column], caller)


def _is_missing(value: Any) -> bool:
    # pandas' NA and NaT answer no comparison with a truth value: they are known by name.
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def id_array(values: list[Any]) -> Array:
    """Return ids as an array that keeps their types: text stays text, numbers stay numbers."""
    if values and all(isinstance(value, np.datetime64) for value in values):
        return np.asarray(values)
    values = [value.item() if isinstance(value, np.generic) else value for value in values]
    if len({type(value) for value in values}) == 1 and isinstance(values[0], (str, int, float)):
        return np.asarray(values)
    ids = np.empty(len(values), dtype=object)
    ids[:] = values
    return ids


def as_ids(groups: Any, caller: str) -> Array:
    """Return learner ids as a one-dimensional array without missing entries."""
    series = nw.from_native(groups, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        ids = id_array(series.to_list())
    elif isinstance(groups, (list, tuple)) and not any(isinstance(g, (list, np.ndarray)) for g in groups):
        ids = id_array(list(groups))
    else:
        ids = np.asarray(groups)
    if ids.ndim == 0:
        raise ValueError(
            f"The 'groups' argument of {caller} must be a list or an array with one id per row of X, "
            f"or the name of a column. Got {type(groups).__name__}."
        )
    if ids.ndim == 2 and ids.shape[1] == 1:
        ids = ids[:, 0]
    if ids.ndim != 1:
        raise ValueError(
            f"The 'groups' argument of {caller} must have one dimension, one id per row of X. "
            f"Got the shape {ids.shape}."
        )
    if ids.dtype.kind in "Mm":
        missing = int(np.isnat(ids).sum())
    elif ids.dtype.kind in "fc":
        missing = int(np.isnan(ids).sum())
    elif ids.dtype.kind == "O":
        missing = sum(_is_missing(value) for value in ids.tolist())
    else:
        missing = 0
    if missing:
        raise ValueError(
            f"The 'groups' argument of {caller} must name a learner for every row. "
            f"{missing} entries are missing: drop these rows or give them an id."
        )
    return ids


def check_predictors(X: Any, caller: str) -> Array:
    """Return predictors as float64, non-finite cells not yet looked at."""
    if isinstance(nw.from_native(X, pass_through=True), nw.LazyFrame):
        raise ValueError(f"X of {caller} is a lazy table: collect() it first.")
    table = as_table(X)
    if table is not None:
        schema = table.schema
        odd = [n for n, t in schema.items() if not (t.is_numeric() or t == nw.Boolean)]
        odd = [n for n in odd if not (schema[n] == nw.Object and _holds_numbers(table[n]))]
        if odd:
            raise ValueError(
                f"The columns {listed(odd)} of X in {caller} are not numeric. "
                "Encode them first (OneHotEncoder, OrdinalEncoder) or drop them."
            )
        if table.shape[0] and table.shape[1]:
            X = np.column_stack([_numbers(table[name]) for name in table.columns])
        else:
            X = np.empty(table.shape)
    if getattr(getattr(X, "dtype", None), "kind", "") == "c":
        raise ValueError(f"Complex data not supported in X of {caller}: pass real numbers.")
    array = check_array(X, dtype=None, ensure_all_finite=False)
    if array.dtype.kind in "OUS":
        _refuse_text(array, caller)
    numbers: Array = check_array(array, dtype=np.float64, ensure_all_finite=False)
    return numbers


def _refuse_text(array: Array, caller: str) -> None:
    for column in range(array.shape[1]):
        try:
            array[:, column].astype(np.float64)
        except ValueError:
            raise ValueError(
                f"The column {column} of X in {caller} is not numeric. "
                "Encode it first (OneHotEncoder, OrdinalEncoder) or drop it."
            ) from None


def _numbers(series: Any) -> Array:
    if series.dtype == nw.Object:
        return np.asarray(series.to_list(), dtype=np.float64)
    # The cast turns the gaps of nullable columns into NaN.
    return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)


def _holds_numbers(series: Any) -> bool:
    try:
        np.asarray(series.to_list(), dtype=np.float64)
    except (TypeError, ValueError):
        return False
    return True


def check_response(y: Any, caller: str, n_rows: int) -> Array:
    """Return the response as float64 of the right length."""
    if y is None:
        raise ValueError(f"{caller} requires y to be passed, but the target y is None.")
    values = np.asarray(y)
    if values.dtype.kind in "mM":
        raise ValueError(f"The 'y' argument of {caller} holds dates: turn them into numbers first.")
    if values.dtype.kind == "c":
        raise ValueError(f"Complex data not supported in y of {caller}: pass real numbers.")
    values = column_or_1d(values, warn=True)
    if len(values) != n_rows:
        raise ValueError(
            f"The 'y' argument of {caller} must have one entry per row of X ({n_rows}). "
            f"Got {len(values)}, found input variables with inconsistent numbers of samples."
        )
    try:
        numbers: Array = values.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"The 'y' argument of {caller} must be numeric, for coterie does regression. "
            f"Got entries of type {values.dtype}."
        ) from None
    return numbers


def check_finite(X: Array, names: list[str] | None, owners: Array, ids: Array, caller: str) -> None:
    """Refuse NaN and infinity in X, naming the column and the learner."""
    with np.errstate(over="ignore", invalid="ignore"):
        # One pass without a copy settles the usual case.
        if np.isfinite(X.sum()) or np.isfinite(X).all():
            return
    row, column = np.argwhere(~np.isfinite(X))[0]
    what = "NaN" if np.isnan(X[row, column]) else "infinity"
    label = repr(names[column]) if names else str(column)
    raise ValueError(
        f"Input X of {caller} contains {what} in column {label} of {whose(owners[row], ids)}. "
        "Impute or drop these rows first (for example with SimpleImputer in a pipeline)."
    )


def whose(owner: int, ids: Array) -> str:
    """Name a learner in a sentence."""
    return f"learner {listed([ids[owner]])}"


def check_weights(sample_weight: Any, n_rows: int, caller: str) -> Array:
    """Refuse weights that are not one non-negative number per row."""
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_rows,):
        raise ValueError(
            f"The 'sample_weight' argument of {caller} must have one entry per row of X "
            f"({n_rows}). Got the shape {weights.shape}."
        )
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        raise ValueError(
            f"The 'sample_weight' argument of {caller} must be finite and non-negative, "
            "with at least one positive entry."
        )
    return weights
