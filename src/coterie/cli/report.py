"""``coterie report``: the page of a model that is a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from coterie.cli.errors import CommandError
from coterie.cli.printing import tell


def check_report() -> None:
    """Refuse a page that could not be written, before the work that it would be about."""
    from importlib.util import find_spec

    lacking = [name for name in ("plotly", "jinja2") if find_spec(name) is None]
    if lacking:
        raise CommandError(
            f"The report page needs {lacking[0]}: install coterie[report], or leave it out with --no-report."
        )


def report(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model.coterie.")],
    out: Annotated[str, typer.Option(help="File for the page.")] = "report.html",
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Write the report page of a model."""
    import coterie
    from coterie.cli.folders import disk_error
    from coterie.cli.models import check_file, open_model
    from coterie.cli.progress import say

    check_report()
    check_file(Path(out), force=force)
    notes: list[str] = []
    fitted = open_model(model, notes)
    for note in notes:
        say(f"Note: {note}")
    try:
        coterie.Report(fitted).write_html(out)
    except OSError as error:
        raise disk_error(error, Path(out)) from error
    tell(out)
