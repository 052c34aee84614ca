"""CSV files that a spreadsheet opens without running what is in them.

A spreadsheet takes a cell that begins with ``=``, ``+``, ``-`` or ``@`` for a formula, and whoever names a
learner could write one. Such a text gets an apostrophe in front; numbers stay numbers. A text that looks as
if it had one already gets another, so that reading can take one away from each.
"""

from __future__ import annotations

import re

import polars as pl

# A tab or the end of a line is skipped before a formula; the wide signs are those of East Asian keyboards.
_SIGNS = "[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]"
_TO_ESCAPE = f"^'*{_SIGNS}"
_ESCAPED = f"^'+{_SIGNS}"
_BARE = f"^{_SIGNS}"
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"


def _matches(text: str, pattern: str) -> bool:
    """Tell whether a text matches a pattern of formulas, and is no number such as -1."""
    return re.search(pattern, text) is not None and re.fullmatch(_NUMBER, text) is None


def _texts(table: pl.DataFrame) -> list[str]:
    return [name for name, kind in table.schema.items() if kind == pl.String]


def write_csv(table: pl.DataFrame) -> bytes:
    """Return a table as CSV in UTF-8 that holds no formula: see the top of this file.

    Names of learners come from anybody, and a spreadsheet would run a formula. Texts and names of columns
    that begin like one get an apostrophe in front; numbers do not.
    """
    as_text = table.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))
    escaped = as_text.with_columns(
        pl.when(pl.col(name).str.contains(_TO_ESCAPE) & ~pl.col(name).str.contains(_NUMBER))
        .then("'" + pl.col(name))
        .otherwise(pl.col(name))
        .alias(name)
        for name in _texts(as_text)
    )
    with_escaped_names = escaped.rename({n: f"'{n}" for n in escaped.columns if _matches(n, _TO_ESCAPE)})
    return with_escaped_names.write_csv().encode()


def without_escapes(table: pl.DataFrame) -> pl.DataFrame:
    """Take away the apostrophes that `write_csv` put in.

    A table in which some text begins like a formula was not written by it, and stays as it is.
    """
    text_columns = _texts(table)

    def any_matches(pattern: str) -> bool:
        """Tell whether a column's name or one of its entries matches, numbers aside."""
        return any(_matches(name, pattern) for name in table.columns) or any(
            (table[name].str.contains(pattern) & ~table[name].str.contains(_NUMBER)).any()
            for name in text_columns
        )

    if not any_matches(_ESCAPED) or any_matches(_BARE):
        return table
    unescaped = table.with_columns(pl.col(name).str.replace(f"^'('*{_SIGNS})", "$1") for name in text_columns)
    return unescaped.rename({n: n[1:] for n in unescaped.columns if _matches(n, _ESCAPED)})
