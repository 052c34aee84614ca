"""Tables from files: found by name or pattern, several at once as one table; or one sentence on why not."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from coterie.cli.errors import CommandError
from coterie.cli.formats import SUFFIXES, check_encoding, first_line, read_file, suffix_of

FILENAME = "filename"


def stem_of(path: Path) -> str:
    """Return a file's name without the suffix of its format."""
    return path.name[: len(path.name) - len(suffix_of(path))] or path.name


def matches(pattern: str) -> list[Path]:
    """Return what is there under a name or matches a pattern, in sorted order."""
    there = Path(pattern).exists()
    return [Path(pattern)] if there else [Path(name) for name in sorted(glob.glob(pattern, recursive=True))]


def names_of(files: Sequence[Path]) -> list[str]:
    """Return learners' names for files: without folder and suffix, unless two would have the same."""
    stems = [stem_of(path) for path in files]
    return stems if len(set(stems)) == len(stems) else [str(path) for path in files]


def find_files(patterns: Sequence[str]) -> list[Path]:
    """Return the files that are named or match a pattern, in sorted order."""
    files: list[Path] = []
    for pattern in patterns:
        found = matches(pattern)
        if not found:
            kind = "matches" if glob.has_magic(pattern) else "is"
            raise CommandError(f"There is no file that {kind} {pattern!r}: check the path.")
        files.extend(found)
    for path in files:
        if path.is_dir():
            raise CommandError(f"{str(path)!r} is a folder: name its files, as in '{path}/*.csv'.")
        if not path.is_file():
            # A pipe would be waited for, a device read for ever.
            raise CommandError(f"{str(path)!r} is no plain file: copy what it holds into one.")
        if not suffix_of(path):
            raise CommandError(
                f"The format of {str(path)!r} is not known by its name: it must end in {', '.join(SUFFIXES)}."
            )
    return list(dict.fromkeys(files))


def check_same_columns(
    files: Sequence[Path], columns: Sequence[Sequence[str]], ignored: str | None = None
) -> None:
    """Refuse files whose columns differ from the first one's."""
    for path, names in zip(files, columns, strict=True):
        odd = sorted((set(columns[0]) ^ set(names)) - {ignored})
        if odd:
            where = "lacks" if odd[0] in columns[0] else "alone has"
            raise CommandError(
                f"{str(path)!r} {where} the column {odd[0]!r}: "
                f"give all files the columns of {str(files[0])!r}."
            )


def _stacked(files: list[Path], tables: list[pl.DataFrame]) -> pl.DataFrame:
    names = tables[0].columns
    check_same_columns(files, [table.columns for table in tables])
    # A file whose entries of a column are all missing says nothing of its type.
    typed = [
        table.select(pl.col(n).cast(pl.Null) if table[n].null_count() == table.height else n for n in names)
        for table in tables
    ]
    for name in names:
        kinds = {str(table.schema[name]): path for table, path in zip(typed, files, strict=True)}
        other = next((kind for kind in kinds if kind not in ("String", "Null")), None)
        # polars would turn the numbers into text.
        if "String" in kinds and other is not None:
            raise CommandError(
                f"The column {name!r} is text in {str(kinds['String'])!r} and {other} in "
                f"{str(kinds[other])!r}: give it one type."
            )
    try:
        return pl.concat(typed, how="vertical_relaxed")
    except pl.exceptions.PolarsError as error:
        raise CommandError(
            f"The files do not fit together ({first_line(error)}): give them one type."
        ) from None


def read_tables(
    patterns: Sequence[str],
    *,
    delimiter: str | None = None,
    encoding: str = "utf-8",
    with_filename: bool = False,
) -> pl.DataFrame:
    """Read files, or patterns of files, as one table of at least one row.

    The fields of text files are separated by the delimiter, by default the one that the file's suffix stands
    for. The column ``filename`` is added if wanted, unless there is one; see `names_of`.
    """
    if delimiter is not None:
        delimiter = delimiter.replace("\\t", "\t")
        if len(delimiter.encode("utf-8", "surrogatepass")) != 1 or delimiter in '"\r\n':
            raise CommandError(
                f"A delimiter is one character, and no quote or end of a line. Got {delimiter!r}."
            )
    files = find_files(patterns)
    encoding = check_encoding(encoding)
    tables = [read_file(path, delimiter, encoding) for path in files]
    for path, table in zip(files, tables, strict=True):
        if not table.height and len(files) == 1:
            raise CommandError(f"{str(path)!r} has no rows: give it at least one.")
    if with_filename and FILENAME not in tables[0].columns:
        names = names_of(files)
        tables = [t.with_columns(pl.lit(n).alias(FILENAME)) for t, n in zip(tables, names, strict=True)]
    whole = tables[0] if len(files) == 1 else _stacked(files, tables)
    if not whole.height:
        raise CommandError(f"None of the {len(files)} files has a row: check that they are the right ones.")
    return whole
