"""How a table became the rows of a fit: which column is what, and what became of each."""

from __future__ import annotations

from dataclasses import dataclass

from coterie.encoding.columns import ColumnPlan
from coterie.encoding.encoder import TableEncoder


@dataclass(frozen=True)
class TableRecipe:
    """How a table becomes predictors, response and learners.

    Parameters
    ----------
    target : str
        The column of the response.
    group : str
        The column that names the learner of each row; learners are known by its text.
    columns : tuple of ColumnPlan
        What becomes of the other columns.
    by_file : bool, default=False
        Whether learners are named by the files that their rows came from.
    """

    target: str
    group: str
    columns: tuple[ColumnPlan, ...]
    by_file: bool = False

    @property
    def encoder(self) -> TableEncoder:
        """The encoder that made the predictors, fitted."""
        return TableEncoder.from_columns(self.columns)

    @property
    def features(self) -> tuple[str, ...]:
        """The predictors by name, in their order."""
        return tuple(name for plan in self.columns for name in plan.features)
