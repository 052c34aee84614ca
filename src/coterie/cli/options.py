"""Options that several commands have, each declared once, and what their text means."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated

from typer import Argument, Option

from coterie.cli.errors import CommandError

# Tables.
Target = Annotated[str, Option(help="Predict this column.")]
Features = Annotated[
    list[str] | None,
    Option(help="Predict from these columns, separated by commas. By default from all others."),
]
Drop = Annotated[list[str] | None, Option(help="Leave out these columns, separated by commas.")]
Delimiter = Annotated[
    str | None,
    Option(help="This character separates the fields of text files. By default the file shows it."),
]
Decimal = Annotated[
    str | None,
    Option(help="The decimal sign of text files is a comma or a point. By default the numbers show it."),
]
Encoding = Annotated[str, Option(help="Text files are encoded so.")]
Order = Annotated[
    str,
    Option(
        help="With auto, blocks of rows are held out if neighbouring rows "
        "depend on each other. With none, single rows."
    ),
]

# Models and what is written.
Model = Annotated[
    str, Argument(metavar="MODEL", help="This is the folder of a fit, or its file model.coterie.")
]
MaxClusters = Annotated[int | None, Option(help="A rule looks at no more coteries than this.")]
Strict = Annotated[
    bool,
    Option("--strict", help="Refuse rows that are unlike those of the fit. By default a note names them."),
]
AsJson = Annotated[bool, Option("--json", help="Print one JSON object instead of text.")]
ReplaceResults = Annotated[bool, Option("--force", help="Replace results that are there already.")]
ReplaceFile = Annotated[bool, Option("--force", help="Replace a file that is there already.")]

# The sealed folder.
Folder = Annotated[str, Option(help="The sites pass on this folder.")]
Sign = Annotated[str | None, Option(metavar="KEY", help="Sign with this private key.")]
KnownKeys = Annotated[
    str | None, Option(metavar="FILE", help="Accept only files that are signed by the keys in this list.")
]
Concluder = Annotated[
    str | None,
    Option(
        metavar="NAME",
        help="With --known-keys, only this site may conclude. By default "
        "anybody may, and the conclusion is checked.",
    ),
]
Epsilon = Annotated[
    float | None,
    Option(
        help="Send private moments with this epsilon, and nothing else. The guide on privacy explains it."
    ),
]
Delta = Annotated[float | None, Option(help="With --epsilon, this is the delta. By default it is 1e-6.")]
SchemaFile = Annotated[
    str | None,
    Option(
        "--schema", metavar="FILE", help="With --epsilon, this file has the columns that the sites agreed on."
    ),
]


def split_names(values: Sequence[str] | None) -> list[str]:
    """Return names that were given one by one or separated by commas."""
    return [name.strip() for value in values or () for name in value.split(",") if name.strip()]


def parse_count(text: str) -> int | str:
    """Return a number of clusters as a number, a rule as it is."""
    return int(text) if re.fullmatch(r"[+-]?[0-9]{1,18}", text) else text


def parse_order(text: str) -> str | None:
    """Return the library's ``order`` for the text of ``--order``: auto as it is, None for none."""
    if text not in ("auto", "none"):
        raise CommandError(f"--order must be auto or none. Got {text!r}.")
    return None if text == "none" else text
