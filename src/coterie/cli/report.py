"""``coterie report``: the page of a model that is a file, or of what sites concluded."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

import coterie
from coterie._files import write_bytes
from coterie.cli.errors import CommandError, disk_errors, one_sentence
from coterie.cli.files import find_model
from coterie.cli.options import Concluder, Folder, KnownKeys, ReplaceFile
from coterie.cli.printing import say, say_notes, tell

if TYPE_CHECKING:
    from coterie.federated import Conclusion

PAGE = "report.html"


def _lacking() -> str | None:
    """Say which package a page lacks, and the extra that has it; None if it can be made."""
    said = "The report page needs jinja2: install coterie's extra 'report'"
    return None if find_spec("jinja2") else said


def check_report() -> None:
    """Refuse a page that could not be written, before the work that it would be about."""
    if lacking := _lacking():
        raise CommandError(f"{lacking}, or leave it out with --no-report.")


def check_page(path: str) -> None:
    """Refuse, before a folder is concluded, a page that was asked for and could not be written."""
    from coterie.cli.models import check_file

    if lacking := _lacking():
        raise CommandError(f"{lacking}, or leave --report out.")
    check_file(Path(path), force=True, option="--report")


def write_common_page(conclusion: Conclusion, folder: Path, path: str | None) -> str | None:
    """Write the page of a conclusion into the folder, or to ``path``; return where it is.

    If no path was given and the page cannot be written, a sentence on stderr says so and None is
    returned: the conclusion itself is there.
    """
    target = folder / PAGE if path is None else Path(path).resolve()
    try:
        if lacking := _lacking():
            say(f"Note: there is no report page. {lacking}.")
            return None
        # In a folder of others a link may lead anywhere: it is replaced, not followed.
        write_bytes(target, coterie.Report(conclusion).html().encode())
    except OSError as error:
        sentence = f"The report page {str(target)!r} cannot be written ({error.strerror or error})"
        if path is not None:
            raise CommandError(f"{sentence}: give --report another place.") from error
        say(f"Note: {sentence}.")
        return None
    return str(path or target)


def _from_folder(
    folder: str, name: str, known_keys: str | None, concluder: str | None, own: str | None
) -> coterie.Report:
    """Return the page of a concluded folder, or that of the site ``name``.

    ``concluder`` is whose signature on the conclusion is trusted; otherwise it is computed again. ``own``
    is a table of the site's rows, for what it learns at home.
    """
    from coterie.cli.concluded import trusted_conclusion
    from coterie.cli.moments import with_site_model
    from coterie.cli.sites import open_folder, site_table

    with one_sentence():
        sealed = open_folder(folder, known_keys)
        conclusion = trusted_conclusion(sealed, concluder)
        if own is not None:
            contents = sealed.read()
            conclusion = with_site_model(contents, conclusion, name, site_table([own], contents, name))
        return coterie.Report(conclusion, site=name or None)


def report(
    model: Annotated[
        str,
        Argument(
            metavar="MODEL",
            help="This is the folder of a fit, or its file model.coterie.",
            show_default=False,
        ),
    ] = "",
    out: Annotated[str, Option(help="Write the page to this file.")] = PAGE,
    force: ReplaceFile = False,
    folder: Folder = "",
    name: Annotated[str, Option(help="With --folder, write the own page of this site.")] = "",
    known_keys: KnownKeys = None,
    concluder: Concluder = None,
    against: Annotated[
        str | None, Option(metavar="FOLDER", help="Compare with an earlier run, a folder of `coterie fit`.")
    ] = None,
    own: Annotated[
        str | None,
        Option(metavar="TABLE", help="With moments: the site's rows, for what it learns at home."),
    ] = None,
) -> None:
    """Write the report page of a model, of a concluded sealed folder, or of one of its sites."""
    if bool(model) == bool(folder):
        raise CommandError("A page is of a model, or of a sealed folder with --folder: name one of them.")
    if model and (name or known_keys or concluder or own):
        raise CommandError("--name, --known-keys, --concluder and --own go with --folder.")
    if folder and against:
        raise CommandError("--against compares models: it goes with MODEL.")
    if model:
        model = find_model(model)
    if lacking := _lacking():
        raise CommandError(f"{lacking}.")
    from coterie.cli.models import check_file, open_model

    check_file(Path(out), force=force)
    notes: list[str] = []
    page = _from_folder(folder, name, known_keys, concluder, own) if folder else None
    try:
        with one_sentence():
            made_report = page or coterie.Report(open_model(model, notes), against=against)
            summary = made_report.summary
    except FileNotFoundError as error:
        raise CommandError(str(error)) from None
    say_notes(notes)
    for section in summary["sections"]:
        if section["id"] == "against":
            for sentence in section["words"]:
                tell(sentence)
    with disk_errors(Path(out)):
        # In a folder of others a link may lead anywhere: it is replaced, not followed.
        write_bytes(Path(out), made_report.html().encode())
    tell(out)
