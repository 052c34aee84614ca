"""One sentence for every option that is not known."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from numbers import Integral, Real

import numpy as np

# Letters of a value that a sentence shows.
LONGEST_BRIEF = 100


def brief(value: object) -> str:
    """Return a value's text for an error: one line of at most `LONGEST_BRIEF` letters."""
    try:
        text = repr(value.item() if isinstance(value, np.generic) else value)
    # An object may fail to describe itself.
    except Exception:
        text = f"<{type(value).__name__}>"
    text = str(value) if isinstance(value, np.datetime64) else " ".join(text.split("\n"))
    return text if len(text) <= LONGEST_BRIEF else f"{text[: LONGEST_BRIEF - 20]}...{text[-17:]}"


def check_option(value: object, name: str, known: Iterable[object], *, alternative: str = "") -> None:
    """Refuse an unknown option, listing the known ones; ``alternative`` says what else is allowed."""
    options = list(known)
    if not any(value is option or (type(value) is str and value == option) for option in options):
        listed = ", ".join(repr(option) for option in options)
        raise ValueError(f"The {name!r} option must be {alternative}one of {listed}. Got {brief(value)}.")


def check_count(value: object, name: str, *, least: int = 1, most: int | None = None) -> int:
    """Return an integer option after a check that it is from ``least`` to ``most`` (None: no upper bound)."""
    is_integer = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_integer or int(value) < least or (most is not None and int(value) > most):  # type: ignore[call-overload]
        bound = "" if most is None else f" and at most {most}"
        raise ValueError(
            f"The {name!r} option must be an integer of at least {least}{bound}. Got {brief(value)}."
        )
    return int(value)  # type: ignore[call-overload, no-any-return]


def check_positive(value: object, name: str, alternatives: str) -> float:
    """Return an option as a float after a check that it is positive and finite.

    ``alternatives`` says in the error what else the option may be.
    """
    number = float("nan")
    if isinstance(value, Real) and not isinstance(value, bool):
        with suppress(OverflowError):
            number = float(value)
    if not 0 < number < float("inf"):
        raise ValueError(
            f"The {name!r} option must be a positive number or {alternatives}. Got {brief(value)}."
        )
    return number


def check_coverage(value: object, caller: str) -> float:
    """Return a coverage, the share of responses that intervals or sets are to hold: between 0 and 1.

    ``caller`` is the method whose argument it is, for the error.
    """
    is_number = isinstance(value, Real) and not isinstance(value, (bool, np.bool_))
    if not (is_number and 0 < value < 1):  # type: ignore[operator]
        raise ValueError(
            f"The 'coverage' argument of {caller} must be a number between 0 and 1, such as 0.9. "
            f"Got {brief(value)}."
        )
    return float(value)  # type: ignore[arg-type]


def listed(names: Iterable[object], most: int = 5) -> str:
    """Join names for a sentence, the rest as a count."""
    texts = [brief(name) for name in names]
    rest = len(texts) - most
    return ", ".join(texts[:most]) + (f" and {rest} more" if rest > 0 else "")
