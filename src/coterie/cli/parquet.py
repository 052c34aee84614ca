"""One learner's rows in Parquet files, which are read when they are wanted and as many as are wanted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from coterie.cli.errors import CommandError
from coterie.cli.formats import first_line
from coterie.cli.preparing import apply_recipe, target_values
from coterie.cli.tasks import labels_of
from coterie.encoding import TableRecipe

# Rows that are decoded at a time.
BATCH = 2**15


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
