"""Limits and checks for all messages between sites: a message may come from somebody hostile."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from coterie.federated.codec import ProtocolError

# The most predictors, sites and classes of a response in one message.
MOST_COLUMNS = 10_000
MOST_SITES = 10_000
MOST_CLASSES = 100


def digest(content: bytes) -> str:
    """Return the sha256 of some bytes as 64 hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def require(condition: bool, sentence: str) -> None:
    """Raise `ProtocolError` with the sentence where a message does not fulfil a condition."""
    if not condition:
        raise ProtocolError(sentence)


def check_site(name: str) -> str:
    """Return a site's name; refuse one that cannot be printed, or that looks like another one.

    Names stand in reports and file names, and a space at an end would not be seen.
    """
    is_printable_name = 0 < len(name) <= 100 and name.isprintable() and name == name.strip()
    require(
        is_printable_name,
        f"A site's name has 1 to 100 printable characters and no space at its ends. Got {name!r}.",
    )
    return name


def check_classes(names: Sequence[str]) -> None:
    """Refuse names of classes that cannot be printed or distinguished; no names mean a numeric response."""
    all_printable = all(0 < len(name) <= 100 and name.isprintable() for name in names)
    require(
        all_printable and len(names) != 1 and len(names) <= MOST_CLASSES, "A response has 2 to 100 classes."
    )
    require(len(set(names)) == len(names), "Two classes have one name.")
