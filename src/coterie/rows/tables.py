"""What users pass, turned into arrays, or refused in one sentence."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from scipy.sparse import issparse
from sklearn.utils import check_array, column_or_1d

from coterie._arrays import Array
from coterie._options import listed
from coterie.rows.ids import as_ids
from coterie.rows.numbers import NoNumberError, as_array, as_numbers, divided, extreme_exponents

# Trees hold predictors in single precision.
LARGEST_SINGLE = 1e38


class NotNumericError(ValueError):
    """A table has columns of text or dates, which an encoder turns into numbers."""


def _eager(X: Any) -> Any:
    """Return X as a narwhals table where it is one, else None."""
    try:
        table = nw.from_native(X, eager_only=True, pass_through=True)
    except DuplicateError:
        raise ValueError("Two columns of X have the same name: rename one of them.") from None
    return table if isinstance(table, nw.DataFrame) else None


def as_table(X: Any) -> Any:
    """Return X as a narwhals table where it is one with named columns, else None.

    Tables are those of pandas, polars and pyarrow. A table whose columns are numbered is an array.
    """
    table = _eager(X)
    named = table is not None and all(isinstance(name, str) for name in table.columns)
    return table if named else None


def column_names(X: Any) -> list[str] | None:
    """Return the column names of a table, or None."""
    table = as_table(X)
    return None if table is None else list(table.columns)


def split_group_column(X: Any, column: Any, caller: str) -> tuple[Any, Array]:
    """Take the column of learner ids, by name or position, out of X; return the rest of X and the ids (N,).

    X keeps its kind: a table stays one. ``caller`` is named in errors.
    """
    table = as_table(X)
    if table is None and isinstance(column, str):
        raise ValueError(
            f"The groups column {column!r} of {caller} needs X to be a table with named columns. "
            "Pass a table, one id per row, or the column's position."
        )
    if isinstance(column, str):
        if column not in table.columns:
            raise ValueError(
                f"The groups column {column!r} of {caller} is not a column of X. "
                f"X has the columns {listed(table.columns, most=12)}."
            )
        ids = as_ids(table[column].to_native(), caller)
        return table.drop(column).to_native(), ids
    if table is not None and -len(table.columns) <= column < len(table.columns):
        return split_group_column(X, table.columns[int(column)], caller)
    array = as_array(X if table is None else table.to_native())
    if array.ndim != 2 or not -array.shape[1] <= column < array.shape[1]:
        raise ValueError(
            f"The groups column {column} of {caller} is not a column of X, which has the shape {array.shape}."
        )
    others = np.arange(array.shape[1]) != column % array.shape[1]
    return array[:, others], as_ids(array[:, column], caller)


def _column(series: Any) -> Array:
    """Return a table's column as float64, NaN where it has gaps."""
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        # The cast turns the gaps of nullable columns into NaN.
        return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
    # Types that narwhals does not know may hold numbers all the same: objects, pandas' sparse columns.
    if series.dtype not in (nw.Object, nw.Unknown):
        raise NoNumberError("other")
    return as_numbers(as_array(series.to_native()))


def _sentence(error: NoNumberError, which: str, many: bool, caller: str) -> str:
    """Say why columns cannot be used, and what to do.

    ``which`` names them, ``many`` says that there are several, and ``error`` has the kind of trouble.
    """
    verb, them = ("hold", "them") if many else ("holds", "it")
    if error.why == "dates":
        return f"{which} of X in {caller} {verb} dates or durations: turn {them} into numbers first."
    if error.why == "complex":
        return f"Complex data not supported in X of {caller}: pass real numbers."
    if error.why == "large":
        return (
            f"{which} of X in {caller} {verb} a number beyond the range of floating point (1.8e308). "
            f"Give {them} in other units."
        )
    detail = f" ({error.detail})" if error.detail else ""
    return (
        f"{which} of X in {caller} {'are' if many else 'is'} not numeric{detail}. "
        f"Encode {them} first (OneHotEncoder, OrdinalEncoder) or drop {them}."
    )


def _table_numbers(table: Any, caller: str) -> Array:
    """Return a table as float64, NaN where it has gaps; refuse columns that hold no numbers.

    The error names all columns with the trouble of the first, so that they can be mended at once.
    """
    columns, troubles = [], list[tuple[str, NoNumberError]]()
    for name, series in zip(table.columns, table.iter_columns(), strict=True):
        try:
            columns.append(_column(series))
        except NoNumberError as error:
            troubles.append((name, error))
    if troubles:
        first = troubles[0][1]
        named = listed(name for name, error in troubles if error.why == first.why)
        kind = NotNumericError if first.why in ("dates", "other") else ValueError
        raise kind(_sentence(NoNumberError(first.why), f"The columns {named}", True, caller))
    return np.column_stack(columns) if columns and len(table) else np.empty(table.shape)


def _array_numbers(array: Array, caller: str) -> Array:
    """Return an array (N, p) as float64; refuse entries that are no numbers.

    Objects and texts are read column by column, so that the error names the column.
    """
    if array.dtype.kind not in "OUS":
        try:
            return as_numbers(array)
        except NoNumberError as error:
            if error.why == "dates":
                raise ValueError(
                    f"X of {caller} holds dates or durations: turn them into numbers first."
                ) from None
            raise ValueError(_sentence(error, "The entries", True, caller)) from None
    numbers = np.empty(array.shape)
    for column in range(array.shape[1]):
        try:
            numbers[:, column] = as_numbers(array[:, column])
        except NoNumberError as error:
            kind = TypeError if error.detail else ValueError
            raise kind(_sentence(error, f"The column {column}", False, caller)) from None
    return numbers


def check_predictors(X: Any, caller: str) -> Array:
    """Return predictors of any container as float64 (N, p), non-finite cells not yet looked at.

    `check_finite` does that later, when it is known whose rows they are. ``caller`` is named in errors.
    """
    table = _eager(X)
    if table is None and isinstance(nw.from_native(X, pass_through=True), nw.LazyFrame):
        raise ValueError(f"X of {caller} is a lazy table: collect() it first.")
    if table is not None:
        numbers = _table_numbers(table, caller)
    elif issparse(X):
        numbers = X
    else:
        try:
            array = as_array(X)
        except ValueError as error:
            raise ValueError(f"X of {caller} {error}.") from None
        if array.dtype.names is not None:
            raise ValueError(
                f"X of {caller} is an array of records with the fields {listed(array.dtype.names)}: "
                "pass a table, such as pandas.DataFrame(X), or an array of numbers."
            )
        if array.ndim < 2:
            got = f"{array.ndim}D array of shape {array.shape}" if array.ndim else type(X).__name__
            raise ValueError(
                f"Expected 2D array as X of {caller}, rows by columns, got {got}. Reshape your data, with "
                "X.reshape(-1, 1) if it is one column, or X.reshape(1, -1) if it is one row."
            )
        numbers = _array_numbers(array, caller) if array.ndim == 2 else array
    # Refuses what is sparse, empty, or of three dimensions.
    checked: Array = check_array(numbers, dtype=np.float64, ensure_all_finite=False)
    return checked


def check_response(y: Any, caller: str, n_rows: int) -> Array:
    """Return the response as float64 of shape (n_rows,); refuse what is no number, or of another length.

    NaN and infinity pass: they are refused later, with the name of the learner.
    """
    if y is None:
        raise ValueError(f"{caller} requires y to be passed, but the target y is None.")
    try:
        values = as_array(y)
    except ValueError as error:
        raise ValueError(f"The 'y' argument of {caller} {error}.") from None
    if values.ndim == 0 or values.ndim > 2 or values.shape[1:] not in ((), (1,)):
        raise ValueError(
            f"The 'y' argument of {caller} must have one dimension, one response per row of X. "
            f"Got {'the shape ' + str(values.shape) if values.ndim else type(y).__name__}."
        )
    try:
        numbers = as_numbers(values)
    except NoNumberError as error:
        reason = {
            "dates": f"The 'y' argument of {caller} holds dates: turn them into numbers first.",
            "complex": f"Complex data not supported in y of {caller}: pass real numbers.",
            "large": f"The 'y' argument of {caller} holds a number beyond the range of floating point "
            "(1.8e308). Give y in other units.",
        }
        usual = (
            f"The 'y' argument of {caller} must be numeric: fit classes with CoterieClassifier. "
            f"Got entries of type {values.dtype}."
        )
        raise ValueError(reason.get(error.why, usual)) from None
    response: Array = column_or_1d(numbers, warn=True)
    if len(response) != n_rows:
        raise ValueError(
            f"The 'y' argument of {caller} must have one entry per row of X ({n_rows}). "
            f"Got {len(response)}, found input variables with inconsistent numbers of samples."
        )
    return response


def log_response(y: Any, caller: str) -> Array:
    """Return the logarithm (N,) of a positive response; refuse one that is not positive."""
    values = check_response(y, caller, len(y) if hasattr(y, "__len__") else 0)
    smallest = values.min(initial=np.inf)
    if smallest <= 0:
        raise ValueError(
            f"The 'y' argument of {caller} must be positive where log_target=True. "
            f"The smallest is {smallest:g}."
        )
    logs: Array = np.log(values)
    return logs


def check_finite(X: Array, names: list[str] | None, owners: Array, ids: Array, caller: str) -> None:
    """Refuse NaN and infinity in X (N, p), naming the column and the learner.

    ``owners`` (N,) are the rows' positions in ``ids`` (L,); ``names`` are those of the columns, if any.
    """
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


def check_size(X: Array, names: list[str] | None, caller: str) -> None:
    """Refuse rows with cells so large that models cannot hold them: trees hold them in single precision."""
    largest = np.maximum(X.max(axis=0), -X.min(axis=0))
    column = int(largest.argmax())
    if largest[column] > LARGEST_SINGLE:
        label = repr(names[column]) if names else str(column)
        raise ValueError(
            f"Column {label} of X in {caller} is {largest[column]:.3g} in size, and more than "
            f"{LARGEST_SINGLE:g} leaves the range of single precision. Give it in the units of fit."
        )


def whose(owner: int, ids: Array) -> str:
    """Name a learner in a sentence."""
    return f"learner {listed([ids[owner]])}"


def check_weights(sample_weight: Any, n_rows: int, caller: str) -> Array:
    """Return the weights of rows as float64 (n_rows,); refuse what is not one non-negative number per row.

    Weights in extreme units come back divided by a power of two.
    """
    try:
        weights = as_numbers(as_array(sample_weight))
    except (NoNumberError, ValueError):
        raise ValueError(
            f"The 'sample_weight' argument of {caller} must hold numbers, one per row of X ({n_rows})."
        ) from None
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
    # Only what weights are to each other matters; sums of extreme ones must stay numbers.
    return divided(weights[:, None], extreme_exponents(weights[:, None]))[:, 0]
