"""Messages about a site's table: its columns before anything is learnt, and its second moments.

Second moments are the sums of squares and products of (1, x, y), x being the predictors and y the response.
Linear regression needs nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from coterie.encoding import ColumnPlan
from coterie.federated.checks import MOST_COLUMNS, check_classes, check_site, digest, require
from coterie.federated.codec import to_text
from coterie.rows.threshold import FEWEST_ROWS


@dataclass(frozen=True)
class Promise:
    """Differential privacy: if one row is replaced, what is sent is alike up to (epsilon, delta)."""

    epsilon: float
    delta: float


@dataclass(frozen=True)
class Moments:
    """All that a site sends where moments suffice: second moments of (1, x, y) over two halves of its rows.

    Parameters
    ----------
    site : str
        Who speaks.
    n_rows : int
        Rows of the site.
    columns : tuple of str
        The predictors, numbers all of them, in their order.
    target : str
        The response.
    schema : bytes
        What the sites agreed on, by which rows were encoded and scaled; empty: columns are as they were.
    halves : tuple of tuple of float
        For each half, the upper triangle of the matrix of sums, row by row.
    promise : Promise or None
        How private the moments are; None: they are exact.
    software : mapping of str to str
        Versions.
    knots : tuple of tuple of float, default=()
        For each column, where it bends: x is then (x, how far x is above each knot). Empty: nowhere.
    """

    site: str
    n_rows: int
    columns: tuple[str, ...]
    target: str
    schema: bytes = field(repr=False)
    halves: tuple[tuple[float, ...], tuple[float, ...]] = field(repr=False)
    promise: Promise | None
    software: Mapping[str, str]
    knots: tuple[tuple[float, ...], ...] = ()

    def __post_init__(self) -> None:
        """Refuse moments whose sizes do not fit their columns."""
        check_site(self.site)
        require(self.n_rows >= FEWEST_ROWS, f"A site needs {FEWEST_ROWS} rows. Got {self.n_rows}.")
        require(
            0 < len(self.columns) <= MOST_COLUMNS, f"{self.site!r} must have 1 to {MOST_COLUMNS} columns."
        )
        require(len(set(self.columns)) == len(self.columns), f"Two columns of {self.site!r} have one name.")
        # A single knot is refused: hinges are measured in units from the first knot to the last.
        knots_rise = all(
            knots_of_column == tuple(sorted(set(knots_of_column))) and len(knots_of_column) != 1
            for knots_of_column in self.knots
        )
        fits_columns = knots_rise and len(self.knots) in (0, len(self.columns))
        require(fits_columns, f"The knots of {self.site!r} do not fit its {len(self.columns)} columns.")
        # Predictors, hinges above knots, the constant and the response.
        n_moment_columns = len(self.columns) + sum(map(len, self.knots)) + 2
        require(n_moment_columns - 2 <= MOST_COLUMNS, f"The moments of {self.site!r} have too many columns.")
        fits_columns = all(
            len(half) == n_moment_columns * (n_moment_columns + 1) // 2 for half in self.halves
        )
        require(fits_columns, f"The moments of {self.site!r} do not fit its {len(self.columns)} columns.")
        require(self.promise is None or bool(self.schema), "Private moments need a schema.")
        require(not (self.schema and self.knots), "Moments by a schema have no knots.")

    @property
    def sha(self) -> str:
        """The sha256 of the moments."""
        return digest(to_text(self))


@dataclass(frozen=True)
class ColumnNote:
    """What a site says of a column: its kind, and what enough of its rows have in common.

    ``levels`` are entries of a category, or classes of the response, that enough rows have, the most
    frequent first. ``gaps`` tells whether enough entries are missing, and ``hours`` whether dates have a time
    of day. ``middle`` is the median of a number, or the median year of a date, and ``size`` the median of
    absolute values, both rounded to one digit; None where there are too few rows.
    """

    name: str
    kind: str
    levels: tuple[str, ...]
    gaps: bool
    hours: bool
    middle: float | None
    size: float | None

    def __post_init__(self) -> None:
        require(self.size is None or self.size >= 0, f"The size of the column {self.name!r} is negative.")


@dataclass(frozen=True)
class Columns:
    """What a site's table looks like, before anything is learnt from it.

    Parameters
    ----------
    site : str
        Who speaks.
    target : ColumnNote
        The response.
    columns : tuple of ColumnNote
        The predictors.
    fewest : int
        How many rows must have an entry before it is named.
    software : mapping of str to str
        Versions.
    """

    site: str
    target: ColumnNote
    columns: tuple[ColumnNote, ...]
    fewest: int
    software: Mapping[str, str]

    def __post_init__(self) -> None:
        check_site(self.site)
        names = [self.target.name, *(column.name for column in self.columns)]
        require(1 < len(names) <= MOST_COLUMNS, f"{self.site!r} must have 1 to {MOST_COLUMNS} columns.")
        require(len(set(names)) == len(names), f"Two columns of {self.site!r} have one name.")


@dataclass(frozen=True)
class Encoding:
    """How every site turns its table into numbers.

    Parameters
    ----------
    target : str
        The response.
    columns : tuple of ColumnPlan
        What becomes of the predictors.
    sites : tuple of str
        Who had their say.
    notes : tuple of str
        What a reader should know.
    classes : tuple of str, default=()
        The classes of the response; none: it is a number.
    """

    target: str
    columns: tuple[ColumnPlan, ...]
    sites: tuple[str, ...]
    notes: tuple[str, ...]
    classes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_classes(self.classes)
        kinds = {"number", "category", "date", "left out"}
        require(all(plan.kind in kinds for plan in self.columns), "A column of the encoding has no kind.")
        require(all(plan.name != self.target for plan in self.columns), "The target is among the columns.")
