"""One file as a table: text, also with gzip, Parquet or Arrow; or Excel; or one sentence on why not."""

from __future__ import annotations

import codecs
import gzip
import io
import re
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import narwhals.stable.v1 as nw
import polars as pl

from coterie.cli.decimals import has_decimal_commas, without_decimal_commas
from coterie.cli.errors import CommandError
from coterie.cli.files import ARROW, EXCEL, PARQUET, TEXT, suffix_of
from coterie.cli.printing import say
from coterie.cli.spreadsheets import without_escapes
from coterie.cli.workbooks import read_workbook
from coterie.encoding.agreed import MISSING, rows_of, texts_of

# Encodings in which letters have another meaning after some others, or escape a line's end.
_HAS_STATE = re.compile(r"iso2022|hz$|utf.7|unicode.escape|raw.unicode.escape|punycode|idna")
_DELIMITERS = {",": "','", ";": "';'", "\t": "'\\t'", "|": "'|'"}
_BYTES_OF_HEAD = 2**16
_BYTES_PER_READ = 2**22
# Of the free memory; a table takes as much again when its text becomes numbers, and more in the fit.
_SHARE_OF_FREE_MEMORY = 0.2
_ASSUMED_FREE_BYTES = 4 * 2**30
# Types are guessed from this number of rows; all rows are read only if the guess was wrong.
_ROWS_FOR_TYPES = 10_000


@dataclass(frozen=True)
class TextForm:
    """How text files are written; None: as the file shows."""

    delimiter: str | None = None
    encoding: str = "utf-8"
    decimal: str | None = None
    # Columns of ids, which keep their leading zeros.
    ids: tuple[str, ...] = ()
    # Columns were agreed on: nothing is guessed from entries, and each is read by itself.
    agreed: bool = False


def free_memory() -> int:
    """Return how many bytes of memory are free; where the system does not tell, `_ASSUMED_FREE_BYTES`."""
    try:
        lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        return int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, ValueError, KeyError):
        return _ASSUMED_FREE_BYTES


def first_line(error: Exception) -> str:
    """Return the first line of another library's error, without its full stop, for a sentence of ours."""
    return str(error).strip().split("\n")[0].rstrip(".")


def _check_amount(path: Path, n_bytes: int, most: int, what: str) -> None:
    """Refuse ``n_bytes`` above ``most``; once the memory is full, the system would end the process."""
    if n_bytes > most:
        raise CommandError(
            f"{str(path)!r} {what} {most / 2**30:.3g} GiB, which is all that fits into the free memory: give "
            "a part of it, or convert it to Parquet and pass --memory."
        )


def _content(path: Path) -> bytes:
    """Return the bytes of a file, unpacked if its name ends in .gz; refuse more than memory allows.

    The size is checked piece by piece, for a gzip file of a few megabytes may unpack to any size.
    """
    is_gzip = path.suffix.lower() == ".gz"
    max_bytes = int(_SHARE_OF_FREE_MEMORY * free_memory())
    try:
        with gzip.open(path) if is_gzip else path.open("rb") as file:
            content = bytearray()
            while piece := file.read(_BYTES_PER_READ):
                content += piece
                _check_amount(
                    path, len(content), max_bytes, "unpacks to more than" if is_gzip else "has more than"
                )
            return bytes(content)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise CommandError(f"{str(path)!r} is not a whole gzip file ({error}): copy it again.") from None


def _check_head(path: Path, content: bytes, form: TextForm, delimiter: str) -> str:
    """Return the delimiter of a text file, after a look at its first line.

    It is the one given by ``form``, else ``delimiter``, which the file's suffix stands for, else the one
    that the line has most often. An empty file, another encoding than was given, and a line without the
    given delimiter are refused. A delimiter that was found in the line is named in a note on stderr.
    """
    if not content.strip():
        raise CommandError(f"{str(path)!r} is empty: give it a line of column names and at least one row.")
    head = content[:_BYTES_OF_HEAD]
    if form.encoding == "utf-8" and head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise CommandError(f"{str(path)!r} is not encoded in UTF-8: pass --encoding utf-16.")
    try:
        text = codecs.getincrementaldecoder(form.encoding)().decode(head)
    except UnicodeError:
        raise _wrong_encoding(path, form.encoding) from None
    header = (text.lstrip("\ufeff").splitlines() or [""])[0]
    delimiter = form.delimiter or delimiter
    most_frequent = max(_DELIMITERS, key=header.count)
    if delimiter in header or not header.count(most_frequent):
        return delimiter
    if form.delimiter is not None:
        raise CommandError(
            f"The first line of {str(path)!r} has no {_spelled(delimiter)} but "
            f"{header.count(most_frequent)} times {_spelled(most_frequent)}: pass --delimiter "
            f"{_spelled(most_frequent)}."
        )
    say(
        f"Note: the fields of {str(path)!r} are separated by {_spelled(most_frequent)}; if not, pass "
        "--delimiter."
    )
    return most_frequent


def check_encoding(encoding: str) -> str:
    """Refuse an encoding that Python does not know as one of text; return its usual name."""
    try:
        codec = codecs.lookup(encoding)
    except (LookupError, ValueError, OSError):
        codec = None
    # Python lists ways to pack bytes, such as base64, among its encodings.
    if codec is None or not getattr(codec, "_is_text_encoding", True) or codec.incrementaldecoder is None:
        raise CommandError(f"The encoding {encoding!r} is not known: try 'latin-1' or 'cp1252'.")
    return codec.name


def _spelled(delimiter: str) -> str:
    """Return a delimiter as a user types it, in quotes."""
    return _DELIMITERS.get(delimiter, repr(delimiter))


def _wrong_encoding(path: Path, encoding: str) -> CommandError:
    """Return the error for a file that is not encoded as it should be."""
    name = "UTF-8" if encoding == "utf-8" else encoding
    return CommandError(
        f"{str(path)!r} is not encoded in {name}: pass --encoding with the right one, such as latin-1, "
        "or save the file as UTF-8."
    )


def _parsed(content: bytes, kinds: dict[str, Any], **options: Any) -> pl.DataFrame:
    """Parse CSV bytes; columns have the types of ``kinds``, or those that their entries show.

    Types are first guessed from `_ROWS_FOR_TYPES` rows, for that is quick. If a later entry does not fit
    the guess, all rows are read for it.
    """
    options |= {"null_values": list(MISSING), "try_parse_dates": True, "schema_overrides": kinds}
    try:
        return pl.read_csv(io.BytesIO(content), infer_schema_length=_ROWS_FOR_TYPES, **options)
    except pl.exceptions.ComputeError as error:
        if "could not parse" not in str(error):
            raise
        return pl.read_csv(io.BytesIO(content), infer_schema_length=None, **options)


def _typed(content: bytes, decimal: str | None, ids: Sequence[str], **options: Any) -> pl.DataFrame:
    """Parse CSV bytes as a table with types, and mend two guesses of polars.

    Columns of ``ids`` with leading zeros (007) stay texts. Numbers with decimal commas, found as in
    `has_decimal_commas`, become numbers; ``options`` are those of ``polars.read_csv``.
    """
    table = _parsed(content, {}, **options)
    integer_ids = [name for name in ids if name in table.columns and table.schema[name].is_integer()]
    if integer_ids:
        texts = _parsed(content, dict.fromkeys(integer_ids, pl.String), columns=integer_ids, **options)
        ids_with_zeros = [name for name in integer_ids if texts[name].str.contains(r"^0\d").any()]
        table = table.with_columns(texts[name] for name in ids_with_zeros)
    if has_decimal_commas(table, decimal):
        kinds = {name: pl.String for name, kind in table.schema.items() if kind.is_float()}
        table = without_decimal_commas(table, _parsed(content, kinds, **options))
    return table


def _agreed_texts(path: Path, content: bytes, form: TextForm, delimiter: str) -> pl.DataFrame:
    """Parse CSV bytes as a table of texts, a row for each line, for sites that agreed on their columns.

    Nothing is guessed from the entries, so that no row decides how another one is read. A line with a
    wrong number of fields counts as a row of gaps, and a note says how many there are.
    """
    if _HAS_STATE.match(form.encoding):
        raise CommandError(
            f"In the encoding {form.encoding!r} one entry decides how later ones are read: save "
            f"{str(path)!r} as UTF-8."
        )
    delimiter = _check_head(path, content.split(b"\n", 1)[0], form, delimiter)
    column_names, rows_of_fields = rows_of(
        content.decode(form.encoding, "replace").removeprefix("\ufeff"), delimiter
    )
    if not column_names:
        raise CommandError(f"The first line of {str(path)!r} has a quote too many: give it names of columns.")
    repeated_names = [name for name, count in Counter(column_names).items() if count > 1]
    if repeated_names:
        raise _named_twice(path, repeated_names[0])
    n_broken_lines = sum(fields[0] is None for fields in rows_of_fields)
    if n_broken_lines:
        say(
            f"Note: {n_broken_lines} of {len(rows_of_fields)} lines of {str(path)!r} have too many or too "
            "few fields, or a stray quote: each counts as one row of gaps."
        )
    return pl.DataFrame(rows_of_fields, schema=dict.fromkeys(column_names, pl.String), orient="row")


def _read_text(path: Path, form: TextForm, delimiter: str) -> pl.DataFrame:
    """Read a delimited text file as a table; each way in which that can fail has its own sentence.

    ``form`` says how the text is written, as far as the user said so; ``delimiter`` is the one of the
    file's suffix.
    """
    content = _content(path)
    if form.agreed:
        return _agreed_texts(path, content, form, delimiter)
    delimiter = _check_head(path, content, form, delimiter)
    if form.encoding != "utf-8":
        try:
            content = content.decode(form.encoding).encode()
        except UnicodeError:
            raise _wrong_encoding(path, form.encoding) from None
    try:
        table = _typed(content, form.decimal, form.ids, separator=delimiter)
    except pl.exceptions.PolarsError as error:
        if "utf-8" in str(error):
            raise _wrong_encoding(path, form.encoding) from None
        if "more fields" in str(error):
            raise CommandError(
                f"A line of {str(path)!r} has more fields than the first line, separated by "
                f"{_spelled(delimiter)}: pass --delimiter, or put fields that contain it in quotes."
            ) from None
        raise CommandError(f"{str(path)!r} cannot be read as text: {first_line(error)}.") from None
    repeated_names = [name for name in table.columns if name.endswith("_duplicated_0")]
    if repeated_names:
        raise _named_twice(path, repeated_names[0].removesuffix("_duplicated_0"))
    return without_escapes(table)


def _named_twice(path: Path, name: str) -> CommandError:
    """Return the error for a table with two columns of one name."""
    return CommandError(f"Two columns of {str(path)!r} are named {name!r}: rename one of them.")


def _read_excel(path: Path, form: TextForm) -> pl.DataFrame:
    """Read the first sheet of a workbook; entries that stand for nothing are missing, as in text.

    Whole numbers become integers, for a workbook has none and an id 7 would be called 7.0. If the sites
    agreed on the columns (``form.agreed``), all entries are texts with the decimal sign of the form.
    """
    if find_spec("fastexcel") is None:
        raise CommandError(
            "Excel files need fastexcel: install coterie's extra 'excel', or save the table as CSV."
        )
    try:
        first_row, table, sheets = read_workbook(
            path, int(_SHARE_OF_FREE_MEMORY * free_memory()), as_text=form.agreed
        )
    except ValueError as error:
        raise CommandError(f"{str(path)!r} cannot be read as Excel ({first_line(error)}).") from None
    if not first_row.height:
        raise CommandError(f"{str(path)!r} is empty: give it a row of column names and at least one row.")
    column_names = [name for name in first_row.row(0) if name is not None]
    repeated_names = [name for name, count in Counter(column_names).items() if count > 1]
    if repeated_names:
        raise _named_twice(path, repeated_names[0])
    if len(sheets) > 1:
        say(f"Note: {str(path)!r} has {len(sheets)} sheets; {sheets[0]!r} was read.")
    if form.agreed:
        # Numbers became texts with points.
        is_decimal = pl.all().str.contains(r"^-?[0-9]*\.[0-9]+([eE][+-]?[0-9]+)?$")
        with_decimal_sign = pl.all().str.replace(".", form.decimal or ".", literal=True)
        return table.select(pl.when(is_decimal).then(with_decimal_sign).otherwise(pl.all()))
    whole_columns = [
        n for n, kind in table.schema.items() if kind.is_float() and (table[n] == table[n].round()).all()
    ]
    return table.with_columns(
        pl.col(pl.String).replace(dict.fromkeys(MISSING)), pl.col(whole_columns).cast(pl.Int64)
    )


def _read_binary(path: Path, kind: str) -> pl.DataFrame:
    """Read a Parquet or Arrow file as a table; refuse more cells than memory allows.

    The cells are counted from the file's metadata first. A file that has none, such as a stream, is read
    without that check.
    """
    readers = [pl.read_parquet] if kind == "Parquet" else [pl.read_ipc, pl.read_ipc_stream]
    error_lines = []
    try:
        scan = (pl.scan_parquet if kind == "Parquet" else pl.scan_ipc)(path, glob=False)
        n_cells = scan.select(pl.len()).collect().item() * len(scan.collect_schema())
    except (pl.exceptions.PolarsError, OSError):
        # Not readable, or a stream: the readers below say why.
        n_cells = 0
    _check_amount(path, 8 * n_cells, int(_SHARE_OF_FREE_MEMORY * free_memory()), "would take more than")
    for read in readers:
        try:
            with path.open("rb") as file:
                return read(file)
        except (pl.exceptions.PolarsError, OSError) as error:
            error_lines.append(first_line(error))
    raise CommandError(f"{str(path)!r} cannot be read as {kind} ({error_lines[0]}): write it again.")


def as_texts(table: pl.DataFrame, decimal: str) -> pl.DataFrame:
    """Return a table with texts for entries of any type."""
    texts = {name: texts_of(nw.from_native(table[name], series_only=True), decimal) for name in table.columns}
    return pl.DataFrame(texts, schema_overrides=dict.fromkeys(table.columns, pl.String))


def read_file(path: Path, form: TextForm) -> pl.DataFrame:
    """Read a file as a table; the suffix of its name says the format, ``form`` how text is written.

    With ``form.agreed``, sites have agreed on the columns: all entries stay texts, whatever the format.
    """
    suffix = suffix_of(path)
    try:
        if suffix in PARQUET or suffix in ARROW:
            table = _read_binary(path, "Parquet" if suffix in PARQUET else "Arrow")
            return as_texts(table, form.decimal or ".") if form.agreed else table
        if suffix in EXCEL:
            return _read_excel(path, form)
        return _read_text(path, form, TEXT[suffix.removesuffix(".gz")])
    except OSError as error:
        raise CommandError(
            f"{str(path)!r} cannot be read ({error.strerror or error}): check its permissions."
        ) from None
