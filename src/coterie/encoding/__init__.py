"""Tables with text, dates and gaps, turned into numbers by a plan that can be read, saved and used again.

The plan is made of records, one per column, and not of fitted objects: it is listed in the output of the
command line, saved as JSON inside a model's file, and applied to later tables as it was made.
"""

from __future__ import annotations

from coterie.encoding.columns import ColumnPlan
from coterie.encoding.encoder import TableEncoder, TableRecipe, encoder_for

__all__ = ["ColumnPlan", "TableEncoder", "TableRecipe", "encoder_for"]
