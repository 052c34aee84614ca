"""Ask the sources, on all cores: each order in a process of its own, since benchmarks share module names."""

from __future__ import annotations

import json
import multiprocessing
import platform
import time
import traceback
from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from .rows import Order

# The module that answers for each source; the slowest first, so that no core waits at the end.
SOURCES = {
    "messages": "messages",
    "real_tables": "fits",
    "promised_tables": "fits",
    "classes": "fits",
    "class_truths": "fits",
    "promises": "fits",
    "attacks": "attacks",
    "searches": "searches",
}
LIBRARIES = ("numpy", "scipy", "scikit-learn")


def _orders(source: str) -> list[Order]:
    return list(import_module(f"answering.{SOURCES[source]}").orders(source))


def _answered(order: Order) -> tuple[Order, list[dict[str, Any]], str]:
    try:
        module = import_module(f"answering.{SOURCES[order.source]}")
        return order, [answer.record() for answer in module.answers(order)], ""
    except Exception:
        return order, [], traceback.format_exc()


def orders_of(sources: Iterable[str], draws: int | None = None, text: str = "") -> list[Order]:
    """Return the orders of some sources: the first draws of each setting whose name has a text."""
    wanted = [name for name in SOURCES if name in set(sources)]
    with multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1) as pool:
        found = [order for orders in pool.map(_orders, wanted, chunksize=1) for order in orders]
    return [
        order
        for order in found
        if (draws is None or order.seed < draws) and text in f"{order.setting} / {order.variant}"
    ]


def asked(orders: list[Order], journal: Path, jobs: int, minutes: float | None = None) -> None:
    """Ask what the journal lacks, and write a line for each order as it is answered."""
    done = {tuple(line["order"]) for line in journal_lines(journal)}
    missing = [order for order in orders if tuple(order) not in done]
    journal.parent.mkdir(parents=True, exist_ok=True)
    start, failed = time.monotonic(), 0
    # Forked, so that the library is imported once.
    import_module("coterie")
    import_module("sklearn.ensemble")
    with (
        multiprocessing.get_context("fork").Pool(jobs, maxtasksperchild=1) as pool,
        open(journal, "a", encoding="utf-8") as file,
    ):
        for number, (order, answers, trouble) in enumerate(pool.imap_unordered(_answered, missing), 1):
            if trouble:
                failed += 1
                print(f"{' / '.join(map(str, order))}\n{trouble}", flush=True)
            else:
                file.write(json.dumps({"order": order, "answers": answers}) + "\n")
            if number % 100 == 0 or number == len(missing):
                file.flush()
                print(f"{number} of {len(missing)}, {time.monotonic() - start:.0f} s", flush=True)
            if minutes is not None and time.monotonic() - start > 60 * minutes:
                print(f"Stopped after {minutes:g} minutes; the same command goes on from here.", flush=True)
                pool.terminate()
                break
    if failed:
        print(f"{failed} orders could not be answered.", flush=True)


def journal_lines(journal: Path) -> Iterator[dict[str, Any]]:
    """Give out the lines of a journal; none where there is none."""
    if journal.is_file():
        with open(journal, encoding="utf-8") as file:
            yield from (json.loads(line) for line in file if line.endswith("\n"))


def machine() -> dict[str, Any]:
    """Return what the answers were made with, and the seconds of a fixed job as a unit of time."""
    rng = np.random.default_rng(0)
    matrices = rng.standard_normal((200, 60, 60))
    best = np.inf
    for _ in range(5):
        start = time.process_time()
        for each in matrices:
            np.linalg.eigh(each @ each.T)
        best = min(best, time.process_time() - start)
    libraries = {name: version(name) for name in LIBRARIES}
    return {"unit_seconds": round(best, 4), "python": platform.python_version(), **libraries}
