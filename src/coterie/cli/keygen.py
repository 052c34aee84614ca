"""``coterie keygen``: a key to sign a site's files with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from coterie.cli.errors import CommandError


def keygen(
    name: Annotated[str, typer.Option(help="Name of this site.")] = "",
    out: Annotated[str, typer.Option(help="File for the private key; it never leaves the site.")] = "",
) -> None:
    """Make a key for --sign, and print the line that the others put into their list of known keys."""
    from coterie.cli.models import check_file
    from coterie.cli.sites import one_sentence
    from coterie.federated.messages import check_site
    from coterie.federated.signing import make_key

    for value, option in ((name, "--name"), (out, "--out")):
        if not value:
            raise CommandError(f"{option} is missing: give it, as in {option} NAME.")
    # A key that is overwritten is lost to everybody who knows it.
    check_file(Path(out), force=False)
    with one_sentence():
        typer.echo(f"{check_site(name)} {make_key(out)}")
