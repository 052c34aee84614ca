"""Models from files, and single files written whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from coterie._files import write_bytes
from coterie.cli.errors import CommandError
from coterie.cli.folders import disk_error
from coterie.cli.reading import read_tables

if TYPE_CHECKING:
    import polars

    from coterie.encoding import TableRecipe
    from coterie.regressor import CoterieRegressor


def open_model(path: str, notes: list[str]) -> CoterieRegressor:
    """Load a model; warnings go to the notes."""
    import coterie
    from coterie.cli.progress import gathered_warnings

    try:
        with gathered_warnings(notes):
            return coterie.load(path)
    # A file that is not whole, not ours, or not there: each has its own sentence.
    except (ValueError, OSError) as error:
        raise CommandError(str(error)) from None


def recipe_of(model: CoterieRegressor, path: str) -> TableRecipe:
    """Return how tables become rows of this model."""
    recipe: TableRecipe | None = getattr(model, "table_", None)
    if recipe is None:
        raise CommandError(
            f"The model {path!r} does not know which column is what, for it was not made by `coterie fit`: "
            "use coterie.load in Python."
        )
    return recipe


def read_for(
    recipe: TableRecipe, tables: list[str], delimiter: str | None, encoding: str
) -> polars.DataFrame:
    """Read tables for a model whose learners may be named by files."""
    return read_tables(tables, delimiter=delimiter, encoding=encoding, with_filename=recipe.by_file)


def check_file(path: Path, *, force: bool) -> None:
    """Refuse to overwrite a file, and to write where there is no folder."""
    if path.is_dir():
        raise CommandError(f"{str(path)!r} is a folder: give --out the name of a file.")
    if path.exists() and not force:
        raise CommandError(f"The file {str(path)!r} exists: give --out another name, or pass --force.")
    if not path.resolve().parent.is_dir():
        raise CommandError(f"There is no folder {str(path.parent)!r}: make it, or give --out another place.")


def write_file(path: Path, content: bytes) -> None:
    """Write a file whole or not at all; a link keeps pointing where it points."""
    try:
        write_bytes(path.resolve(), content)
    except OSError as error:
        raise disk_error(error, path) from error
