"""``coterie keygen``: a key to sign a site's files with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from coterie.cli.errors import CommandError, one_sentence, require
from coterie.cli.printing import tell

# As the files of a sealed folder are named; a model of `coterie fit` is named otherwise.
SEALED = (
    "share-*.coterie",
    "score-*.coterie",
    "question-*.coterie",
    "answer-*.coterie",
    "conclusion.coterie",
    "moments-*.coterie",
    "columns-*.coterie",
    "encoding.coterie",
)


def _check_elsewhere(path: Path) -> None:
    """Refuse to put a private key into a folder, or below one, that sites pass on: others would read it."""
    for folder in path.resolve().parents:
        if any(next(folder.glob(pattern), None) is not None for pattern in SEALED):
            raise CommandError(f"{str(folder)!r} is passed on among the sites: give --out another place.")


def keygen(
    name: Annotated[str, Option(help="This site has this name.")] = "",
    out: Annotated[str, Option(help="Write the private key to this file. It never leaves the site.")] = "",
) -> None:
    """Make a key for --sign, and print the line that the others put into their list of known keys."""
    from coterie.cli.models import check_file
    from coterie.federated.checks import check_site
    from coterie.federated.signing import make_key

    require(name=name, out=out)
    # A key that is overwritten is lost to everybody who knows it.
    if Path(out).exists() and not Path(out).is_dir():
        raise CommandError(f"The file {out!r} exists: give --out another name.")
    check_file(Path(out), force=False)
    _check_elsewhere(Path(out))
    with one_sentence():
        tell(f"{check_site(name)} {make_key(out)}")
