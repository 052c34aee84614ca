"""``coterie admit``: where newcomers belong."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coterie.cli.errors import CommandError
from coterie.cli.printing import tell

if TYPE_CHECKING:
    from coterie.regressor import CoterieRegressor

_ERRORS = ("error_alone", "error_with", "error_all")
_SHOWN = ("learner", "cluster", "n_rows", *_ERRORS, "gain", "verdict", "reason")


def _placed(model: CoterieRegressor, n_newcomers: int) -> list[dict[str, Any]]:
    """Return the rows of the newcomers in the table of gains, which are its last ones."""
    from coterie.summary import table_rows

    gains = {name: column[-n_newcomers:] for name, column in model.gains_.items()}
    return table_rows(gains)


def _show(placed: list[dict[str, Any]]) -> None:
    from coterie.cli.summary import make_console, rows_grid

    console = make_console(sys.stdout)
    console.print(rows_grid([name for name in _SHOWN if name in placed[0]], placed))


def admit(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model.coterie of `coterie fit`.")],
    tables: Annotated[
        list[str], typer.Argument(metavar="TABLE...", help="Files with the newcomers' rows, target included.")
    ],
    out: Annotated[str | None, typer.Option(help="File for a model that knows the newcomers, too.")] = None,
    delimiter: Annotated[str | None, typer.Option(help="Of text files; default: by suffix.")] = None,
    encoding: Annotated[str, typer.Option(help="Of text files.")] = "utf-8",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Place new learners into the coteries of a model, without fitting it again."""
    import coterie
    from coterie.cli.folders import disk_error
    from coterie.cli.models import check_file, open_model, read_for, recipe_of
    from coterie.cli.preparing import apply_recipe
    from coterie.cli.progress import gathered_warnings, say

    if out is not None:
        check_file(Path(out), force=force)
    notes: list[str] = []
    fitted = open_model(model, notes)
    recipe = recipe_of(fitted, model)
    rows = apply_recipe(read_for(recipe, tables, delimiter, encoding), recipe, with_target=True)
    notes.extend(rows.notes)
    try:
        with gathered_warnings(notes):
            labels = fitted.admit(rows.X, rows.y, groups=rows.groups)
    except ValueError as error:
        raise CommandError(str(error)) from None
    placed = _placed(fitted, len(labels))
    if out is not None:
        try:
            coterie.save(fitted, out)
        except OSError as error:
            raise disk_error(error, Path(out)) from error
    if as_json:
        typer.echo(json.dumps({"newcomers": placed, "notes": notes, "out": out}))
        return
    for note in notes:
        say(f"Note: {note}")
    _show(placed)
    if out is not None:
        tell(f"The model that knows them is {out}")
