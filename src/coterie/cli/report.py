"""``coterie report``: the page of a model that is a file."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from typer import Option

import coterie
from coterie.cli.errors import CommandError, disk_errors
from coterie.cli.options import Model, ReplaceFile
from coterie.cli.printing import say_notes, tell


def check_report() -> None:
    """Refuse a page that could not be written, before the work that it would be about."""
    lacking = [name for name in ("plotly", "jinja2") if find_spec(name) is None]
    if lacking:
        raise CommandError(
            f"The report page needs {lacking[0]}: install coterie[report], or leave it out with --no-report."
        )


def report(
    model: Model,
    out: Annotated[str, Option(help="File for the page.")] = "report.html",
    force: ReplaceFile = False,
) -> None:
    """Write the report page of a model."""
    from coterie.cli.models import check_file, open_model

    check_report()
    check_file(Path(out), force=force)
    notes: list[str] = []
    fitted = open_model(model, notes)
    say_notes(notes)
    with disk_errors(Path(out)):
        coterie.Report(fitted).write_html(out)
    tell(out)
