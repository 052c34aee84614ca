"""Sites whose rows do not move, on the real tables: each site's error by itself and over messages."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from .rows import BENCHMARKS, Answer, Order, numbers, ordered_labels

SPLITS, CANDIDATES, SENDS = 2, ("ridge", "default"), ("models", "moments")
CLASS_TABLES = ("heart", "landmine", "tv16", "verbagg")
SUREST = 1e-6


def _benchmark() -> Any:
    sys.path.insert(0, str(BENCHMARKS / "federated"))
    import pays

    return pays


def orders(source: str) -> Iterator[Order]:
    """Give out every table, with lines and with the default candidates, for models and for moments."""
    pays = _benchmark()
    pays.TABLES.update(pays.untouched_tables())
    names = [name for name in pays.NAMES if name in pays.TABLES and name != pays.OFFICIAL]
    for seed in range(SPLITS):
        for candidates in reversed(CANDIDATES):
            for name in names:
                yield from (Order(source, name, f"{sends}, {candidates}", seed) for sends in SENDS)
    for seed in range(SPLITS):
        yield from (Order(source, name, "classes", seed) for name in CLASS_TABLES)


def _classes(order: Order) -> Answer:
    sys.path.insert(0, str(BENCHMARKS / "federated"))
    import pays_classes as pays

    data = pays.TABLES[order.setting](order.seed)
    start = time.process_time()
    found, shares, _ = pays.over_messages(data, ["logistic"], order.seed)
    seconds = time.process_time() - start
    losses: dict[str, list[float]] = {"alone": [], "verdict": []}
    for site in found.labels:
        rows = data.groups_test == site
        X = data.X_test[rows]
        codes = pays.class_codes(data.y_test[rows], found.classes, order.setting).astype(int)
        for using, mine in losses.items():
            chances = pays.predict(X, site, shares, found, using=using)
            mine.append(float(-np.log(np.clip(chances[np.arange(len(codes)), codes], SUREST, 1)).mean()))
    return _answer(order, found, seconds, *losses.values())


def _numbers(order: Order) -> Answer:
    pays = _benchmark()
    pays.TABLES.update(pays.untouched_tables())
    sends, candidates = order.variant.split(", ")
    data, sent = pays.split(order.setting, order.seed), dict[str, int]()
    start = time.process_time()
    sites = pays.sites_of(data, [candidates], order.seed)
    found, both = (pays.by_moments if sends == "moments" else pays.by_models)(sites, sent)
    seconds = time.process_time() - start
    errors: tuple[list[float], list[float]] = ([], [])
    for site in found.labels:
        rows = data.groups_test == site
        for mine, predicted in zip(errors, both(data.X_test[rows], site), strict=True):
            mine.append(float(np.mean((data.y_test[rows] - predicted) ** 2)))
    return _answer(order, found, seconds, *errors)


def _answer(order: Order, found: Any, seconds: float, own: list[float], errors: list[float]) -> Answer:
    return Answer(
        *order,
        n_clusters=int(found.n_clusters),
        labels=ordered_labels(list(found.labels.values())),
        errors=numbers(errors),
        own_errors=numbers(own),
        seconds=round(seconds, 3),
        note=f"left out: {', '.join(sorted(map(str, found.left_out)))}" if found.left_out else "",
    )


def answers(order: Order) -> Iterator[Answer]:
    """Let the sites of one table work together."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield _classes(order) if order.variant == "classes" else _numbers(order)
