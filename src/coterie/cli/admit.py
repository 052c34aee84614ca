"""``coterie admit``: where newcomers belong."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

import coterie
from coterie.cli.errors import disk_errors, one_sentence
from coterie.cli.files import find_files, find_model
from coterie.cli.options import AsJson, Decimal, Delimiter, Encoding, ReplaceFile, Strict
from coterie.cli.printing import say_notes, tell, tell_json
from coterie.cli.progress import gathered_warnings

_ERRORS = ("error_alone", "error_with", "error_all")
_PRINTED_COLUMNS = ("learner", "cluster", "n_rows", *_ERRORS, "gain", "verdict", "reason")


def admit(
    model: Annotated[
        str, Argument(metavar="MODEL", help="This is the folder of a fit, or its file model.coterie.")
    ],
    tables: Annotated[
        list[str], Argument(metavar="TABLE...", help="These files hold the newcomers' rows, with the target.")
    ],
    out: Annotated[
        str | None, Option(help="Write a model that knows the newcomers, too, to this file.")
    ] = None,
    strict: Strict = False,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    encoding: Encoding = "utf-8",
    as_json: AsJson = False,
    force: ReplaceFile = False,
) -> None:
    """Place new learners into the coteries of a model, without fitting it again."""
    model = find_model(model)
    find_files(tables)
    from coterie.cli.models import check_file, open_with_rows
    from coterie.cli.summary import show_rows
    from coterie.summary import table_rows

    if out is not None:
        check_file(Path(out), force=force)
    text_options: dict[str, Any] = {"delimiter": delimiter, "encoding": encoding, "decimal": decimal}
    fitted, _, rows = open_with_rows(model, tables, with_target=True, **text_options)
    notes = list(rows.notes)
    with one_sentence(), gathered_warnings(notes, strict=strict):
        labels = fitted.admit(rows.X, rows.y, groups=rows.groups)
    # Newcomers are the last ones in the table of gains.
    rows_of_newcomers = table_rows({name: column[-len(labels) :] for name, column in fitted.gains_.items()})
    if out is not None:
        with disk_errors(Path(out)):
            coterie.save(fitted, out)
    if as_json:
        tell_json({"newcomers": rows_of_newcomers, "notes": notes, "out": out})
        return
    say_notes(notes)
    show_rows([name for name in _PRINTED_COLUMNS if name in rows_of_newcomers[0]], rows_of_newcomers)
    if out is not None:
        tell(f"The model that knows them is {out}")
