"""Sizes and tolerances that several parts share: each number once, with the reason for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Limits:
    """What counts as many, as too large for memory, and as rounding."""

    # Up to this many learners every decomposition is dense, and k-means has ten starts. Twice as many double
    # the seconds of Cluster: 1.1 to 2.2 for 1,000 learners.
    few: int = 500
    # Beyond this many learners a sample of this size stands for all of them where one will do. Sums over
    # pairs with the sample grow with the learners only (benchmarks/speed/growth.csv); a start from 1,500
    # learners takes twice as long and saves a pass over all pairs in one of five settings.
    many: int = 1_000
    # Beyond this many learners no matrix of all pairs is stored. The matrix takes 128 MB and average linkage
    # half a second.
    huge: int = 4_000
    # Numbers in an array that is made, used and forgotten, or remembered in case it is needed again. 32
    # MiB: small beside the rows of many learners, large beside the cost of a call.
    numbers: int = 2**22
    # Rows that a model predicts in one call. A kernel model holds this many times its training rows: 0.5 GB
    # for a learner of 1,000 rows.
    rows: int = 2**16
    # A share this small of the terms that it comes from is rounding. What a sum of 4,000 terms can lose in
    # double precision: 4,000 times 2.2e-16.
    rounding: float = 1e-12


LIMITS = Limits()


def half_the_digits(kind: Any) -> float:
    """Return the relative size below which a difference of two terms has lost half of its digits.

    ``kind`` is a floating-point type such as ``numpy.float32``; the result is the square root of its epsilon.
    """
    return float(np.sqrt(np.finfo(kind).eps))
