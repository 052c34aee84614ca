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
        """Return the block of up to ``n_rows`` of these rows, from the row ``first`` of them on."""
        return RowBlock(self.path, self.first + first, min(n_rows, self.n_rows - first), self.stamp)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of this block as record batches of some columns, in their order.

        A Parquet file is stored in row groups, parts that are decoded by themselves. Groups without rows of
        the block are skipped, and batches at its edges are cut; all positions count rows of the file.
        """
        file = open_parquet(self.path)
        end_of_block, group_start = self.first + self.n_rows, 0
        for row_group in range(file.num_row_groups):
            group_end = group_start + file.metadata.row_group(row_group).num_rows
            if group_start < end_of_block and group_end > self.first:
                batch_start = group_start
                for batch in file.iter_batches(BATCH, row_groups=[row_group], columns=list(columns)):
                    first_wanted, end_wanted = (
                        max(batch_start, self.first),
                        min(batch_start + len(batch), end_of_block),
                    )
                    if first_wanted < end_wanted:
                        yield batch.slice(first_wanted - batch_start, end_wanted - first_wanted)
                    batch_start += len(batch)
                    if batch_start >= end_of_block:
                        break
            group_start = group_end


def read_pieces(
    learner: str, pieces: Sequence[RowBlock], columns: Sequence[str], group: str, most: int
) -> pl.DataFrame:
    """Return some columns of a learner's rows as one table, with its id in the column ``group``.

    ``pieces`` are where the rows lie. Of more than ``most`` rows, as many are drawn at random, with a seed
    from the learner's id: every reading draws the same rows.
    """
    n_rows = sum(piece.n_rows for piece in pieces)
    generator = np.random.default_rng(crc32(learner.encode("utf-8", "surrogatepass")))
    # A file of a few bytes may hold any number of equal rows: count them before they are numbered.
    all_fit = n_rows <= most
    positions = np.arange(n_rows) if all_fit else np.sort(generator.choice(n_rows, most, replace=False))
    tables, batch_start = [], 0
    try:
        for batch in (batch for piece in pieces for batch in piece.batches(columns)):
            positions_in_batch = (
                positions[(positions >= batch_start) & (positions < batch_start + len(batch))] - batch_start
            )
            if len(positions_in_batch):
                decoded = pl.from_arrow(pa.Table.from_batches([batch]))
                assert isinstance(decoded, pl.DataFrame)
                # Taken, not sliced: a slice would keep all that was decoded with it.
                tables.append(decoded[positions_in_batch])
            batch_start += len(batch)
        table = pl.concat(tables, how="vertical_relaxed")
    except (pa.ArrowException, pl.exceptions.PolarsError, OSError, KeyError, ValueError) as error:
        where = pieces[0].path
        raise CommandError(f"{where!r} cannot be read ({first_line(error)}): write it again.") from None
    return table.with_columns(pl.lit(learner).alias(group))


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
        """Return the learner's predictors (n, p), as numbers, and response (n,), at most ``most`` rows.

        Rows without a response are left out, so that there may be fewer, or none.
        """
        needed = [plan.name for plan in self.recipe.columns if plan.kind != "left out"]
        columns = list(dict.fromkeys([*needed, self.recipe.target]))
        try:
            frame = read_pieces(self.learner, self.pieces, columns, self.recipe.group, most)
            rows_with_target = with_target(frame, self.recipe.target, classes=self.classes)
            if not rows_with_target.height:
                return self.recipe.encoder.transform(frame.select(needed).head(1)).head(0), np.zeros(0)
            rows = apply_recipe(rows_with_target, self.recipe, with_target=True, classes=self.classes)
        except CommandError as error:
            raise ValueError(f"Learner {self.learner!r}: {error}") from None
        return self.recipe.encoder.transform(rows.X), np.asarray(rows.y)


def _folders_say(path: Path) -> dict[str, str]:
    """Return the keys and values in the names of a file's folders, as in ``station=A`` (Hive partitions)."""
    parts = (part.partition("=") for part in path.parts[:-1] if "=" in part)
    return {unquote(key): unquote(value) for key, _, value in parts}


def _inside(folder: Path) -> list[Path]:
    """Return the Parquet files in a folder and in the folders inside it, sorted.

    Links are followed, but a folder is entered once: a link to a folder above it would have no end.
    """
    parquet_files, real_paths_seen = [], set()
    for path, folders, files in os.walk(folder, followlinks=True):
        real_path = os.path.realpath(path)
        if real_path in real_paths_seen:
            folders.clear()
            continue
        real_paths_seen.add(real_path)
        parquet_files += [Path(path) / name for name in files if Path(name).suffix.lower() in PARQUET]
    if not parquet_files:
        raise CommandError(f"There is no Parquet file in the folder {str(folder)!r}: check the path.")
    return sorted(parquet_files)


def _parquet_files(patterns: Sequence[str]) -> list[Path]:
    """Return the Parquet files that patterns, paths or folders name, each once.

    Files of other formats and links to nothing are refused: only Parquet can be read in parts.
    """
    parquet_files: list[Path] = []
    for pattern in patterns:
        for match in matches(pattern) or [Path(pattern)]:
            parquet_files += _inside(match) if match.is_dir() else find_files([str(match)])
    for path in parquet_files:
        if path.suffix.lower() not in PARQUET:
            raise CommandError(f"--memory reads Parquet files, and {str(path)!r} is none: convert it first.")
        if not path.is_file():
            raise CommandError(f"{str(path)!r} leads nowhere: remove it, or bring back what it names.")
    # A file that two patterns name is one file.
    return list({os.path.realpath(path): path for path in parquet_files}.values())


def _kind(type_: Any) -> str:
    """Return "number" for an Arrow type that holds numbers, else the type's name."""
    numbers = pa.types.is_integer(type_) or pa.types.is_floating(type_)
    return "number" if numbers or pa.types.is_boolean(type_) else str(type_)


def _check_schemas(files: list[Path], group: str) -> None:
    """Refuse Parquet files whose columns have different names or types, as a table of all would.

    Numbers of all kinds are one type. The column ``group`` may be missing, for folders may name the
    learners.
    """
    schemas = [open_parquet(str(path)).schema_arrow for path in files]
    check_same_columns(files, [schema.names for schema in schemas], ignored=group)
    kind_and_path: dict[str, tuple[str, Path]] = {}
    for path, schema in zip(files, schemas, strict=True):
        for column in schema:
            kind = str(column.type) if column.name == group else _kind(column.type)
            earlier = kind_and_path.setdefault(column.name, (kind, path))
            if kind != earlier[0] and "null" not in (kind, earlier[0]):
                raise CommandError(
                    f"The column {column.name!r} is {earlier[0]} in {str(earlier[1])!r} and {kind} in "
                    f"{str(path)!r}: give it one type."
                )


def _runs(path: str, group: str, stamp: tuple[int, int]) -> Iterator[tuple[str | None, RowBlock]]:
    """Yield (learner, block of rows) for each run of equal entries in the column ``group`` of a file.

    The file is read batch by batch. A run may go on in the next batch, so that a block is yielded when
    another learner begins. A row without learner has None. ``stamp`` is the file's size and time of change.
    """
    n_rows_read, run_start = 0, 0
    learner: str | None = None
    for batch in open_parquet(path).iter_batches(batch_size=BATCH, columns=[group]):
        learner_column = learner_names(pl.Series(group, batch.column(0)))
        for run_length, name in learner_column.rle().struct.unnest().iter_rows():
            if n_rows_read and name != learner:
                yield learner, RowBlock(path, run_start, n_rows_read - run_start, stamp)
                run_start = n_rows_read
            learner = name
            n_rows_read += run_length
    if n_rows_read:
        yield learner, RowBlock(path, run_start, n_rows_read - run_start, stamp)


def _pieces(files: list[Path], group: str) -> tuple[dict[str, list[RowBlock]], int]:
    """Return every learner's blocks of rows by its id, and the number of rows without a learner.

    Learners are named by their file, by a key of the folders' names, or by the column ``group``. With a
    column, rows of one learner in more than `MOST_PIECES` blocks are refused, for reading them would read
    the files again and again.
    """
    names = open_parquet(str(files[0])).schema_arrow.names
    named_by_file = group == FILENAME and FILENAME not in names
    pieces: dict[str, list[RowBlock]] = {}
    n_without_learner = 0
    for path, stem in zip(files, names_of(files), strict=True):
        file_status = path.stat()
        absolute_path, stamp = os.path.abspath(path), (file_status.st_size, file_status.st_mtime_ns)
        folder_keys = _folders_say(Path(absolute_path))
        one_learner_per_file = named_by_file or group in folder_keys
        if one_learner_per_file:
            name = stem if named_by_file else folder_keys[group]
            learner = None if name == NO_ENTRY else name
            learners_and_blocks = iter(
                [(learner, RowBlock(absolute_path, 0, open_parquet(absolute_path).metadata.num_rows, stamp))]
            )
        else:
            check_columns([group], open_parquet(absolute_path).schema_arrow.names, "--group")
            learners_and_blocks = _runs(absolute_path, group, stamp)
        for learner, block in learners_and_blocks:
            if learner is None:
                n_without_learner += block.n_rows
                continue
            blocks = pieces.setdefault(learner, [])
            blocks.extend([block] if block.n_rows else [])
            if len(blocks) > MOST_PIECES and not one_learner_per_file:
                raise CommandError(
                    f"The rows of learner {learner!r} lie in more than {MOST_PIECES} places: sort the files "
                    f"by {group!r}, or write a file or a folder for each learner."
                )
    pieces = {learner: blocks for learner, blocks in pieces.items() if blocks}
    if not pieces:
        raise CommandError("The files have no rows: check that they are the right ones.")
    return pieces, n_without_learner


def _looked_at(pieces: dict[str, list[RowBlock]], group: str, columns: Sequence[str]) -> pl.DataFrame:
    """Return rows of about `LOOKED_AT` learners, evenly spread: from beginning, middle and end of their rows.

    They decide how columns become numbers where not all rows fit into memory. Rows in all places, for files
    are often sorted.
    """
    samples = []
    for learner in list(pieces)[:: max(1, len(pieces) // LOOKED_AT)]:
        for block in dict.fromkeys((pieces[learner][0], pieces[learner][-1])):
            first_rows = {0, block.n_rows // 2, max(0, block.n_rows - ROWS_LOOKED_AT)}
            samples_of_block = [block.part(first_row, ROWS_LOOKED_AT) for first_row in sorted(first_rows)]
            samples.append(read_pieces(learner, samples_of_block, columns, group, 3 * ROWS_LOOKED_AT))
    return pl.concat(samples, how="vertical_relaxed")


def _labels(pieces: dict[str, list[RowBlock]], target: str) -> pl.Series:
    """Return the labels of a target over all rows of all learners, each once and sorted."""
    labels_of_learners = []
    for learner, blocks in pieces.items():
        n_rows = sum(piece.n_rows for piece in blocks)
        column = read_pieces(learner, blocks, [target], "learner", n_rows)[target]
        labels_of_learners.append(labels_of(column).drop_nulls().unique())
    return pl.concat([part for part in labels_of_learners if len(part)]).unique().sort()


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
    """Find the learners in Parquet files or folders, and read all rows if they fit into half of the memory.

    Otherwise rows of some learners decide how columns become numbers, and each learner is read when it is
    wanted. ``memory`` is a text such as 2GiB, the other options are those of `prepare`. Learners are named by
    a column, by a key of the folders' names, or by their files (``filename``).

    Returns the rows (or where they are), what becomes of the columns, and a name for the results.
    """
    with one_sentence():
        memory_bytes = out_of_core.memory_in_bytes(memory)
    files = _parquet_files(patterns)
    _check_schemas(files, group)
    blocks_of, n_without_learner = _pieces(files, group)
    columns = [name for name in open_parquet(str(files[0])).schema_arrow.names if name != group]
    for names, option in (((target,), "--target"), (features, "--features"), (further["drop"], "--drop")):
        check_columns(names, [*columns, group], option)
    columns_to_read = [name for name in dict.fromkeys([*(features or columns), target]) if name != group]
    name_of_results = (
        "fit" if len(patterns) > 1 or glob.has_magic(patterns[0]) else Path(patterns[0]).stem or "fit"
    )
    options: dict[str, Any] = {"target": target, "group": group, "features": features, **further}
    options["task"] = task
    n_rows = sum(block.n_rows for blocks in blocks_of.values() for block in blocks)
    note_on_learners = (
        f"{n_without_learner} of {n_rows + n_without_learner} rows have no learner ({group!r}) "
        "and were left out.",
    )
    all_notes = note_on_learners if n_without_learner else ()
    if 8 * out_of_core.COPIES * len(columns_to_read) * n_rows <= (memory_bytes - out_of_core.BASE) // 2:
        frames = [
            read_pieces(learner, blocks, columns_to_read, group, n_rows)
            for learner, blocks in blocks_of.items()
        ]
        rows, recipe = prepare(pl.concat(frames, how="vertical_relaxed"), **options)
        return replace(rows, notes=(*all_notes, *rows.notes)), recipe, name_of_results
    sample_of_learners = _looked_at(blocks_of, group, columns_to_read)
    labels: tuple[Any, ...] = ()
    options["task"] = task_of(sample_of_learners[target], task)
    if options["task"] == CLASSIFICATION:
        all_labels = _labels(blocks_of, target)
        labels = tuple(all_labels.to_list())
        if task == AUTO and all_labels.dtype.is_numeric() and len(labels) > 2:
            options["task"], labels = REGRESSION, ()
        else:
            all_notes = (said_of(all_labels.to_numpy(), target, task), *all_notes)
    sample = with_target(sample_of_learners, target, classes=bool(labels))
    if not sample.height:
        raise CommandError(f"No row that was looked at has an entry in {target!r}: check the column.")
    _, recipe = prepare(sample, **options)
    all_notes = (*all_notes, *recipe.notes)
    # A learner may be unlike the rows that were looked at: while all are read, that is no news.
    recipe_without_counts = replace(
        recipe, columns=tuple(replace(plan, counts=None) for plan in recipe.columns)
    )
    sources = {
        learner: ParquetRows(learner, tuple(blocks), recipe_without_counts, bool(labels))
        for learner, blocks in blocks_of.items()
    }
    return StreamedRows(sources, memory, all_notes, labels), recipe, name_of_results
