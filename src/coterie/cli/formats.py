"""One file as a table: text, also with gzip, Parquet or Arrow; or one sentence on why not."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from pathlib import Path
from typing import Any

import polars as pl

from coterie.cli.errors import CommandError
from coterie.cli.spreadsheets import without_escapes

# A format's suffixes, and what separates its fields where it is text.
TEXT = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
PARQUET = (".parquet", ".pq")
ARROW = (".arrow", ".feather", ".ipc")
SUFFIXES = (*TEXT, *(f"{suffix}.gz" for suffix in TEXT), *PARQUET, *ARROW)

# What stands for a missing entry in text files, beside nothing at all.
MISSING = ("NA", "N/A", "n/a", "NaN", "nan", "null", "NULL")

_DELIMITERS = {",": "','", ";": "';'", "\t": "'\\t'", "|": "'|'"}
_HEAD = 2**16
_PIECE = 2**22
# Of the free memory; a table takes as much again when its text becomes numbers, and more in the fit.
_SHARE = 0.2
_USUAL_MEMORY = 4 * 2**30
# Types are guessed from this number of rows; all rows are read only if the guess was wrong.
_GUESSED = 10_000


def suffix_of(path: Path) -> str:
    """Return the suffix that tells a file's format; empty where it is not known."""
    name = path.name.lower()
    return next((suffix for suffix in sorted(SUFFIXES, key=len, reverse=True) if name.endswith(suffix)), "")


def free_memory() -> int:
    """Return the memory that is free, in bytes; where the system does not tell, a usual amount."""
    try:
        lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        return int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, ValueError, KeyError):
        return _USUAL_MEMORY


def first_line(error: Exception) -> str:
    """Return what another library says first."""
    return str(error).strip().split("\n")[0].rstrip(".")


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


def check_encoding(encoding: str) -> str:
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


def _read_text(path: Path, delimiter: str, encoding: str) -> pl.DataFrame:
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


def _read_binary(path: Path, kind: str) -> pl.DataFrame:
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


def read_file(path: Path, delimiter: str | None, encoding: str) -> pl.DataFrame:
    """Read a file as its suffix says; the delimiter None is the suffix's, too."""
    suffix = suffix_of(path)
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
