"""Numbers with decimal commas, as spreadsheets of many countries write them."""

from __future__ import annotations

import polars as pl

from coterie.cli.errors import CommandError
from coterie.cli.printing import say

# A number with a decimal comma, perhaps with points between thousands.
_NUMBER = r"^\s*[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?([eE][+-]?\d+)?\s*$"
# Three digits behind a comma may also be thousands.
_SURE = r",(\d{1,2}|\d{4,})([eE][+-]?\d+)?\s*$"


def check_decimal(decimal: str | None) -> None:
    """Refuse what is neither a comma nor a point."""
    if decimal not in (None, ",", "."):
        raise CommandError(f"--decimal is a comma or a point. Got {decimal!r}.")


def _numbers_with_commas(table: pl.DataFrame) -> list[str]:
    """Return the columns of text that hold nothing but numbers, some of them with a comma."""
    names = [name for name, kind in table.schema.items() if kind == pl.String]
    known = {name: table[name].drop_nulls().str for name in names}
    return [n for n, texts in known.items() if texts.contains(_NUMBER).all() and texts.contains(",").any()]


def has_decimal_commas(table: pl.DataFrame, decimal: str | None) -> bool:
    """Tell whether a table's numbers have decimal commas.

    Where ``decimal`` is None, some number must show that its comma does not part thousands; a note says so.
    """
    names = [] if decimal == "." else _numbers_with_commas(table)
    if not names or decimal == ",":
        return bool(names)
    sure = [text for name in names for text in table[name].filter(table[name].str.contains(_SURE)).head(1)]
    if sure:
        say(f"Note: numbers such as {sure[0].strip()!r} have decimal commas; if not, pass --decimal '.'.")
    return bool(sure)


def without_decimal_commas(table: pl.DataFrame, texts: pl.DataFrame) -> pl.DataFrame:
    """Return a table with numbers for those that have decimal commas, and for those with points in thousands.

    ``texts`` is the same table with text in place of fractions: a point in it parts thousands.
    """
    names = [name for name, kind in texts.schema.items() if kind == pl.String]
    names = [name for name in names if texts[name].drop_nulls().str.contains(_NUMBER).all()]
    plain = texts.select(pl.col(*names).str.strip_chars().str.replace_all(".", "", literal=True))
    return table.with_columns(plain.select(pl.all().str.replace(",", ".", literal=True).cast(pl.Float64)))
