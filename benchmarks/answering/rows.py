"""The one form of an answer, and the order that asks for it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

BENCHMARKS = Path(__file__).resolve().parents[1]
# Five digits are more than any comparison needs, and make the files half as large.
DIGITS = 5
LETTERS = {
    "collaborate": "c",
    "stay alone": "s",
    "no clear difference": "n",
    "does not belong": "d",
    "too few rows": "f",
}


class Order(NamedTuple):
    """One draw of one setting, of which a source can be asked."""

    source: str
    setting: str
    variant: str
    seed: int


@dataclass(frozen=True)
class Answer:
    """What the library said of one draw; lists have an entry for each learner.

    ``agreement`` is the adjusted Rand index with the truth and ``exact`` says that K and every label are
    right; both are None where nobody knows the truth. ``errors`` are those of the final prediction on rows
    that were not learnt from, ``own_errors`` those of each learner's own model.
    """

    source: str
    setting: str
    variant: str
    seed: int
    n_clusters: int | None = None
    clear: bool | None = None
    labels: list[int] | None = None
    agreement: float | None = None
    exact: bool | None = None
    errors: list[float] | None = None
    own_errors: list[float] | None = None
    verdicts: str | None = None
    gains: list[float] | None = None
    seconds: float | None = None
    note: str = ""

    def record(self) -> dict[str, Any]:
        """Return the answer as a row of a table."""
        return asdict(self)


def numbers(values: Any) -> list[float]:
    """Return values with as many digits as are kept."""
    return [float(f"{float(value):.{DIGITS}g}") for value in np.ravel(np.asarray(values, dtype=float))]


def ordered_labels(labels: Any) -> list[int]:
    """Return labels numbered in the order of their first learner, so that equal partitions are equal."""
    _, first, codes = np.unique(np.asarray(labels), return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    return [int(rank[code]) for code in codes]


def letters(verdicts: Any) -> str:
    """Return a letter for each verdict."""
    return "".join(LETTERS.get(str(verdict), "?") for verdict in verdicts)
