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
    """Return the columns of text that hold nearly only numbers, some of them with a comma."""
    return [n for n in _nearly_numbers(table) if _numbers(table[n]).str.contains(",").any()]


def _numbers(texts: pl.Series) -> pl.Series:
    """Return the entries that are numbers, perhaps with a decimal comma."""
    return texts.filter(texts.str.contains(_NUMBER).fill_null(False))


def _nearly_numbers(table: pl.DataFrame) -> list[str]:
    """Return the columns of text of which nearly all entries are such numbers."""
    texts_by_column = {
        name: table[name].drop_nulls() for name, kind in table.schema.items() if kind == pl.String
    }
    return [n for n, texts in texts_by_column.items() if len(_numbers(texts)) >= _NEARLY_ALL * len(texts)]


def has_decimal_commas(table: pl.DataFrame, decimal: str | None) -> bool:
    """Tell whether a table's numbers have decimal commas; a note says so where that is concluded.

    1,234 may be 1.234 or 1234. ``decimal`` is the sign that the user gave. So if ``decimal`` is None, some
    number must have other than three digits behind its comma.
    """
    columns = [] if decimal == "." else _numbers_with_commas(table)
    if not columns or decimal == ",":
        return bool(columns)
    sure = [text for name in columns for text in _sure(table[name]).head(1)]
    if sure:
        say(f"Note: numbers such as {sure[0].strip()!r} have decimal commas; if not, pass --decimal '.'.")
    return bool(sure)


def _sure(texts: pl.Series) -> pl.Series:
    """Return the numbers whose comma cannot part thousands, for other than three digits follow it."""
    return _numbers(texts).filter(_numbers(texts).str.contains(_SURE))


def without_decimal_commas(table: pl.DataFrame, texts: pl.DataFrame) -> pl.DataFrame:
    """Return a table with numbers in place of texts such as 1.234,5, and of 1.234 for 1234.

    ``texts`` is the same table with text in place of fractions, for there a point parts thousands. A
    column with other entries stays text, its numbers written with decimal points.
    """
    columns = _nearly_numbers(texts)
    mixed_columns = [name for name in columns if len(_numbers(texts[name])) < len(texts[name].drop_nulls())]
    number_columns = pl.col(*columns)
    with_points = (
        number_columns.str.strip_chars()
        .str.replace_all(".", "", literal=True)
        .str.replace(",", ".", literal=True)
    )
    rewritten = texts.select(
        pl.when(number_columns.str.contains(_NUMBER)).then(with_points).otherwise(number_columns)
    )
    return table.with_columns(
        rewritten.with_columns(pl.col(n for n in columns if n not in mixed_columns).cast(pl.Float64))
    )
