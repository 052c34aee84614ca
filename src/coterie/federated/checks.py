"""What every message between sites must hold to."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from coterie.federated.codec import ProtocolError

MOST_COLUMNS = 10_000
MOST_SITES = 10_000
MOST_CLASSES = 100


def digest(content: bytes) -> str:
    """Return the sha256 of some bytes in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def require(condition: bool, sentence: str) -> None:
    """Refuse a message that does not hold to a condition."""
    if not condition:
        raise ProtocolError(sentence)


def check_site(name: str) -> str:
    """Refuse names of sites that cannot be printed or distinguished."""
    good = 0 < len(name) <= 100 and name.isprintable() and name == name.strip()
    require(good, f"A site's name has 1 to 100 printable characters and no space at its ends. Got {name!r}.")
    return name


def check_classes(names: Sequence[str]) -> None:
    """Refuse names of classes that cannot be printed or distinguished; none are allowed."""
    good = all(0 < len(name) <= 100 and name.isprintable() for name in names)
    require(good and len(names) != 1 and len(names) <= MOST_CLASSES, "A response has 2 to 100 classes.")
    require(len(set(names)) == len(names), "Two classes have one name.")
