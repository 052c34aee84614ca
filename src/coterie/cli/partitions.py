"""Learners in Parquet files that are read one by one: a file or a folder each, or files sorted by learner.

One learner's rows are read when they are wanted, and as many as are wanted.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from zlib import crc32

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from coterie.cli.errors import CommandError, one_sentence
from coterie.cli.files import FILENAME, PARQUET, find_files, matches, names_of
from coterie.cli.formats import first_line
from coterie.cli.preparing import (
    PreparedRows,
    StreamedRows,
    apply_recipe,
    check_columns,
    learner_names,
    prepare,
    target_values,
)
from coterie.cli.reading import check_same_columns
from coterie.cli.tasks import AUTO, CLASSIFICATION, REGRESSION, labels_of, said_of, task_of
from coterie.encoding import TableRecipe
from coterie.fit import out_of_core

# Rows that are decoded at a time.
BATCH = 2**15
# If rows do not fit, some rows of this number of learners decide how columns become numbers.
LOOKED_AT, ROWS_LOOKED_AT = 100, 200
# Rows of a learner in more pieces than this are scattered: reading it would read everything every time.
MOST_PIECES = 16
# What folders are called for rows that have no entry.
NO_ENTRY = "__HIVE_DEFAULT_PARTITION__"


def open_parquet(path: str) -> Any:
    """Return an open Parquet file."""
    try:
        return pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise CommandError(f"{path!r} cannot be read as Parquet ({first_line(error)}).") from None


@dataclass(frozen=True)
class RowBlock:
    """Rows that follow each other in a file."""

    path: str
    first: int
    n_rows: int
    # Size and time of the file: a file that was written again is another one.
    stamp: tuple[int, int]

    def part(self, first: int, n_rows: int) -> RowBlock:
        """Return some of the rows."""
        return RowBlock(self.path, self.first + first, min(n_rows, self.n_rows - first), self.stamp)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Give out the rows, batch by batch."""
        file = open_parquet(self.path)
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


def read_pieces(
    learner: str, pieces: Sequence[RowBlock], columns: Sequence[str], group: str, most: int
) -> pl.DataFrame:
    """Return some columns of a learner's rows as one table, with its id; of many rows ``most`` at random."""
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
        raise CommandError(f"{where!r} cannot be read ({first_line(error)}): write it again.") from None
    return whole.with_columns(pl.lit(learner).alias(group))


def with_target(frame: pl.DataFrame, target: str, *, classes: bool = False) -> pl.DataFrame:
    """Return the rows that have a target; ``classes``: it holds labels."""
    values = labels_of(frame[target]) if classes else target_values(frame, target)
    return frame.filter(values.is_not_null())


@dataclass(frozen=True)
class ParquetRows:
    """Where one learner's rows lie, and what becomes of their columns; see `coterie.RowSource`."""

    learner: str
    pieces: tuple[RowBlock, ...]
    recipe: TableRecipe = field(repr=False)
    classes: bool = False

    @property
    def n_rows(self) -> int:
        """Number of rows in the files."""
        return sum(piece.n_rows for piece in self.pieces)

    def read(self, most: int) -> tuple[Any, Any]:
        """Return the predictors and the response of the learner, at most ``most`` rows."""
        needed = [plan.name for plan in self.recipe.columns if plan.kind != "left out"]
        columns = list(dict.fromkeys([*needed, self.recipe.target]))
        try:
            frame = read_pieces(self.learner, self.pieces, columns, self.recipe.group, most)
            answered = with_target(frame, self.recipe.target, classes=self.classes)
            if not answered.height:
                return self.recipe.encoder.transform(frame.select(needed).head(1)).head(0), np.zeros(0)
            rows = apply_recipe(answered, self.recipe, with_target=True, classes=self.classes)
        except CommandError as error:
            raise ValueError(f"Learner {self.learner!r}: {error}") from None
        return self.recipe.encoder.transform(rows.X), np.asarray(rows.y)


def _folders_say(path: Path) -> dict[str, str]:
    """Return what the names of a file's folders say (``station=A``)."""
    parts = (part.partition("=") for part in path.parts[:-1] if "=" in part)
    return {unquote(key): unquote(value) for key, _, value in parts}


def _inside(folder: Path) -> list[Path]:
    """Return the Parquet files in a folder and in the folders inside it."""
    result, seen = [], set()
    for where, folders, files in os.walk(folder, followlinks=True):
        real = os.path.realpath(where)
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        result += [Path(where) / name for name in files if Path(name).suffix.lower() in PARQUET]
    if not result:
        raise CommandError(f"There is no Parquet file in the folder {str(folder)!r}: check the path.")
    return sorted(result)


def _parquet_files(patterns: Sequence[str]) -> list[Path]:
    """Return the Parquet files that patterns, paths or folders name, each once."""
    result: list[Path] = []
    for pattern in patterns:
        for match in matches(pattern) or [Path(pattern)]:
            result += _inside(match) if match.is_dir() else find_files([str(match)])
    for path in result:
        if path.suffix.lower() not in PARQUET:
            raise CommandError(f"--memory reads Parquet files, and {str(path)!r} is none: convert it first.")
        if not path.is_file():
            raise CommandError(f"{str(path)!r} leads nowhere: remove it, or bring back what it names.")
    # A file that two patterns name is one file.
    return list({os.path.realpath(path): path for path in result}.values())


def _kind(type_: Any) -> str:
    """Return "number" for an Arrow type that holds numbers, else the type's name."""
    numbers = pa.types.is_integer(type_) or pa.types.is_floating(type_)
    return "number" if numbers or pa.types.is_boolean(type_) else str(type_)


def _check_schemas(files: list[Path], group: str) -> None:
    """Refuse files whose columns differ, as a table of several files does."""
    schemas = [open_parquet(str(path)).schema_arrow for path in files]
    check_same_columns(files, [schema.names for schema in schemas], ignored=group)
    known: dict[str, tuple[str, Path]] = {}
    for path, schema in zip(files, schemas, strict=True):
        for column in schema:
            kind = str(column.type) if column.name == group else _kind(column.type)
            first = known.setdefault(column.name, (kind, path))
            if kind != first[0] and "null" not in (kind, first[0]):
                raise CommandError(
                    f"The column {column.name!r} is {first[0]} in {str(first[1])!r} and {kind} in "
                    f"{str(path)!r}: give it one type."
                )


def _runs(path: str, group: str, stamp: tuple[int, int]) -> Iterator[tuple[str | None, RowBlock]]:
    """Give out the learners of a file and where their rows are, from the column that names them."""
    start, first = 0, 0
    learner: str | None = None
    for batch in open_parquet(path).iter_batches(batch_size=BATCH, columns=[group]):
        names = learner_names(pl.Series(group, batch.column(0)))
        for length, name in names.rle().struct.unnest().iter_rows():
            if start and name != learner:
                yield learner, RowBlock(path, first, start - first, stamp)
                first = start
            learner = name
            start += length
    if start:
        yield learner, RowBlock(path, first, start - first, stamp)


def _pieces(files: list[Path], group: str) -> tuple[dict[str, list[RowBlock]], int]:
    """Return where every learner's rows are, and the number of rows that no learner holds."""
    names = open_parquet(str(files[0])).schema_arrow.names
    by_file = group == FILENAME and FILENAME not in names
    pieces: dict[str, list[RowBlock]] = {}
    nobody = 0
    for path, stem in zip(files, names_of(files), strict=True):
        known = path.stat()
        where, stamp = os.path.abspath(path), (known.st_size, known.st_mtime_ns)
        said = _folders_say(Path(where))
        whole = by_file or group in said
        if whole:
            name = stem if by_file else said[group]
            learner = None if name == NO_ENTRY else name
            result = iter([(learner, RowBlock(where, 0, open_parquet(where).metadata.num_rows, stamp))])
        else:
            check_columns([group], open_parquet(where).schema_arrow.names, "--group")
            result = _runs(where, group, stamp)
        for learner, piece in result:
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


def _looked_at(pieces: dict[str, list[RowBlock]], group: str, columns: Sequence[str]) -> pl.DataFrame:
    """Return rows of some learners, evenly spread among all: from the beginning, the middle and the end."""
    heads = []
    for learner in list(pieces)[:: max(1, len(pieces) // LOOKED_AT)]:
        for piece in dict.fromkeys((pieces[learner][0], pieces[learner][-1])):
            indices = {0, piece.n_rows // 2, max(0, piece.n_rows - ROWS_LOOKED_AT)}
            parts = [piece.part(index, ROWS_LOOKED_AT) for index in sorted(indices)]
            heads.append(read_pieces(learner, parts, columns, group, 3 * ROWS_LOOKED_AT))
    return pl.concat(heads, how="vertical_relaxed")


def _labels(pieces: dict[str, list[RowBlock]], target: str) -> pl.Series:
    """Return the labels of all learners, each once and sorted."""
    parts = []
    for learner, mine in pieces.items():
        total = sum(piece.n_rows for piece in mine)
        column = read_pieces(learner, mine, [target], "learner", total)[target]
        parts.append(labels_of(column).drop_nulls().unique())
    return pl.concat([part for part in parts if len(part)]).unique().sort()


def find_learners(
    patterns: Sequence[str],
    *,
    memory: str,
    target: str,
    group: str,
    features: Sequence[str],
    task: str = REGRESSION,
    **further: Any,
) -> tuple[PreparedRows | StreamedRows, TableRecipe, str]:
    """Find the learners in Parquet files or folders of them; read them all where they fit into the memory.

    The options are those of `prepare`. Learners are named by a column, by a key of the folders' names, or by
    their files (``filename``). Also returns what becomes of the columns, and a name for the results.
    """
    with one_sentence():
        amount = out_of_core.memory_in_bytes(memory)
    files = _parquet_files(patterns)
    _check_schemas(files, group)
    pieces, nobody = _pieces(files, group)
    columns = [name for name in open_parquet(str(files[0])).schema_arrow.names if name != group]
    for names, option in (((target,), "--target"), (features, "--features"), (further["drop"], "--drop")):
        check_columns(names, [*columns, group], option)
    wanted = [name for name in dict.fromkeys([*(features or columns), target]) if name != group]
    stem = "fit" if len(patterns) > 1 or glob.has_magic(patterns[0]) else Path(patterns[0]).stem or "fit"
    decided: dict[str, Any] = {"target": target, "group": group, "features": features, **further}
    decided["task"] = task
    total = sum(piece.n_rows for mine in pieces.values() for piece in mine)
    notes = (f"{nobody} of {total + nobody} rows have no learner ({group!r}) and were left out.",)
    said = notes if nobody else ()
    if 8 * out_of_core.COPIES * len(wanted) * total <= (amount - out_of_core.BASE) // 2:
        frames = [read_pieces(learner, mine, wanted, group, total) for learner, mine in pieces.items()]
        rows, recipe = prepare(pl.concat(frames, how="vertical_relaxed"), **decided)
        return replace(rows, notes=(*said, *rows.notes)), recipe, stem
    looked_at = _looked_at(pieces, group, wanted)
    labels: tuple[Any, ...] = ()
    decided["task"] = task_of(looked_at[target], task)
    if decided["task"] == CLASSIFICATION:
        result = _labels(pieces, target)
        labels = tuple(result.to_list())
        if task == AUTO and result.dtype.is_numeric() and len(labels) > 2:
            decided["task"], labels = REGRESSION, ()
        else:
            said = (said_of(result.to_numpy(), target, task), *said)
    sample = with_target(looked_at, target, classes=bool(labels))
    if not sample.height:
        raise CommandError(f"No row that was looked at has an entry in {target!r}: check the column.")
    _, recipe = prepare(sample, **decided)
    said = (*said, *recipe.notes)
    # A learner may be unlike the rows that were looked at: while all are read, that is no news.
    uncounted = replace(recipe, columns=tuple(replace(plan, counts=None) for plan in recipe.columns))
    sources = {
        learner: ParquetRows(learner, tuple(mine), uncounted, bool(labels))
        for learner, mine in pieces.items()
    }
    return StreamedRows(sources, memory, said, labels), recipe, stem
