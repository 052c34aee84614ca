"""Learners in Parquet files that are read one by one: a file or a folder each, or files sorted by learner."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote
from zlib import crc32

from coterie.cli.errors import CommandError
from coterie.cli.preparing import Rows, apply_recipe, check_columns, learner_names, prepare
from coterie.cli.reading import FILENAME, PARQUET, find_files, stem_of, wants_filename

if TYPE_CHECKING:
    import polars
    import pyarrow

    from coterie.encoding import TableRecipe
    from coterie.regressor import CoterieRegressor

# Where rows do not fit, what becomes of the columns is decided by some rows of so many learners.
LOOKED_AT, ROWS_LOOKED_AT = 100, 200
# Rows of a learner in more pieces than this are scattered: reading it would read everything every time.
MOST_PIECES = 16
# Rows that are decoded at a time.
BATCH = 2**15
# What folders are called for rows that have no entry.
NO_ENTRY = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class Piece:
    """Rows that follow each other in a file.

    Parameters
    ----------
    path : str
        The file.
    first : int
        Its first row.
    n_rows : int
        How many.
    stamp : tuple of int
        Size and time of the file: a file that was written again is another one.
    """

    path: str
    first: int
    n_rows: int
    stamp: tuple[int, int]

    def part(self, first: int, n_rows: int) -> Piece:
        """Return some of the rows."""
        return Piece(self.path, self.first + first, min(n_rows, self.n_rows - first), self.stamp)

    def batches(self, columns: Sequence[str]) -> Iterator[pyarrow.RecordBatch]:
        """Give out the rows, batch by batch."""
        file = _opened(self.path)
        last, start = self.first + self.n_rows, 0
        for group in range(file.num_row_groups):
            stop = start + file.metadata.row_group(group).num_rows
            if start < last and stop > self.first:
                here = start
                for batch in file.iter_batches(BATCH, row_groups=[group], columns=list(columns)):
                    low, high = max(here, self.first), min(here + len(batch), last)
                    if low < high:
                        yield batch.slice(low - here, high - low)
                    here += len(batch)
                    if here >= last:
                        break
            start = stop


@dataclass(frozen=True)
class ParquetRows:
    """Where one learner's rows lie; see `coterie.RowSource`.

    Parameters
    ----------
    learner : str
        Its id.
    pieces : tuple of Piece
        Its rows.
    recipe : TableRecipe
        What becomes of the columns.
    """

    learner: str
    pieces: tuple[Piece, ...]
    recipe: TableRecipe = field(repr=False)

    @property
    def n_rows(self) -> int:
        """Number of rows in the files."""
        return sum(piece.n_rows for piece in self.pieces)

    def read(self, most: int) -> tuple[Any, Any]:
        """Return the predictors and the response of the learner, of more than ``most`` rows so many."""
        import numpy as np

        needed = [plan.name for plan in self.recipe.columns if plan.kind != "left out"]
        columns = list(dict.fromkeys([*needed, self.recipe.target]))
        try:
            frame = _frame(self.learner, self.pieces, columns, self.recipe.group, most)
            answered = _answered(frame, self.recipe.target)
            if not answered.height:
                return self.recipe.encoder.transform(frame.select(needed).head(1)).head(0), np.zeros(0)
            rows = apply_recipe(answered, self.recipe, with_target=True)
        except CommandError as error:
            raise ValueError(f"Learner {self.learner!r}: {error}") from None
        return rows.X, np.asarray(rows.y)


@dataclass(frozen=True)
class StreamedRows:
    """All learners of a fit that reads them one by one.

    Parameters
    ----------
    sources : dict of str to ParquetRows
        The learners.
    memory : str
        What the fit may take.
    notes : tuple of str
        What was done to the table, in sentences.
    """

    sources: dict[str, ParquetRows]
    memory: str
    notes: tuple[str, ...]

    def fit(self, model: CoterieRegressor) -> list[str]:
        """Fit a model to them; return what is to be said of it."""
        model.fit_sources(self.sources, memory=self.memory)
        there, read = sum(s.n_rows for s in self.sources.values()), int(model.gains_["n_rows"].sum())
        kept = sum(len(residuals) for residuals in model.selection_.residuals)
        said = [
            f"{read} of {there} rows were read, learner by learner; {kept} were kept for the clustering.",
            "What becomes of the columns was decided by some rows of some learners.",
        ]
        if there > read:
            said.append(f"{there - read} rows have no target, or were too many for the memory.")
        return said


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0].rstrip(".")


def _opened(path: str) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise CommandError(f"{path!r} cannot be read as Parquet ({_first_line(error)}).") from None


def _frame(
    learner: str, pieces: Sequence[Piece], columns: Sequence[str], group: str, most: int
) -> polars.DataFrame:
    """Return some columns of a learner's rows as one table, with its id; of many rows ``most`` at random."""
    import numpy as np
    import polars as pl
    import pyarrow as pa

    total = sum(piece.n_rows for piece in pieces)
    generator = np.random.default_rng(crc32(learner.encode("utf-8", "surrogatepass")))
    # A file of a few bytes may hold any number of equal rows: count them before they are numbered.
    few = total <= most
    wanted = np.arange(total) if few else np.sort(generator.choice(total, most, replace=False))
    parts, start = [], 0
    try:
        for batch in (batch for piece in pieces for batch in piece.batches(columns)):
            mine = wanted[(wanted >= start) & (wanted < start + len(batch))] - start
            if len(mine):
                made = pl.from_arrow(pa.Table.from_batches([batch]))
                assert isinstance(made, pl.DataFrame)
                # Taken, not sliced: a slice would keep all that was decoded with it.
                parts.append(made[mine])
            start += len(batch)
        whole = pl.concat(parts, how="vertical_relaxed")
    except (pa.ArrowException, pl.exceptions.PolarsError, OSError, KeyError, ValueError) as error:
        where = pieces[0].path
        raise CommandError(f"{where!r} cannot be read ({_first_line(error)}): write it again.") from None
    return whole.with_columns(pl.lit(learner).alias(group))


def _answered(frame: polars.DataFrame, target: str) -> polars.DataFrame:
    """Return the rows that have a target."""
    from coterie.cli.preparing import target_values

    return frame.filter(target_values(frame, target).is_not_null())


def _folders_say(path: Path) -> dict[str, str]:
    """Return what the names of a file's folders say (``station=A``)."""
    parts = (part.partition("=") for part in path.parts[:-1] if "=" in part)
    return {unquote(key): unquote(value) for key, _, value in parts}


def _inside(folder: Path) -> list[Path]:
    found, seen = [], set()
    for where, folders, files in os.walk(folder, followlinks=True):
        real = os.path.realpath(where)
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        found += [Path(where) / name for name in files if Path(name).suffix.lower() in PARQUET]
    if not found:
        raise CommandError(f"There is no Parquet file in the folder {str(folder)!r}: check the path.")
    return sorted(found)


def _parquet_files(patterns: Sequence[str]) -> list[Path]:
    found: list[Path] = []
    for pattern in patterns:
        matches = [pattern] if Path(pattern).exists() else sorted(glob.glob(pattern, recursive=True))
        for match in matches or [pattern]:
            found += _inside(Path(match)) if Path(match).is_dir() else find_files([match])
    for path in found:
        if path.suffix.lower() not in PARQUET:
            raise CommandError(f"--memory reads Parquet files, and {str(path)!r} is none: convert it first.")
        if not path.is_file():
            raise CommandError(f"{str(path)!r} leads nowhere: remove it, or bring back what it names.")
    # A file that two patterns name is one file.
    return list({os.path.realpath(path): path for path in found}.values())


def _kind(type_: Any) -> str:
    import pyarrow as pa

    numbers = pa.types.is_integer(type_) or pa.types.is_floating(type_)
    return "number" if numbers or pa.types.is_boolean(type_) else str(type_)


def _check_schemas(files: list[Path], group: str) -> None:
    """Refuse files whose columns differ, as a table of several files does."""
    schemas = [_opened(str(path)).schema_arrow for path in files]
    known: dict[str, tuple[str, Path]] = {}
    for path, schema in zip(files, schemas, strict=True):
        odd = sorted((set(schema.names) ^ set(schemas[0].names)) - {group})
        if odd:
            where = "lacks" if odd[0] in schemas[0].names else "alone has"
            raise CommandError(
                f"{str(path)!r} {where} the column {odd[0]!r}: "
                f"give all files the columns of {str(files[0])!r}."
            )
        for column in schema:
            kind = str(column.type) if column.name == group else _kind(column.type)
            first = known.setdefault(column.name, (kind, path))
            if kind != first[0] and "null" not in (kind, first[0]):
                raise CommandError(
                    f"The column {column.name!r} is {first[0]} in {str(first[1])!r} and {kind} in "
                    f"{str(path)!r}: give it one type."
                )


def _runs(path: str, group: str, stamp: tuple[int, int]) -> Iterator[tuple[str | None, Piece]]:
    """Give out the learners of a file and where their rows are, from the column that names them."""
    import polars as pl

    start, first = 0, 0
    learner: str | None = None
    for batch in _opened(path).iter_batches(batch_size=BATCH, columns=[group]):
        names = learner_names(pl.Series(group, batch.column(0)))
        for length, name in names.rle().struct.unnest().iter_rows():
            if start and name != learner:
                yield learner, Piece(path, first, start - first, stamp)
                first = start
            learner = name
            start += length
    if start:
        yield learner, Piece(path, first, start - first, stamp)


def _pieces(files: list[Path], group: str) -> tuple[dict[str, list[Piece]], int]:
    """Return where every learner's rows are, and the number of rows that no learner holds."""
    names = _opened(str(files[0])).schema_arrow.names
    by_file = wants_filename(group) and FILENAME not in names
    stems = [stem_of(path) for path in files]
    if len(set(stems)) < len(stems):
        stems = [str(path) for path in files]
    pieces: dict[str, list[Piece]] = {}
    nobody = 0
    for path, stem in zip(files, stems, strict=True):
        known = path.stat()
        where, stamp = os.path.abspath(path), (known.st_size, known.st_mtime_ns)
        said = _folders_say(Path(where))
        whole = by_file or group in said
        if whole:
            name = stem if by_file else said[group]
            learner = None if name == NO_ENTRY else name
            found = iter([(learner, Piece(where, 0, _opened(where).metadata.num_rows, stamp))])
        else:
            check_columns([group], _opened(where).schema_arrow.names, "--group")
            found = _runs(where, group, stamp)
        for learner, piece in found:
            if learner is None:
                nobody += piece.n_rows
                continue
            mine = pieces.setdefault(learner, [])
            mine.extend([piece] if piece.n_rows else [])
            if len(mine) > MOST_PIECES and not whole:
                raise CommandError(
                    f"The rows of learner {learner!r} lie in more than {MOST_PIECES} places: sort the files "
                    f"by {group!r}, or write a file or a folder for each learner."
                )
    pieces = {learner: mine for learner, mine in pieces.items() if mine}
    if not pieces:
        raise CommandError("The files have no rows: check that they are the right ones.")
    return pieces, nobody


def _looked_at(pieces: dict[str, list[Piece]], group: str, columns: Sequence[str]) -> polars.DataFrame:
    """Return rows of some learners, evenly spread among all: from the beginning, the middle and the end."""
    import polars as pl

    heads = []
    for learner in list(pieces)[:: max(1, len(pieces) // LOOKED_AT)]:
        for piece in dict.fromkeys((pieces[learner][0], pieces[learner][-1])):
            places = {0, piece.n_rows // 2, max(0, piece.n_rows - ROWS_LOOKED_AT)}
            parts = [piece.part(place, ROWS_LOOKED_AT) for place in sorted(places)]
            heads.append(_frame(learner, parts, columns, group, 3 * ROWS_LOOKED_AT))
    return pl.concat(heads, how="vertical_relaxed")


def find_learners(
    patterns: Sequence[str],
    *,
    target: str,
    group: str,
    features: Sequence[str],
    drop: Sequence[str],
    memory: str,
) -> tuple[Rows | StreamedRows, TableRecipe, str]:
    """Find the learners in Parquet files; read them all where they fit.

    Parameters
    ----------
    patterns : sequence of str
        Files, patterns, or folders.
    target : str
        The column of the response.
    group : str
        The column, or the key of the folders' names, that names the learners; ``filename``: a file each.
    features : sequence of str
        The columns to predict from. Empty: all others.
    drop : sequence of str
        Columns to leave out of these.
    memory : str
        What the fit may take.

    Returns
    -------
    rows : Rows or StreamedRows
        For the fit.
    recipe : TableRecipe
        What becomes of the columns.
    stem : str
        A name for the results.
    """
    import polars as pl

    from coterie.fit.out_of_core import BASE, COPIES, memory_in_bytes

    try:
        amount = memory_in_bytes(memory)
    except ValueError as error:
        raise CommandError(str(error)) from None
    files = _parquet_files(patterns)
    _check_schemas(files, group)
    pieces, nobody = _pieces(files, group)
    columns = [name for name in _opened(str(files[0])).schema_arrow.names if name != group]
    for names, option in (((target,), "--target"), (features, "--features"), (drop, "--drop")):
        check_columns(names, [*columns, group], option)
    wanted = [name for name in dict.fromkeys([*(features or columns), target]) if name != group]
    stem = "fit" if len(patterns) > 1 or glob.has_magic(patterns[0]) else Path(patterns[0]).stem or "fit"
    decided: dict[str, Any] = {"target": target, "group": group, "features": features, "drop": drop}
    decided["by_file"] = wants_filename(group)
    total = sum(piece.n_rows for mine in pieces.values() for piece in mine)
    notes = [f"{nobody} of {total + nobody} rows have no learner ({group!r}) and were left out."]
    said = tuple(notes if nobody else ())
    if 8 * COPIES * len(wanted) * total <= (amount - BASE) // 2:
        frames = [_frame(learner, mine, wanted, group, total) for learner, mine in pieces.items()]
        rows, recipe = prepare(pl.concat(frames, how="vertical_relaxed"), **decided)
        return Rows(rows.X, rows.y, rows.groups, rows.kept, (*said, *rows.notes)), recipe, stem
    sample = _answered(_looked_at(pieces, group, wanted), target)
    if not sample.height:
        raise CommandError(f"No row that was looked at has an entry in {target!r}: check the column.")
    _, recipe = prepare(sample, **decided)
    sources = {learner: ParquetRows(learner, tuple(mine), recipe) for learner, mine in pieces.items()}
    return StreamedRows(sources, memory, said), recipe, stem
