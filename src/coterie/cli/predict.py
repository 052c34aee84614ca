"""``coterie predict``: each row by the coterie of the learner who holds it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from coterie.cli.errors import CommandError


def predict(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model.coterie of `coterie fit`.")],
    tables: Annotated[
        list[str], typer.Argument(metavar="TABLE...", help="Files with the columns of the fit.")
    ],
    out: Annotated[str | None, typer.Option(help="CSV file for the predictions; default: stdout.")] = None,
    delimiter: Annotated[str | None, typer.Option(help="Of text files; default: by suffix.")] = None,
    encoding: Annotated[str, typer.Option(help="Of text files.")] = "utf-8",
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Predict the rows of a table, in its order; rows without a learner have no prediction."""
    import numpy as np
    import polars as pl

    from coterie.cli.models import check_file, open_model, read_for, recipe_of, write_file
    from coterie.cli.preparing import apply_recipe
    from coterie.cli.progress import say

    if out is not None:
        check_file(Path(out), force=force)
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
    for note in (*notes, *rows.notes):
        say(f"Note: {note}")
    if out is None:
        typer.echo(answer.write_csv(), nl=False)
    else:
        write_file(Path(out), answer.write_csv().encode())
