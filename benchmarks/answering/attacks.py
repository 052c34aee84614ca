"""Learners of the electrical grid of whom some are attacked: labels, K, and who is suspected of what."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from .rows import BENCHMARKS, Answer, Order

DRAWS = 2


def _benchmark() -> Any:
    sys.path.insert(0, str(BENCHMARKS / "quality" / "attacks"))
    import run

    return run


def orders(source: str) -> Iterator[Order]:
    """Give out every attack with every number of attacked learners."""
    run = _benchmark()
    attacks = [("nobody", 0)]
    attacks += [(name, n) for name in (*run.DATA_ATTACKS, *run.MODEL_ATTACKS) for n in run.COUNTS[1:]]
    for seed in range(DRAWS):
        for name, count in attacks:
            yield from (Order(source, f"{name}, {count}", form, seed) for form in run.FORMS)


def answers(order: Order) -> Iterator[Answer]:
    """Attack, cluster, and write d or m for each learner whose data or model is suspected."""
    run = _benchmark()
    attack, count = order.setting.rsplit(", ", 1)
    start = time.process_time()
    attacked, outliers, n_clusters = run.found(attack, int(count), order.seed, order.variant)
    seconds = time.process_time() - start
    for trust, found in outliers.items():
        marks = np.where(found.data, "d", np.where(found.model, "m", "-"))
        yield Answer(
            *(order.source, order.setting, f"{order.variant}, trusted {trust}", order.seed),
            n_clusters=int(n_clusters),
            verdicts="".join(marks.tolist()),
            # Who is wrongly suspected or missed, as an error of each learner.
            errors=[float(wrong) for wrong in (found.data | found.model) != attacked],
            seconds=round(seconds, 3),
        )
