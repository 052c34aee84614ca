"""Learners in Parquet files that are read one by one: a file or a folder each, or files sorted by learner."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote
from zlib import crc32

from coterie.cli.errors import CommandError
from coterie.cli.preparing import apply_recipe, check_columns, prepare
from coterie.cli.reading import FILENAME, PARQUET, find_files, stem_of, wants_filename

if TYPE_CHECKING:
    import polars
    import pyarrow

    from coterie.encoding import TableRecipe
    from coterie.estimators import CoterieRegressor

# What becomes of the columns is decided by the first rows of so many learners.
LOOKED_AT, ROWS_LOOKED_AT = 100, 500
# Rows of a learner in more pieces than this are scattered: reading it would read everything every time.
MOST_PIECES = 16


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

    def tables(self, columns: Sequence[str], share: float = 1.0) -> Iterator[pyarrow.Table]:
        """Give out the rows, row group by row group; of each a random share."""
        import numpy as np

        file = _opened(self.path)
        start = 0
        for group in range(file.num_row_groups):
            stop = start + file.metadata.row_group(group).num_rows
            low, high = max(start, self.first), min(stop, self.first + self.n_rows)
            if low < high:
                table = file.read_row_group(group, columns=list(columns)).slice(low - start, high - low)
                if share < 1:
                    generator = np.random.default_rng([crc32(self.path.encode()), low])
                    count = max(1, int(share * len(table)))
                    table = table.take(np.sort(generator.choice(len(table), count, replace=False)))
                yield table
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
        try:
            frame = _frame(self.learner, self.pieces, [*needed, self.recipe.target], self.recipe.group, most)
            rows = apply_recipe(frame, self.recipe, with_target=True)
        except CommandError as error:
            # No row of this learner can be used, or a file has changed: the fit says so in its own words.
            raise ValueError(f"Learner {self.learner!r}: {error}") from None
        return rows.X, np.asarray(rows.y)


@dataclass(frozen=True)
class StreamedRows:
    """All learners of a fit that reads them one by one.

    Parameters
    ----------
    sources : dict of str to ParquetRows
        The learners.
    recipe : TableRecipe
        What becomes of the columns.
    memory : str
        What the fit may take.
    stem : str
        A name for the results.
    notes : tuple of str
        What was done to the table, in sentences.
    """

    sources: dict[str, ParquetRows]
    recipe: TableRecipe
    memory: str
    stem: str
    notes: tuple[str, ...]

    def fit(self, model: CoterieRegressor) -> list[str]:
        """Fit a model to them; return what is to be said of it."""
        model.fit_sources(self.sources, memory=self.memory)
        there, read = sum(s.n_rows for s in self.sources.values()), int(model.gains_["n_rows"].sum())
        kept = len(model._shaping.y)
        said = [f"{read} of {there} rows were read, learner by learner; {kept} were kept for the clustering."]
        return said if read > kept or there > read else []


def _opened(path: str) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        first = str(error).strip().split("\n")[0].rstrip(".")
        raise CommandError(f"{path!r} cannot be read as Parquet ({first}): write it again.") from None


def _frame(
    learner: str, pieces: Sequence[Piece], columns: Sequence[str], group: str, most: int
) -> polars.DataFrame:
    """Return some columns of a learner's rows as one table, with its id."""
    import polars as pl
    import pyarrow as pa

    share = min(1.0, most / max(1, sum(piece.n_rows for piece in pieces)))
    try:
        tables = [table for piece in pieces for table in piece.tables(columns, share)]
        whole = pl.from_arrow(pa.concat_tables(tables, promote_options="permissive"))
    except (pa.ArrowException, OSError, KeyError) as error:
        first = str(error).strip().split("\n")[0].rstrip(".")
        raise CommandError(f"{pieces[0].path!r} cannot be read ({first}): write it again.") from None
    assert isinstance(whole, pl.DataFrame)
    return whole.with_columns(pl.lit(learner).alias(group))


def _parquet_files(patterns: Sequence[str]) -> list[tuple[Path, dict[str, str]]]:
    """Return the files, and what the names of their folders say (``station=A``)."""
    found: list[tuple[Path, dict[str, str]]] = []
    for pattern in patterns:
        root = Path(pattern)
        if not root.is_dir():
            found += [(path, {}) for path in find_files([pattern])]
            continue
        files = sorted(path for path in root.rglob("*") if path.suffix.lower() in PARQUET)
        if not files:
            raise CommandError(f"There is no Parquet file in the folder {pattern!r}: check the path.")
        for path in files:
            parts = [part.partition("=") for part in path.relative_to(root).parts[:-1] if "=" in part]
            found.append((path, {unquote(key): unquote(value) for key, _, value in parts}))
    for path, _ in found:
        if path.suffix.lower() not in PARQUET:
            raise CommandError(f"--memory reads Parquet files, and {str(path)!r} is none: convert it first.")
    return found


def _runs(path: str, group: str, stamp: tuple[int, int]) -> Iterator[tuple[str, Piece]]:
    """Give out the learners of a file and where their rows are, from the column that names them."""
    import polars as pl

    file = _opened(path)
    check_columns([group], file.schema_arrow.names, "--group")
    start, learner, first = 0, None, 0
    for batch in file.iter_batches(batch_size=2**20, columns=[group]):
        names = pl.Series(batch.column(0)).cast(pl.String).fill_null("")
        lengths = names.rle().struct.unnest()
        for length, name in lengths.iter_rows():
            if name != learner:
                if learner:
                    yield learner, Piece(path, first, start - first, stamp)
                learner, first = name, start
            start += length
    if learner:
        yield learner, Piece(path, first, start - first, stamp)


def _pieces(patterns: Sequence[str], group: str) -> dict[str, list[Piece]]:
    pieces: dict[str, list[Piece]] = {}
    by_file = wants_filename(group)
    for path, folders in _parquet_files(patterns):
        known = path.stat()
        stamp = known.st_size, known.st_mtime_ns
        if by_file or group in folders:
            learner = stem_of(path) if by_file else folders[group]
            whole = Piece(str(path), 0, _opened(str(path)).metadata.num_rows, stamp)
            found = [(learner, whole)] if whole.n_rows else []
        else:
            found = list(_runs(str(path), group, stamp))
        for learner, piece in found:
            pieces.setdefault(learner, []).append(piece)
            if len(pieces[learner]) > MOST_PIECES and not folders:
                raise CommandError(
                    f"The rows of learner {learner!r} lie in more than {MOST_PIECES} places: sort the files "
                    f"by {group!r}, or write a file or a folder for each learner."
                )
    if not pieces:
        raise CommandError("The files have no rows: check that they are the right ones.")
    return pieces


def _looked_at(pieces: dict[str, list[Piece]], group: str, columns: Sequence[str]) -> polars.DataFrame:
    """Return the first rows of some learners, evenly spread among all."""
    import polars as pl

    chosen = list(pieces)[:: max(1, len(pieces) // LOOKED_AT)]
    heads = []
    for learner in chosen:
        first = pieces[learner][0]
        head = Piece(first.path, first.first, min(first.n_rows, ROWS_LOOKED_AT), first.stamp)
        heads.append(_frame(learner, [head], columns, group, ROWS_LOOKED_AT))
    return pl.concat(heads, how="vertical_relaxed")


def find_learners(
    patterns: Sequence[str],
    *,
    target: str,
    group: str,
    features: Sequence[str],
    drop: Sequence[str],
    memory: str,
) -> StreamedRows:
    """Find the learners in Parquet files, and decide what becomes of the columns by some of their rows.

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
    StreamedRows
        For the fit.
    """
    from coterie._streaming import memory_in_bytes

    try:
        memory_in_bytes(memory)
    except ValueError as error:
        raise CommandError(str(error)) from None
    pieces = _pieces(patterns, group)
    columns = [n for n in _opened(next(iter(pieces.values()))[0].path).schema_arrow.names if n != group]
    for names, option in (((target,), "--target"), (features, "--features"), (drop, "--drop")):
        check_columns(names, [*columns, group], option)
    by_file = wants_filename(group)
    wanted = list(dict.fromkeys([*(features or columns), target]))
    sample = _looked_at(pieces, FILENAME if by_file else group, wanted)
    rows, recipe = prepare(sample, target=target, group=group, features=features, drop=drop, by_file=by_file)
    sources = {learner: ParquetRows(learner, tuple(mine), recipe) for learner, mine in pieces.items()}
    return StreamedRows(sources, recipe, memory, Path(patterns[0]).stem or "fit", rows.notes)
