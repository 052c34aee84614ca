"""Tables from files: CSV, TSV, Parquet, Arrow, gzip, several at once; or one sentence on why not."""

from __future__ import annotations

import codecs
import glob
import gzip
import io
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coterie.cli.errors import CommandError
from coterie.cli.spreadsheets import without_escapes

if TYPE_CHECKING:
    import polars

# A format's suffixes, and what separates its fields where it is text.
TEXT = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
PARQUET = (".parquet", ".pq")
ARROW = (".arrow", ".feather", ".ipc")
SUFFIXES = (*TEXT, *(f"{suffix}.gz" for suffix in TEXT), *PARQUET, *ARROW)

# What stands for a missing entry in text files, beside nothing at all.
MISSING = ("NA", "N/A", "n/a", "NaN", "nan", "null", "NULL")

FILENAME = "filename"
_DELIMITERS = {",": "','", ";": "';'", "\t": "'\\t'", "|": "'|'"}
_HEAD = 2**16
_PIECE = 2**22
# Of the free memory; a table takes as much again when its text becomes numbers, and more in the fit.
_SHARE = 0.2
_USUAL_MEMORY = 4 * 2**30
# Types are guessed from so many rows first; all rows are looked at only where the guess was wrong.
_GUESSED = 10_000


def _suffix(path: Path) -> str:
    name = path.name.lower()
    return next((suffix for suffix in sorted(SUFFIXES, key=len, reverse=True) if name.endswith(suffix)), "")


def stem_of(path: Path) -> str:
    """Return a file's name without the suffix of its format."""
    return path.name[: len(path.name) - len(_suffix(path))] or path.name


def wants_filename(group: str) -> bool:
    """Tell whether learners are to be named by their files."""
    return group == FILENAME


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
        if not _suffix(path):
            raise CommandError(
                f"The format of {str(path)!r} is not known by its name: it must end in {', '.join(SUFFIXES)}."
            )
    return list(dict.fromkeys(files))


def free_memory() -> int:
    """Return the memory that is free, in bytes; where the system does not tell, a usual amount."""
    try:
        lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        return int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, ValueError, KeyError):
        return _USUAL_MEMORY


def _check_amount(path: Path, n_bytes: int, most: int, what: str) -> None:
    """Refuse a table that would not fit into the memory; once it is full, the system ends the process."""
    if n_bytes > most:
        raise CommandError(
            f"{str(path)!r} {what} {most / 2**30:.3g} GiB, which is all that fits into the free memory: give "
            "a part of it, or convert it to Parquet and pass --memory."
        )


def _content(path: Path) -> bytes:
    zipped = path.suffix.lower() == ".gz"
    most = int(_SHARE * free_memory())
    try:
        with gzip.open(path) if zipped else path.open("rb") as file:
            content = bytearray()
            while piece := file.read(_PIECE):
                content += piece
                # A few megabytes may unpack to any size.
                _check_amount(path, len(content), most, "unpacks to more than" if zipped else "has more than")
            return bytes(content)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise CommandError(f"{str(path)!r} is not a whole gzip file ({error}): copy it again.") from None


def _check_head(path: Path, content: bytes, delimiter: str, encoding: str) -> None:
    """Refuse what can be seen in the first lines: no text at all, another encoding, another delimiter."""
    if not content.strip():
        raise CommandError(f"{str(path)!r} is empty: give it a line of column names and at least one row.")
    head = content[:_HEAD]
    if encoding == "utf-8" and head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise CommandError(f"{str(path)!r} is not encoded in UTF-8: pass --encoding utf-16.")
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(head)
    except UnicodeError:
        raise _wrong_encoding(path, encoding) from None
    header = (text.lstrip("\ufeff").splitlines() or [""])[0]
    if delimiter not in header:
        other = max(_DELIMITERS, key=header.count)
        if header.count(other):
            raise CommandError(
                f"The first line of {str(path)!r} has no {_shown(delimiter)} but {header.count(other)} times "
                f"{_shown(other)}: pass --delimiter {_shown(other)}."
            )


def _check_encoding(encoding: str) -> str:
    """Refuse an encoding that is not one of text; return its usual name."""
    try:
        known = codecs.lookup(encoding)
    except (LookupError, ValueError, OSError):
        known = None
    # Python lists ways to pack bytes, such as base64, among its encodings.
    if known is None or not getattr(known, "_is_text_encoding", True) or known.incrementaldecoder is None:
        raise CommandError(f"The encoding {encoding!r} is not known: try 'latin-1' or 'cp1252'.")
    return known.name


def _shown(delimiter: str) -> str:
    return _DELIMITERS.get(delimiter, repr(delimiter))


def _wrong_encoding(path: Path, encoding: str) -> CommandError:
    name = "UTF-8" if encoding == "utf-8" else encoding
    return CommandError(
        f"{str(path)!r} is not encoded in {name}: pass --encoding with the right one, such as latin-1, "
        "or save the file as UTF-8."
    )


def _read_text(path: Path, delimiter: str, encoding: str) -> polars.DataFrame:
    import polars as pl

    content = _content(path)
    _check_head(path, content, delimiter, encoding)
    if encoding != "utf-8":
        try:
            content = content.decode(encoding).encode()
        except UnicodeError:
            raise _wrong_encoding(path, encoding) from None
    options: dict[str, Any] = {"separator": delimiter, "null_values": list(MISSING), "try_parse_dates": True}
    try:
        try:
            table = pl.read_csv(io.BytesIO(content), infer_schema_length=_GUESSED, **options)
        except pl.exceptions.ComputeError as error:
            if "could not parse" not in str(error):
                raise
            table = pl.read_csv(io.BytesIO(content), infer_schema_length=None, **options)
    except pl.exceptions.PolarsError as error:
        if "utf-8" in str(error):
            raise _wrong_encoding(path, encoding) from None
        if "more fields" in str(error):
            raise CommandError(
                f"A line of {str(path)!r} has more fields than the first line, separated by "
                f"{_shown(delimiter)}: pass --delimiter, or put fields that contain it in quotes."
            ) from None
        raise CommandError(f"{str(path)!r} cannot be read as text: {first_line(error)}.") from None
    twice = [name for name in table.columns if name.endswith("_duplicated_0")]
    if twice:
        raise CommandError(
            f"Two columns of {str(path)!r} are named {twice[0].removesuffix('_duplicated_0')!r}: "
            "rename one of them."
        )
    return without_escapes(table)


def first_line(error: Exception) -> str:
    """Return what another library says first."""
    return str(error).strip().split("\n")[0].rstrip(".")


def _read_binary(path: Path, kind: str) -> polars.DataFrame:
    import polars as pl

    readers = [pl.read_parquet] if kind == "Parquet" else [pl.read_ipc, pl.read_ipc_stream]
    causes = []
    try:
        scan = (pl.scan_parquet if kind == "Parquet" else pl.scan_ipc)(path, glob=False)
        cells = scan.select(pl.len()).collect().item() * len(scan.collect_schema())
    except (pl.exceptions.PolarsError, OSError):
        # It cannot be read, or is a stream; whoever reads it says why.
        cells = 0
    _check_amount(path, 8 * cells, int(_SHARE * free_memory()), "would take more than")
    for read in readers:
        try:
            with path.open("rb") as file:
                return read(file)
        except (pl.exceptions.PolarsError, OSError) as error:
            causes.append(first_line(error))
    raise CommandError(f"{str(path)!r} cannot be read as {kind} ({causes[0]}): write it again.")


def _read_file(path: Path, delimiter: str | None, encoding: str) -> polars.DataFrame:
    suffix = _suffix(path)
    try:
        if suffix in PARQUET:
            return _read_binary(path, "Parquet")
        if suffix in ARROW:
            return _read_binary(path, "Arrow")
        return _read_text(path, delimiter or TEXT[suffix.removesuffix(".gz")], encoding)
    except OSError as error:
        raise CommandError(
            f"{str(path)!r} cannot be read ({error.strerror or error}): check its permissions."
        ) from None


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


def _stacked(files: list[Path], tables: list[polars.DataFrame]) -> polars.DataFrame:
    import polars as pl

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
) -> polars.DataFrame:
    """Read files, or patterns of files, as one table of at least one row.

    The fields of text files are separated by the delimiter, by default the one that the file's suffix stands
    for. The column ``filename`` is added if wanted, unless there is one; see `names_of`.
    """
    import polars as pl

    if delimiter is not None:
        delimiter = delimiter.replace("\\t", "\t")
        if len(delimiter.encode("utf-8", "surrogatepass")) != 1 or delimiter in '"\r\n':
            raise CommandError(
                f"A delimiter is one character, and no quote or end of a line. Got {delimiter!r}."
            )
    files = find_files(patterns)
    encoding = _check_encoding(encoding)
    tables = [_read_file(path, delimiter, encoding) for path in files]
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
