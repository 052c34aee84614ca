"""``coterie admit``: where newcomers belong."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coterie.cli.errors import disk_errors, one_sentence
from coterie.cli.models import check_file, open_with_rows
from coterie.cli.options import AsJson, Delimiter, Encoding, ReplaceFile
from coterie.cli.printing import say_notes, tell, tell_json
from coterie.cli.progress import gathered_warnings

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
    delimiter: Delimiter = None,
    encoding: Encoding = "utf-8",
    as_json: AsJson = False,
    force: ReplaceFile = False,
) -> None:
    """Place new learners into the coteries of a model, without fitting it again."""
    import coterie

    if out is not None:
        check_file(Path(out), force=force)
    fitted, _, rows = open_with_rows(model, tables, with_target=True, delimiter=delimiter, encoding=encoding)
    notes = list(rows.notes)
    with one_sentence(), gathered_warnings(notes):
        labels = fitted.admit(rows.X, rows.y, groups=rows.groups)
    placed = _placed(fitted, len(labels))
    if out is not None:
        with disk_errors(Path(out)):
            coterie.save(fitted, out)
    if as_json:
        tell_json({"newcomers": placed, "notes": notes, "out": out})
        return
    say_notes(notes)
    _show(placed)
    if out is not None:
        tell(f"The model that knows them is {out}")
