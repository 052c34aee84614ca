"""What the columns are, agreed before anybody looks at rows: a file that every site is given.

Levels and ranges in it come from a code book or from common knowledge, never from a site's rows, for they are
known to everybody and no noise is on them. A range need not hold all values: a row outside counts, scaled
down as a whole, so that the range may be where most values are expected.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie._files import read_plain
from coterie.encoding import ColumnPlan
from coterie.encoding.agreed import encode_agreed, note_of, number_of, numbers_of, places_of, texts_of
from coterie.federated.checks import require
from coterie.federated.codec import from_plain, parse, to_text
from coterie.federated.messages import ProtocolError
from coterie.rows.tables import as_table

# Ends of a range are below this, and its half is above its inverse.
LARGEST_RANGE = 1e50
KINDS = ("number", "category", "date")
# Where the parts of a date lie. A year lies where the schema says.
PARTS: Mapping[str, tuple[float, float]] = {"month": (1.0, 12.0), "weekday": (1.0, 7.0), "hour": (0.0, 23.0)}


@dataclass(frozen=True)
class Column:
    """One column: a number or the years of a date from ``low`` to ``high``, or a category with its levels.

    The first level is the reference, which has no column of its own; entries that are no level share one.
    ``missing``: whether a column says where the entry is missing. ``hours``: whether a date has a time.
    """

    name: str
    kind: str = "number"
    low: float | None = None
    high: float | None = None
    levels: tuple[str, ...] = ()
    missing: bool = False
    hours: bool = False

    def __post_init__(self) -> None:
        """Refuse a column whose ends or levels contradict its kind."""
        for end in ("low", "high"):
            if (value := getattr(self, end)) is not None:
                # One and 1.0 are one schema.
                object.__setattr__(self, end, float(value))
        where = f"The column {self.name!r} of the schema"
        require(bool(self.name), "A column of the schema has no name.")
        require(self.kind in KINDS, f"{where} must be one of {', '.join(KINDS)}. Got {self.kind!r}.")
        if self.kind == "category":
            require(bool(self.levels), f"{where} is a category: list its 'levels'.")
            # Two texts of one number, such as 1 and 1.0, would be one level.
            levels = [level.strip() for level in self.levels]
            numbers = [number for number in map(number_of, levels) if not math.isnan(number)]
            are_distinct = all(len(set(entries)) == len(entries) for entries in (levels, numbers))
            require(are_distinct and all(levels), f"{where} has a level twice, or an empty one.")
            return
        has_ends = self.low is not None and self.high is not None
        require(has_ends, f"{where} needs 'low' and 'high': where most of its values are expected.")
        require(self.half > 0, f"{where} must have 'low' below 'high'.")
        is_sensible = 1 / LARGEST_RANGE < self.half < LARGEST_RANGE and abs(self.middle) < LARGEST_RANGE
        require(
            is_sensible, f"The range of the column {self.name!r} of the schema is too large or too small."
        )

    @property
    def middle(self) -> float:
        """The middle of the range."""
        return (float(self.low or 0) + float(self.high or 0)) / 2

    @property
    def half(self) -> float:
        """Half of the range; one of a category, whose columns hold zeros and ones."""
        return 1.0 if self.kind == "category" else (float(self.high or 0) - float(self.low or 0)) / 2

    @property
    def parts(self) -> dict[str, tuple[float, float]]:
        """The parts of a date, and where they lie."""
        years = {"year": (float(self.low or 0), float(self.high or 0))}
        return years | {part: ends for part, ends in PARTS.items() if part != "hour" or self.hours}

    @property
    def plan(self) -> ColumnPlan:
        """What becomes of the column; a missing entry stands in the middle.

        A category's first level is the reference, and entries that are no level share one column.
        """
        if self.kind == "category":
            return ColumnPlan(
                self.name, "category", "as agreed", levels=self.levels, other=True, indicator=self.missing
            )
        if self.kind == "date":
            fills = tuple((low + high) / 2 for low, high in self.parts.values())
            return ColumnPlan(
                self.name, "date", "as agreed", fills=fills, parts=tuple(self.parts), indicator=self.missing
            )
        return ColumnPlan(self.name, "number", "as agreed", fills=(self.middle,), indicator=self.missing)

    @property
    def units(self) -> list[tuple[float, float]]:
        """Middle and half range of each numeric column that it becomes; indicators are in units of one."""
        middles_and_halves: list[tuple[float, float]] = []
        if self.kind == "number":
            middles_and_halves = [(self.middle, self.half)]
        elif self.kind == "date":
            middles_and_halves = [((low + high) / 2, (high - low) / 2) for low, high in self.parts.values()]
        return middles_and_halves + [(0.0, 1.0)] * (len(self.plan.features) - len(middles_and_halves))


@dataclass(frozen=True)
class Schema:
    """The target, a number with its range or a category of two classes, and what it is predicted from.

    ``decimal`` is the sign in numbers that are written as text, at all sites: a point or a comma.
    """

    target: Column
    columns: tuple[Column, ...]
    decimal: str = "."

    def __post_init__(self) -> None:
        """Refuse a schema whose target, columns or decimal sign cannot be used."""
        is_allowed = self.target.kind == "number" or (
            self.target.kind == "category" and len(self.classes) == 2
        )
        require(is_allowed, "The target of the schema must be a number, or a category of two levels.")
        require(len(self.columns) > 0, "The schema has no columns to predict from.")
        names = [self.target.name, *(column.name for column in self.columns)]
        require(len(set(names)) == len(names), "The schema names a column twice.")
        require(self.decimal in (".", ","), "The 'decimal' of the schema must be '.' or ','.")

    @property
    def classes(self) -> tuple[str, ...]:
        """The two classes of the target; none where it is a number."""
        return self.target.levels if self.target.kind == "category" else ()

    @property
    def target_unit(self) -> tuple[float, float]:
        """Middle and half range of the target; the second class is one, the first is nought."""
        return (0.5, 0.5) if self.classes else (self.target.middle, self.target.half)

    def predictors(self, table: Any, notes: list[str] | None = None) -> Array:
        """Return the predictors (n, q) of a table's rows, each entry read by itself; see `encode_agreed`.

        Sentences about entries that could not be read are added to ``notes``, in place.
        """
        return encode_agreed(table, (column.plan for column in self.columns), self.decimal, notes)

    def response(self, table: Any, notes: list[str] | None = None) -> Array:
        """Return the response (n,) of a table's rows, NaN where there is none, or no class of these.

        Sentences about such entries are added to ``notes``, in place.
        """
        texts = texts_of(as_table(table)[self.target.name], self.decimal)
        if self.classes:
            response = places_of(texts, self.classes, self.decimal)
            # An entry that is none of the classes has the place behind the last of them.
            response[response == len(self.classes)] = np.nan
        else:
            response = numbers_of(texts, self.decimal)
        if notes is not None:
            notes += note_of(
                self.target.name, "class" if self.classes else "number", texts, np.isnan(response)
            )
        return response

    @property
    def features(self) -> tuple[str, ...]:
        """The columns of numbers that the columns become."""
        return tuple(name for column in self.columns for name in column.plan.features)

    @property
    def units(self) -> list[tuple[float, float]]:
        """Middle and half range of each of the `features`."""
        return [unit for column in self.columns for unit in column.units]

    @property
    def text(self) -> bytes:
        """The schema as it stands in messages, the same for the same schema."""
        return to_text(self)


def _column(parsed: Any, where: str) -> dict[str, Any]:
    """Return the fields of a column from parsed JSON, with defaults for those that are not given.

    ``where`` names the part of the schema for the error. Types and ranges are checked later, when the record
    is made.
    """
    if not isinstance(parsed, dict):
        raise ProtocolError(f"The {where} of the schema must be an object with a 'name'.")
    defaults = {field_.name: field_.default for field_ in fields(Column) if field_.name != "name"}
    return {**defaults, "levels": [], **parsed}


def read_schema(path: str | Path) -> Schema:
    """Read a schema from a JSON file.

    Parameters
    ----------
    path : str or Path
        ``{"target": {"name": "y", "low": 0, "high": 9}, "columns": [{"name": "x", ...}, ...]}``; see
        `Column` for what a column may have.

    Returns
    -------
    Schema
        Checked.
    """
    return schema_from(read_plain(Path(path)))


def schema_from(text: bytes) -> Schema:
    """Return the checked schema of a JSON text, from a file or a message; fields left out have defaults.

    Nothing in it is believed before `from_plain` has compared it with the fields of `Schema`.
    """
    parsed = parse(text, "schema")
    columns = parsed.get("columns")
    if not isinstance(columns, list):
        raise ProtocolError("The schema must have a list of 'columns'.")
    complete = {
        "decimal": ".",
        **parsed,
        "target": _column(parsed.get("target"), "target"),
        "columns": [_column(column, "column") for column in columns],
    }
    return from_plain(Schema, complete, "schema")
