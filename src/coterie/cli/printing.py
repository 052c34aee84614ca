"""Text on its way to a terminal: what a table or a file name holds must not command it.

Escape sequences recolour and rewrite what was said before, and bidirectional marks turn words around. Whoever
writes a table chooses ids and column names, so neither reaches a terminal raw.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable
from typing import Any

import typer

# Letters of a sentence, and of a cell in a table, that are shown.
LONGEST_SENTENCE = 1000
LONGEST_CELL = 900


def printable(text: str) -> str:
    r"""Return a text with all that is no letter, mark, number, sign or space escaped, as ``\x1b``.

    Names in a table come from anybody, and such letters could steer the terminal.
    """
    if text.isprintable():
        return text
    return "".join(
        letter
        if letter.isprintable() or unicodedata.category(letter) == "Zs"
        else letter.encode("unicode_escape").decode()
        for letter in text
    )


def shortened(text: str, most: int) -> str:
    """Return a text of at most ``most`` letters: a longer one loses its middle."""
    return text if len(text) <= most else f"{text[: most - most // 4]}...{text[3 - most // 4 :]}"


def sentence(error: object) -> str:
    """Return an error as one printable line of at most `LONGEST_SENTENCE` letters."""
    return printable(shortened(" ".join(str(error).split("\n")), LONGEST_SENTENCE))


def cell(value: object) -> str:
    """Return an entry of a table as printable text of a bearable length."""
    return printable(shortened(str(value), LONGEST_CELL))


def tell(text: str, *, err: bool = False) -> None:
    """Print a line to stdout, or to stderr."""
    typer.echo(printable(text), err=err)


def tell_json(found: Any) -> None:
    """Print one JSON object."""
    typer.echo(json.dumps(found))


def say(text: str) -> None:
    """Write a line to stderr, beside which stdout holds results alone."""
    tell(text, err=True)


def say_notes(notes: Iterable[str]) -> None:
    """Write notes to stderr."""
    for note in notes:
        say(f"Note: {note}")
