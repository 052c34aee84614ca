"""One sentence for every option that is not known."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real

import numpy as np


def check_option(value: object, name: str, known: Iterable[object]) -> None:
    """Refuse an unknown option, listing the known ones."""
    options = list(known)
    if not any(value is option or (type(value) is str and value == option) for option in options):
        listed = ", ".join(repr(option) for option in options)
        raise ValueError(f"The {name!r} option must be one of {listed}. Got {value!r}.")


def check_count(value: object, name: str, *, least: int = 1) -> int:
    """Refuse anything but an integer of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise ValueError(f"The {name!r} option must be an integer of at least {least}. Got {value!r}.")
    return int(value)


def check_positive(value: object, name: str, alternatives: str) -> float:
    """Refuse anything but a positive, finite number."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not 0 < float(value) < float("inf"):  # type: ignore[arg-type]
        raise ValueError(f"The {name!r} option must be a positive number or {alternatives}. Got {value!r}.")
    return float(value)  # type: ignore[arg-type]


def _shown(name: object) -> str:
    if isinstance(name, np.datetime64):
        return str(name)
    return repr(name.item() if isinstance(name, np.generic) else name)


def listed(names: Iterable[object], most: int = 5) -> str:
    """Join names for a sentence, the rest as a count."""
    texts = [_shown(name) for name in names]
    rest = len(texts) - most
    return ", ".join(texts[:most]) + (f" and {rest} more" if rest > 0 else "")
