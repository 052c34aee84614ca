"""Tables from files: found by name or pattern, several at once as one table; or one sentence on why not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from coterie.cli.decimals import check_decimal
from coterie.cli.errors import CommandError
from coterie.cli.files import FILENAME, find_files, names_of
from coterie.cli.formats import TextForm, check_encoding, first_line, read_file


def check_same_columns(
    files: Sequence[Path], columns: Sequence[Sequence[str]], ignored: str | None = None
) -> None:
    """Refuse files whose columns differ from the first one's; ``columns`` has the names of each file.

    The column ``ignored`` may be missing anywhere.
    """
    for path, names in zip(files, columns, strict=True):
        differing = sorted((set(columns[0]) ^ set(names)) - {ignored})
        if differing:
            where = "lacks" if differing[0] in columns[0] else "alone has"
            raise CommandError(
                f"{str(path)!r} {where} the column {differing[0]!r}: "
                f"give all files the columns of {str(files[0])!r}."
            )


def _stacked(files: list[Path], tables: list[pl.DataFrame]) -> pl.DataFrame:
    """Return tables of the same columns as one; refuse a column of text in one and numbers in another.

    ``files`` are where the tables come from, for the error.
    """
    columns = tables[0].columns
    check_same_columns(files, [table.columns for table in tables])
    # A file whose entries of a column are all missing says nothing of its type.
    with_null_columns = [
        table.select(pl.col(n).cast(pl.Null) if table[n].null_count() == table.height else n for n in columns)
        for table in tables
    ]
    for name in columns:
        file_by_type = {
            str(table.schema[name]): path for table, path in zip(with_null_columns, files, strict=True)
        }
        other_type = next((kind for kind in file_by_type if kind not in ("String", "Null")), None)
        # polars would turn the numbers into text.
        if "String" in file_by_type and other_type is not None:
            raise CommandError(
                f"The column {name!r} is text in {str(file_by_type['String'])!r} and {other_type} in "
                f"{str(file_by_type[other_type])!r}: give it one type."
            )
    try:
        return pl.concat(with_null_columns, how="vertical_relaxed")
    except pl.exceptions.PolarsError as error:
        raise CommandError(
            f"The files do not fit together ({first_line(error)}): give them one type."
        ) from None


def read_tables(
    patterns: Sequence[str],
    *,
    delimiter: str | None = None,
    encoding: str = "utf-8",
    decimal: str | None = None,
    ids: Sequence[str] = (),
    with_filename: bool = False,
    agreed: bool = False,
) -> pl.DataFrame:
    """Read files, or patterns of files, as one table of at least one row.

    The fields of text files are separated by the delimiter, by default the one that the file's suffix stands
    for, or that its first line shows. ``decimal`` is a comma or a point, None: as the numbers show. Columns
    of ``ids`` keep their leading zeros. With ``agreed``, the sites have agreed on the columns: all entries
    are texts, and nothing is guessed from them. The column ``filename`` is added if wanted, unless there is
    one; see `names_of`.
    """
    if delimiter is not None:
        delimiter = delimiter.replace("\\t", "\t")
        if len(delimiter.encode("utf-8", "surrogatepass")) != 1 or delimiter in '"\r\n':
            raise CommandError(
                f"A delimiter is one character, and no quote or end of a line. Got {delimiter!r}."
            )
    files = find_files(patterns)
    check_decimal(decimal)
    form = TextForm(delimiter, check_encoding(encoding), decimal, tuple(ids), agreed)
    tables = [read_file(path, form) for path in files]
    for path, table in zip(files, tables, strict=True):
        if not table.height and len(files) == 1:
            raise CommandError(f"{str(path)!r} has no rows: give it at least one.")
    if with_filename and FILENAME not in tables[0].columns:
        names = names_of(files)
        tables = [
            table_of_file.with_columns(pl.lit(file_name).alias(FILENAME))
            for table_of_file, file_name in zip(tables, names, strict=True)
        ]
    combined = tables[0] if len(files) == 1 else _stacked(files, tables)
    if not combined.height:
        raise CommandError(f"None of the {len(files)} files has a row: check that they are the right ones.")
    return combined
