"""How numbers and names are written, the same in the notebook, in pictures and on the report page."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

MINUS = "\N{MINUS SIGN}"
NOTHING = "\N{EN DASH}"
LONGEST_NAME = 24


def counted(count: int, noun: str) -> str:
    """Return a number with its noun in the right form."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def number(value: float | None, digits: int = 3) -> str:
    """Return a number with ``digits`` significant digits as text; a dash for None or what is not finite."""
    if value is None or not math.isfinite(value):
        return NOTHING
    if value and not 1e-3 <= abs(value) < 1e6:
        return f"{value:.{digits - 1}e}".replace("-", MINUS)
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value)))) if value else 0
    return f"{value:,.{min(decimals, 6)}f}".replace("-", MINUS)


def percent(share: float | None, *, sign: bool = False) -> str:
    """Return a share (0.25) as a percentage (25%); ``sign`` adds a plus, None is a dash."""
    if share is None or math.isnan(share) or share == math.inf:
        return NOTHING
    if share < -9.99:
        return f"< {MINUS}999%"
    rounded_percent = round(100 * share)
    return f"{rounded_percent:{'+' if sign and rounded_percent else ''}d}%".replace("-", MINUS)


def whole_percents(shares: Sequence[float | None]) -> list[int]:
    """Round shares to whole percentages whose sum is that of the shares, rounded: 100 for parts of a whole.

    All are rounded down, and those with the largest remainders get one more each. None and what is not
    finite count as zero.
    """
    exact = [100 * share if share is not None and math.isfinite(share) else 0.0 for share in shares]
    percents = [math.floor(value) for value in exact]
    n_to_add = round(sum(exact)) - sum(percents)
    by_remainder = sorted(range(len(exact)), key=lambda index: percents[index] - exact[index])
    for index in by_remainder[:n_to_add]:
        percents[index] += 1
    return percents


def joined(names: Sequence[str], most: int = 3) -> str:
    """Join names as in 'a, b and c'; beyond ``most`` of them, the rest is a count."""
    first, rest = list(names[:most]), len(names) - most
    if rest > 0:
        return f"{', '.join(first)} and {rest} more"
    return f"{', '.join(first[:-1])} and {first[-1]}" if len(first) > 1 else "".join(first)


def display_name(learner: object, longest: int = LONGEST_NAME) -> str:
    """Return a learner's id as a short printable text.

    A long name loses its middle, not its end: names often differ in their last characters only.
    """
    value = learner.item() if isinstance(learner, np.generic) else learner
    text = " ".join(str(value).split())
    text = "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text
    )
    if len(text) <= longest:
        return text
    tail = (longest - 1) // 3
    head = longest - 1 - tail
    return text[:head].rstrip() + "\N{HORIZONTAL ELLIPSIS}" + text[len(text) - tail :].lstrip()
