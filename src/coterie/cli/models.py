"""Models from files, and single files written whole or not at all."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

import coterie
from coterie._files import write_bytes
from coterie.classifier import CoterieClassifier
from coterie.cli.errors import CommandError, disk_errors
from coterie.cli.preparing import PreparedRows, apply_recipe
from coterie.cli.progress import gathered_warnings
from coterie.cli.reading import read_tables
from coterie.estimator import CoterieEstimator


def open_model(path: str, notes: list[str]) -> CoterieEstimator:
    """Load a model from a file; its warnings are added to ``notes``, its errors become one sentence."""
    try:
        with gathered_warnings(notes):
            model: CoterieEstimator = coterie.load(path)
            return model
    # A file that is not whole, not ours, or not there: each has its own sentence.
    except (ValueError, OSError) as error:
        raise CommandError(str(error)) from None


def open_with_rows(
    path: str, tables: list[str], *, with_target: bool, **text: Any
) -> tuple[CoterieEstimator, pl.DataFrame, PreparedRows]:
    """Load a model of `coterie fit`; return it with a table and its rows, whose notes include the model's.

    ``with_target``: rows without a target are left out. ``text`` says how text files are written; see
    `read_tables`. A recipe in the model says which columns are target, group and predictors.
    """
    notes: list[str] = []
    model = open_model(path, notes)
    recipe = getattr(model, "table_", None)
    if recipe is None or not (recipe.target and recipe.group):
        raise CommandError(
            f"The model {path!r} does not know which column is what, for it was not made by `coterie fit`: "
            "use coterie.load in Python."
        )
    frame = read_tables(tables, ids=[recipe.group], with_filename=recipe.by_file, **text)
    classes = isinstance(model, CoterieClassifier)
    time = model.record_.options.time
    time = time if with_target and isinstance(time, str) else None
    rows = apply_recipe(frame, recipe, with_target=with_target, classes=classes, time=time)
    return model, frame, replace(rows, notes=(*notes, *rows.notes))


def check_file(path: Path, *, force: bool, option: str = "--out") -> None:
    """Refuse to overwrite a file, unless ``force``, and to write where there is no folder."""
    if path.is_dir():
        raise CommandError(f"{str(path)!r} is a folder: give {option} the name of a file.")
    if path.exists() and not path.is_file():
        raise CommandError(f"{str(path)!r} is a device or a pipe: give {option} the name of a file.")
    if os.path.lexists(path) and not force:
        raise CommandError(f"The file {str(path)!r} exists: give {option} another name, or pass --force.")
    if not path.resolve().parent.is_dir():
        raise CommandError(
            f"There is no folder {str(path.parent)!r}: make it, or give {option} another place."
        )


def write_file(path: Path, content: bytes) -> None:
    """Write a file whole or not at all; a link keeps pointing where it points."""
    with disk_errors(path):
        write_bytes(path.resolve(), content)
