"""A table of any columns becomes a table of numbers: the transformer, and the record of its use."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from coterie._arrays import Array
from coterie._options import check_count, listed
from coterie.encoding.columns import ColumnPlan, encode_column, plan_text
from coterie.rows.tables import NotNumericError, as_table, check_predictors


def _named(X: Any, caller: str) -> Any:
    """Return X as a narwhals table; refuse what has no named columns."""
    table = as_table(X)
    if table is None:
        raise ValueError(
            f"{caller} takes a table with named columns (pandas, polars, pyarrow). Got {type(X).__name__}."
        )
    return table


def _with_columns(encoder: TableEncoder, columns: tuple[ColumnPlan, ...]) -> TableEncoder:
    """Set the attributes of a fitted encoder, once its columns have names of their own; return it.

    Refused are two columns that would have one name, and a table of which nothing is left.
    """
    names = [name for plan in columns for name in plan.features]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f"Two columns would both become {listed(twice)}: rename one of them.")
    if not names:
        raise ValueError(
            "No column is left to predict from "
            f"({'; '.join(f'{plan.name!r} {plan.remark}' for plan in columns) or 'there is none'}): "
            "give the table a column that varies."
        )
    encoder.columns_ = columns
    encoder.feature_names_in_ = np.array([plan.name for plan in columns], dtype=object)
    encoder.n_features_in_ = len(columns)
    return encoder


class TableEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turn a table with numbers, text, booleans, dates and gaps into a table of numbers.

    Numbers and booleans stay; missing and infinite ones become the column's median, and a column
    ``x.missing`` says where. Text that is nearly all numbers is numbers, and its other entries are missing.
    Other text becomes a column of zeros and ones per entry, ``colour=red``, without the
    most frequent entry; rare entries share ``colour=(other)``. Dates become year, month, weekday and, where
    there is a time, hour, as far as they vary. Columns that are empty, constant or name rows are left out.

    Medians and entries are those of the rows of ``fit``, of all learners together; the response is never
    looked at.

    Parameters
    ----------
    max_levels : int, default=12
        Most entries of a text column that get a column of their own.
    min_share : float, default=0.01
        Share of the rows that such an entry has at least.

    Attributes
    ----------
    columns_ : tuple of ColumnPlan
        What becomes of each column.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names.

    Examples
    --------
    >>> import pandas as pd
    >>> from coterie import TableEncoder
    >>> table = pd.DataFrame({"size": [1.0, None, 3.0], "colour": ["red", "red", "blue"]})
    >>> TableEncoder(min_share=0).fit(table).get_feature_names_out().tolist()
    ['size', 'size.missing', 'colour=(other)']
    """

    def __init__(self, max_levels: int = 12, min_share: float = 0.01) -> None:
        self.max_levels = max_levels
        self.min_share = min_share

    @classmethod
    def from_columns(cls, columns: tuple[ColumnPlan, ...]) -> TableEncoder:
        """Return an encoder that has been fitted elsewhere.

        Parameters
        ----------
        columns : tuple of ColumnPlan
            What becomes of each column.

        Returns
        -------
        TableEncoder
            Fitted.
        """
        return _with_columns(cls(), columns)

    def fit(self, X: Any, y: Any = None) -> TableEncoder:
        """Decide what becomes of each column.

        Parameters
        ----------
        X : table of shape (N, p)
            A pandas, polars or pyarrow table.
        y : None, default=None
            Not looked at.

        Returns
        -------
        TableEncoder
            Itself, fitted.
        """
        check_count(self.max_levels, "max_levels")
        table = _named(X, "TableEncoder.fit")
        plans = [plan_text(name, table[name], self.max_levels, self.min_share) for name in table.columns]
        return _with_columns(self, tuple(plans))

    def transform(self, X: Any) -> Any:
        """Turn a table into numbers.

        Parameters
        ----------
        X : table of shape (N, p)
            With the columns of ``fit``, in any order and among others.

        Returns
        -------
        table of shape (N, q)
            Of the same library, all columns float64 and without gaps.
        """
        check_is_fitted(self)
        table = _named(X, "TableEncoder.transform")
        used = [plan for plan in self.columns_ if plan.kind != "left out"]
        lacking = [plan.name for plan in used if plan.name not in table.columns]
        if lacking:
            raise ValueError(
                f"The table lacks the column {listed(lacking)}, which fit had: "
                f"its columns are {listed(table.columns, most=12)}."
            )
        encoded: dict[str, Array] = {}
        for plan in used:
            encoded.update(encode_column(plan, table[plan.name]))
        return nw.from_dict(encoded, backend=nw.get_native_namespace(table)).to_native()

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the columns that `transform` makes.

        Parameters
        ----------
        input_features : None, default=None
            Not looked at.

        Returns
        -------
        ndarray of str
            The names.
        """
        check_is_fitted(self)
        return np.array([name for plan in self.columns_ for name in plan.features], dtype=object)


def encoder_for(X: Any, caller: str) -> TableEncoder | None:
    """Return a fitted encoder for a table with more than numbers; None where X is numbers without gaps.

    None too for what is no table with rows: then the caller takes X as an array, and refuses it if need be.
    """
    table = as_table(X)
    if table is None or not len(table) or not table.columns:
        return None
    try:
        numbers = check_predictors(X, caller)
    except NotNumericError:
        return TableEncoder().fit(X)
    return None if np.isfinite(numbers).all() else TableEncoder().fit(X)


@dataclass(frozen=True)
class TableRecipe:
    """How a table becomes predictors, response and learners."""

    # Empty where the response had no name.
    target: str
    # The column that names the learner of each row; empty where no column of the table did.
    group: str
    # What becomes of the other columns.
    columns: tuple[ColumnPlan, ...]
    # Whether learners are named by the files that their rows came from.
    by_file: bool = False
    # The file that the rows came from, the unit of the target, and the day of the fit, where they are known.
    source: str = ""
    unit: str = ""
    day: str = ""

    @property
    def encoder(self) -> TableEncoder:
        """The encoder that made the predictors, fitted."""
        return TableEncoder.from_columns(self.columns)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the fit should know of the columns, in sentences."""
        return tuple(plan.note for plan in self.columns if plan.note)

    @property
    def features(self) -> tuple[str, ...]:
        """The predictors by name, in their order."""
        return tuple(name for plan in self.columns for name in plan.features)
