"""``coterie predict``: each row by the coterie of the learner who holds it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coterie.cli.errors import CommandError
from coterie.cli.printing import tell

if TYPE_CHECKING:
    import polars


def _from_model(
    model: str, tables: list[str], delimiter: str | None, encoding: str
) -> tuple[polars.DataFrame, list[str]]:
    """Return the predictions of a fitted model beside the learners, and notes."""
    import numpy as np
    import polars as pl

    from coterie.cli.models import open_model, read_for, recipe_of
    from coterie.cli.preparing import apply_recipe

    notes: list[str] = []
    fitted = open_model(model, notes)
    recipe = recipe_of(fitted, model)
    frame = read_for(recipe, tables, delimiter, encoding)
    rows = apply_recipe(frame, recipe, with_target=False)
    try:
        predicted = fitted.predict(rows.X, groups=rows.groups)
    except ValueError as error:
        raise CommandError(str(error).replace("use admit", "use `coterie admit`")) from None
    predictions = np.full(frame.height, np.nan)
    predictions[rows.kept] = predicted
    column = "prediction" if recipe.group != "prediction" else "predicted"
    answer = pl.DataFrame([frame[recipe.group], pl.Series(column, predictions, nan_to_null=True)])
    return answer, [*notes, *rows.notes]


def _from_folder(
    folder: str, name: str, known_keys: str | None, frame: polars.DataFrame
) -> tuple[polars.DataFrame, list[str]]:
    """Return the predictions of a site's coterie, and notes."""
    import numpy as np
    import polars as pl

    from coterie.cli.sites import one_sentence, open_folder, site_rows
    from coterie.federated import predict as predict_together

    if not name:
        raise CommandError("--name is missing: say whose coterie predicts, as in --name SITE.")
    with one_sentence():
        contents = open_folder(folder, known_keys).read()
        why = next((w for n, w in contents.troubles.items() if n.startswith("conclusion")), None)
        if contents.conclusion is None and why is not None:
            raise CommandError(f"The conclusion of the folder cannot be used: conclude again. {why}")
        if contents.conclusion is None:
            raise CommandError("The folder has no conclusion yet: run `coterie conclude` first.")
        weights = contents.conclusion.weights(name)
        mine = contents.share_of(name)
        members = [share for share in contents.shares if share.site in weights]
        for share in members:
            if share.sha != contents.conclusion.models[share.site]:
                raise CommandError(f"{share.site!r} has shared another model since: conclude again.")
        rows = site_rows(frame, None, mine.columns, what="a predictor of the model")
        predictions = np.full(frame.height, np.nan)
        predictions[rows.kept] = predict_together(rows.X, name, members, weights)
    return pl.DataFrame([pl.Series("prediction", predictions, nan_to_null=True)]), list(rows.notes)


def predict(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL", help="A model.coterie of `coterie fit`, or a concluded sealed folder."
        ),
    ],
    tables: Annotated[
        list[str], typer.Argument(metavar="TABLE...", help="Files with the columns of the fit.")
    ],
    out: Annotated[str | None, typer.Option(help="CSV file for the predictions; default: stdout.")] = None,
    delimiter: Annotated[str | None, typer.Option(help="Of text files; default: by suffix.")] = None,
    encoding: Annotated[str, typer.Option(help="Of text files.")] = "utf-8",
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    name: Annotated[str, typer.Option(help="With a sealed folder: the site whose coterie predicts.")] = "",
    known_keys: Annotated[
        str | None, typer.Option(metavar="FILE", help="With a sealed folder: accept these keys only.")
    ] = None,
) -> None:
    """Predict the rows of a table, in its order; rows without a learner have no prediction."""
    from coterie.cli.models import check_file, write_file
    from coterie.cli.progress import say
    from coterie.cli.reading import read_tables
    from coterie.cli.spreadsheets import write_csv

    if out is not None:
        check_file(Path(out), force=force)
    if Path(model).is_dir():
        frame = read_tables(tables, delimiter=delimiter, encoding=encoding)
        answer, notes = _from_folder(model, name, known_keys, frame)
    else:
        answer, notes = _from_model(model, tables, delimiter, encoding)
    for note in notes:
        say(f"Note: {note}")
    content = write_csv(answer)
    if out is not None:
        write_file(Path(out), content)
    elif sys.stdout.isatty():
        for line in content.decode().removesuffix("\n").split("\n"):
            tell(line)
    else:
        # Not by typer, which would take out what looks like a colour.
        sys.stdout.buffer.write(content)
        sys.stdout.flush()
