"""Options that several commands have, each declared once, and what their text means."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated

from typer import Argument, Option

from coterie.cli.errors import CommandError

# Tables.
Target = Annotated[str, Option(help="Column to predict.")]
Features = Annotated[
    list[str] | None, Option(help="Columns to predict from, by commas; default: all others.")
]
Drop = Annotated[list[str] | None, Option(help="Columns to leave out, by commas.")]
Delimiter = Annotated[str | None, Option(help="Of text files; default: by suffix.")]
Decimal = Annotated[
    str | None,
    Option(help="The decimal sign in text files, a comma or a point. By default the numbers show it."),
]
Encoding = Annotated[str, Option(help="Of text files.")]
Order = Annotated[
    str, Option(help="auto: hold out blocks if rows depend on each other in their order; none.")
]

# Models and what is written.
Model = Annotated[str, Argument(metavar="MODEL", help="A model.coterie.")]
MaxClusters = Annotated[int | None, Option(help="Largest number that a rule looks at.")]
AsJson = Annotated[bool, Option("--json", help="Print one JSON object.")]
ReplaceResults = Annotated[bool, Option("--force", help="Replace results that are there.")]
ReplaceFile = Annotated[bool, Option("--force", help="Replace a file that is there.")]

# The sealed folder.
Folder = Annotated[str, Option(help="The folder that the sites pass on.")]
Sign = Annotated[str | None, Option(metavar="KEY", help="Sign with this private key.")]
KnownKeys = Annotated[str | None, Option(metavar="FILE", help="Accept files signed by these keys only.")]
Concluder = Annotated[
    str | None,
    Option(
        metavar="NAME",
        help="With --known-keys: who may conclude; default: anybody, and the conclusion is checked.",
    ),
]
Epsilon = Annotated[
    float | None, Option(help="Send private moments and nothing else; see the guide on privacy.")
]
Delta = Annotated[float | None, Option(help="With --epsilon; default: 1e-6.")]
SchemaFile = Annotated[
    str | None,
    Option("--schema", metavar="FILE", help="With --epsilon: the columns that the sites agreed on."),
]


def split_names(values: Sequence[str] | None) -> list[str]:
    """Return names that were given one by one or separated by commas."""
    return [name.strip() for value in values or () for name in value.split(",") if name.strip()]


def parse_count(text: str) -> int | str:
    """Return a number of clusters as a number, a rule as it is."""
    return int(text) if re.fullmatch(r"[+-]?[0-9]{1,18}", text) else text


def parse_order(text: str) -> str | None:
    """Return what ``--order`` means to the library."""
    if text not in ("auto", "none"):
        raise CommandError(f"--order must be auto or none. Got {text!r}.")
    return None if text == "none" else text
