"""How a table became the rows of a fit: which column is what, and what became of each."""

from __future__ import annotations

from dataclasses import dataclass

from coterie.encoding.columns import ColumnPlan
from coterie.encoding.encoder import TableEncoder


@dataclass(frozen=True)
class TableRecipe:
    """How a table becomes predictors, response and learners."""

    target: str
    # The column that names the learner of each row; learners are known by its text.
    group: str
    # What becomes of the other columns.
    columns: tuple[ColumnPlan, ...]
    # Whether learners are named by the files that their rows came from.
    by_file: bool = False

    @property
    def encoder(self) -> TableEncoder:
        """The encoder that made the predictors, fitted."""
        return TableEncoder.from_columns(self.columns)

    @property
    def features(self) -> tuple[str, ...]:
        """The predictors by name, in their order."""
        return tuple(name for plan in self.columns for name in plan.features)
