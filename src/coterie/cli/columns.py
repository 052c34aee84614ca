"""``coterie columns`` and ``coterie agree``: categories, dates and gaps become the same everywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from coterie.cli import options
from coterie.cli.errors import CommandError, one_sentence, require
from coterie.cli.files import find_files
from coterie.cli.printing import say_notes, tell

if TYPE_CHECKING:
    from coterie.federated.tables import ColumnNote, Columns


def _line(note: ColumnNote) -> str:
    """Describe in one line what a site says of a column: kind, entries, rounded centre and size, gaps.

    Centre and size are rounded, and None where there are none, so that no single row shows.
    """
    remarks = [f"{note.name}: {note.kind}"]
    if note.levels:
        remarks.append("entries " + ", ".join(note.levels))
    if note.middle is not None:
        remarks.append(f"middle about {note.middle:g}")
    if note.size is not None:
        remarks.append(f"size about {note.size:g}")
    if note.gaps:
        remarks.append("has gaps")
    return "; ".join(remarks)


def revealed(message: Columns) -> list[str]:
    """Return, a line each, what a site tells others of its columns; a user reads it before it is sent."""
    return [
        f"site: {message.site}",
        f"entries that {message.fewest} rows or more have, and numbers rounded to one digit:",
        *(f"  {_line(note)}" for note in (message.target, *message.columns)),
    ]


def columns(
    tables: Annotated[
        list[str], Argument(metavar="TABLE...", help="These files hold the rows of this site alone.")
    ],
    target: options.Target = "",
    name: Annotated[str, Option(help="This site has this name. No two sites may have the same.")] = "",
    folder: options.Folder = "",
    features: options.Features = None,
    drop: options.Drop = None,
    task: Annotated[
        str, Option(help="classification, regression, or auto: texts and two values are classes.")
    ] = "auto",
    fewest: Annotated[int, Option(help="An entry is named only if this many rows have it.")] = 10,
    dry_run: Annotated[bool, Option("--dry-run", help="List what would be revealed.")] = False,
    replace: Annotated[bool, Option("--replace", help="Replace what this site said earlier.")] = False,
    sign: options.Sign = None,
    known_keys: options.KnownKeys = None,
    delimiter: options.Delimiter = None,
    encoding: options.Encoding = "utf-8",
) -> None:
    """Name this site's columns and their common entries, so that all sites can encode them alike."""
    find_files(tables)
    from coterie.cli import sites
    from coterie.cli.preparing import chosen_columns
    from coterie.cli.reading import read_tables
    from coterie.cli.tasks import check_task, may_be_classes
    from coterie.federated.columns import describe_columns

    check_task(task)
    require(target=target, name=name)
    sealed = None if dry_run else sites.open_folder(folder, known_keys)
    signer = sites.open_signer(sign, sealed)
    if sealed is not None:
        sites.check_signer(sealed, signer, name)
    frame = read_tables(tables, delimiter=delimiter, encoding=encoding)
    predictors = chosen_columns(
        frame.columns, target, None, options.split_names(features), options.split_names(drop)
    )
    classes = may_be_classes(frame[target], task)
    with one_sentence():
        message = describe_columns(
            frame, site=name, target=target, columns=predictors, fewest=fewest, classes=classes
        )
        if sealed is None:
            tell("`coterie columns` would reveal:")
            for line in revealed(message):
                tell(f"  {line}")
            return
        try:
            is_new = sealed.put(message, signer, replace=replace)
        except ValueError as error:
            raise CommandError(f"{error} Pass --replace if the new one is right.") from None
    tell(f"{name} {'named' if is_new else 'had named'} {len(predictors)} columns.")
    tell("When all sites have, anybody may run `coterie agree`.")


def agree(
    folder: options.Folder = "", sign: options.Sign = None, known_keys: options.KnownKeys = None
) -> None:
    """Decide, from what the sites said of their columns, what becomes of them; anybody may run it."""
    from coterie.cli.sites import check_signer, open_folder, open_signer
    from coterie.federated.columns import agree as agree_on

    sealed = open_folder(folder, known_keys)
    signer = open_signer(sign, sealed)
    check_signer(sealed, signer)
    with one_sentence():
        contents = sealed.read()
        encoding = agree_on(contents.columns)
        sealed.put(encoding, signer, replace=True)
    tell(f"{len(encoding.sites)} sites agree on the columns to predict {encoding.target!r} from:")
    if encoding.classes:
        tell(f"  {encoding.target} has the classes {', '.join(encoding.classes)}.")
    for plan in encoding.columns:
        tell(f"  {plan.name}: {plan.remark}")
    say_notes(encoding.notes)
    if contents.shares or contents.moments:
        tell("Sites that have shared already share again, with --replace, if the columns have changed.")
    tell("Now run `coterie share` at every site.")
