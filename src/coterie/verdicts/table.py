"""The table of gains: columns by name, a row per learner."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie._options import brief, check_option, listed
from coterie.rows.ids import positions_of
from coterie.rows.numbers import is_missing
from coterie.verdicts.admission import joined_ids


class Gains(dict[str, Array]):
    """A table as a dict of columns, one entry per learner, as scikit-learn's ``cv_results_`` is.

    ``gains["gain"]`` is a column, and printing shows all of them.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.verdicts import Gains
    >>> gains = Gains(learner=np.array(["a", "b"]), gain=np.array([0.1, 0.3]))
    >>> gains.sort("gain", descending=True).head(1)
    learner  gain
          b   0.3
    """

    def joined(self, other: Gains) -> Gains:
        """Return the rows of this table followed by those of another; columns that these lack are NaN."""
        unknown = np.full(len(other["learner"]), np.nan)
        joined = {
            name: np.concatenate([self[name], other.get(name, unknown)]) for name in self if name != "learner"
        }
        return Gains(learner=joined_ids(self["learner"], other["learner"]), **joined)

    def __missing__(self, name: object) -> Any:
        raise KeyError(f"There is no column {brief(name)}; known columns: {listed(self, most=99)}.")

    def of(self, learner_ids: Any) -> Gains:
        """Return the row of a learner, or those of some, in the order given; refuse unknown ids."""
        single = isinstance(learner_ids, str) or not isinstance(learner_ids, Iterable)
        wanted = [learner_ids] if single else list(learner_ids)
        ids = self["learner"].tolist()
        if unknown := set(wanted).difference(ids):
            raise ValueError(f"There is no learner {listed(sorted(unknown, key=str))} in the table.")
        rows = positions_of(wanted, ids)
        return Gains({name: column[rows] for name, column in self.items()})

    def head(self, n: int = 5) -> Gains:
        """Return the first rows.

        Parameters
        ----------
        n : int, default=5
            How many.

        Returns
        -------
        Gains
            These rows, with all columns.
        """
        return Gains({name: column[:n] for name, column in self.items()})

    def sort(self, by: str, *, descending: bool = False) -> Gains:
        """Return the rows in the order of a column; rows without an entry come last.

        Parameters
        ----------
        by : str
            The column.
        descending : bool, default=False
            The largest entry first.

        Returns
        -------
        Gains
            All rows, with all columns.
        """
        check_option(by, "by", self)
        values = self[by]
        known = np.array([not is_missing(value) for value in values.tolist()], dtype=bool)
        ranks = np.unique(values[known], return_inverse=True)[1]
        order = np.argsort(-ranks if descending else ranks, kind="stable")
        rows = np.r_[np.flatnonzero(known)[order], np.flatnonzero(~known)]
        return Gains({name: column[rows] for name, column in self.items()})

    def to_pandas(self) -> Any:
        """Return a pandas table.

        Returns
        -------
        pandas.DataFrame
            A row per learner.
        """
        import pandas as pd

        return pd.DataFrame(dict(self))

    def to_polars(self) -> Any:
        """Return a polars table.

        Returns
        -------
        polars.DataFrame
            A row per learner.
        """
        import polars as pl

        return pl.DataFrame(dict(self), strict=False)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        """Return the table as aligned text."""
        columns = [[name, *(_cell(value) for value in values)] for name, values in self.items()]
        widths = [max(len(cell) for cell in column) for column in columns]
        lines = (
            "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            for row in zip(*columns, strict=True)
        )
        return "\n".join(lines)


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
