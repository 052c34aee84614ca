"""Numbers with decimal commas, as spreadsheets of many countries write them."""

from __future__ import annotations

import polars as pl

from coterie.cli.errors import CommandError
from coterie.cli.printing import say

# A number with a decimal comma, perhaps with points between thousands.
_NUMBER = r"^\s*[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?([eE][+-]?\d+)?\s*$"
# Three digits behind a comma may also be thousands.
_SURE = r",(\d{1,2}|\d{4,})([eE][+-]?\d+)?\s*$"
# At least this share of a column's entries are such numbers; the encoder takes the others for gaps.
_NEARLY_ALL = 0.95


def check_decimal(decimal: str | None) -> None:
    """Refuse what is neither a comma nor a point."""
    if decimal not in (None, ",", "."):
        raise CommandError(f"--decimal is a comma or a point. Got {decimal!r}.")


def _numbers_with_commas(table: pl.DataFrame) -> list[str]:
    """Return the columns of text that hold nearly nothing but numbers, some of them with a comma."""
    return [n for n in _nearly_numbers(table) if _numbers(table[n]).str.contains(",").any()]


def _numbers(texts: pl.Series) -> pl.Series:
    return texts.filter(texts.str.contains(_NUMBER).fill_null(False))


def _nearly_numbers(table: pl.DataFrame) -> list[str]:
    known = {name: table[name].drop_nulls() for name, kind in table.schema.items() if kind == pl.String}
    return [n for n, texts in known.items() if len(_numbers(texts)) >= _NEARLY_ALL * len(texts)]


def has_decimal_commas(table: pl.DataFrame, decimal: str | None) -> bool:
    """Tell whether a table's numbers have decimal commas.

    Where ``decimal`` is None, some number must show that its comma does not part thousands; a note says so.
    """
    names = [] if decimal == "." else _numbers_with_commas(table)
    if not names or decimal == ",":
        return bool(names)
    sure = [text for name in names for text in _sure(table[name]).head(1)]
    if sure:
        say(f"Note: numbers such as {sure[0].strip()!r} have decimal commas; if not, pass --decimal '.'.")
    return bool(sure)


def _sure(texts: pl.Series) -> pl.Series:
    return _numbers(texts).filter(_numbers(texts).str.contains(_SURE))


def without_decimal_commas(table: pl.DataFrame, texts: pl.DataFrame) -> pl.DataFrame:
    """Return a table with numbers for those that have decimal commas, and for those with points in thousands.

    ``texts`` is the same table with text in place of fractions: a point in it parts thousands. A column with
    other entries stays text, its numbers written with points.
    """
    names = _nearly_numbers(texts)
    mixed = [name for name in names if len(_numbers(texts[name])) < len(texts[name].drop_nulls())]
    whole = pl.col(*names)
    plain = whole.str.strip_chars().str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True)
    made = texts.select(pl.when(whole.str.contains(_NUMBER)).then(plain).otherwise(whole))
    return table.with_columns(made.with_columns(pl.col(n for n in names if n not in mixed).cast(pl.Float64)))
