"""Whole fits: real tables, promises, classes. Labels, verdicts, gains, and errors on rows not learnt from."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from .rows import BENCHMARKS, Answer, Order, letters, numbers, ordered_labels

# Draws of promises with linear and with the default candidates, and splits of the tables.
DRAWS, DRAWS_BY_DEFAULT, PROMISED_SPLITS, SPLITS, OFFICIAL_FOLDS = 24, 3, 3, 2, 5
CLASS_TABLES, CLASS_SPLITS = ("landmine", "heart", "tv16", "verbagg"), 3
TRUTH_DRAWS = 16
REAL = {"": {}, "effort fast": {"effort": "fast"}}
SUREST = 1e-6


def _benchmark(*folders: str) -> None:
    """Let the modules of other benchmarks be imported by their bare names; each order has its own process."""
    for folder in folders:
        sys.path.insert(0, str(BENCHMARKS / "quality" / folder))


def _real_tables() -> Any:
    _benchmark("real_tables")
    import more_tables
    from untouched import untouched_tables

    more_tables.TABLES.update(untouched_tables())
    return more_tables


def _class_truths() -> dict[str, dict[str, Any]]:
    _benchmark("classes")
    import truths

    return dict(truths.SETTINGS)


def _named_tables() -> list[str]:
    tables = _real_tables()
    return [name for name in tables.NAMES if name in (*tables.TABLES, tables.OFFICIAL)]


def _splits(splits: int, official: int, variants: Iterable[str]) -> Iterator[tuple[str, str, int]]:
    from_variants, official_name = list(variants), _real_tables().OFFICIAL
    for seed in range(max(splits, official)):
        for name in _named_tables():
            if seed < (official if name == official_name else splits):
                yield from ((name, variant, seed) for variant in from_variants)


def _promises() -> Iterator[tuple[str, str, int]]:
    _benchmark("real_tables", "promises")
    from federations import KINDS
    from promised import FORMS

    for variant, draws in (("default", DRAWS_BY_DEFAULT), ("linear", DRAWS)):
        for seed in range(draws):
            yield from ((kind, f"{form}, {variant}", seed) for kind in KINDS for form in FORMS)


def _forms() -> list[str]:
    _benchmark("real_tables", "promises")
    from promised import FORMS

    return list(FORMS)


ORDERS: dict[str, Callable[[], Iterable[tuple[str, str, int]]]] = {
    "real_tables": lambda: _splits(SPLITS, OFFICIAL_FOLDS, REAL),
    "promised_tables": lambda: _splits(PROMISED_SPLITS, 0, _forms()),
    "promises": _promises,
    "classes": lambda: ((name, "", seed) for seed in range(CLASS_SPLITS) for name in CLASS_TABLES),
    "class_truths": lambda: ((name, "", seed) for seed in range(TRUTH_DRAWS) for name in _class_truths()),
}


def orders(source: str) -> Iterator[Order]:
    """Give out what one source can be asked, draw by draw."""
    yield from (Order(source, *rest) for rest in ORDERS[source]())


def _told(model: Any) -> dict[str, Any]:
    """Return what a fitted model says of its learners."""
    gains = model.gains_
    clear = getattr(getattr(model, "partition_", None), "clear", None)
    return {
        "n_clusters": int(model.n_clusters_),
        "clear": None if clear is None else bool(clear),
        "labels": ordered_labels(model.learner_labels_),
        "verdicts": letters(gains["verdict"]),
        "gains": numbers(gains["gain"]),
    }


def _by_learner(losses: np.ndarray, groups: np.ndarray) -> list[float]:
    _, codes = np.unique(groups, return_inverse=True)
    return numbers(np.bincount(codes, losses) / np.bincount(codes))


def _real_table(order: Order) -> dict[str, Any]:
    from coterie import CoterieRegressor

    data = _real_tables().split(order.setting, order.seed)
    start = time.process_time()
    model = CoterieRegressor(n_jobs=1, **REAL[order.variant]).fit(data.X, data.y, groups=data.groups)
    seconds = time.process_time() - start
    losses = (data.y_test - model.predict(data.X_test, groups=data.groups_test)) ** 2
    return {**_told(model), "errors": _by_learner(losses, data.groups_test), "seconds": round(seconds, 3)}


def _promised(order: Order) -> dict[str, Any]:
    _benchmark("real_tables", "promises")
    import promised
    import simulated
    from federations import federation

    form, candidates = order.variant.rsplit(", ", 1)
    data, start = federation(order.setting, order.seed), time.process_time()
    linear = None if candidates == "default" else candidates
    told = promised.promises(data.X, data.y, data.groups, form, linear)
    seconds = time.process_time() - start
    truth = simulated.truth_of(data, told)
    errors = {"errors": numbers(truth.others), "own_errors": numbers(truth.own)}
    return {**_told(told.model), **errors, "seconds": round(seconds, 3)}


def _promised_table(order: Order) -> dict[str, Any]:
    tables = _real_tables()
    _benchmark("promises")
    import promised

    data, start = tables.split(order.setting, order.seed), time.process_time()
    told = promised.promises(data.X, data.y, data.groups, order.variant, None)
    seconds = time.process_time() - start
    known = np.isin(data.groups_test, told.learners)
    X, y, groups = data.X_test[known], data.y_test[known], data.groups_test[known]
    both = {"errors": told.others(X, groups), "own_errors": told.own(X, groups)}
    errors = {name: _by_learner((y - mine) ** 2, groups) for name, mine in both.items()}
    return {**_told(told.model), **errors, "seconds": round(seconds, 3)}


def _class_table(order: Order) -> dict[str, Any]:
    _benchmark("classes")
    import tables

    from coterie import CoterieClassifier

    split = tables.TABLES[order.setting](order.seed)
    start = time.process_time()
    model = CoterieClassifier(random_state=order.seed, n_jobs=1).fit(split.X, split.y, groups=split.groups)
    seconds = time.process_time() - start
    chances = model.predict_proba(split.X_test, groups=split.groups_test)
    codes = np.searchsorted(model.classes_, split.y_test)
    losses = -np.log(np.clip(chances[np.arange(len(codes)), codes], SUREST, 1))
    return {**_told(model), "errors": _by_learner(losses, split.groups_test), "seconds": round(seconds, 3)}


def _class_truth(order: Order) -> dict[str, Any]:
    from coterie import CoterieClassifier
    from coterie.datasets import make_logistic_learners

    data = make_logistic_learners(random_state=1000 + order.seed, **_class_truths()[order.setting])
    candidates = None if "curved" in order.setting else "linear"
    start = time.process_time()
    model = CoterieClassifier(candidates, collaboration="local", n_bootstrap=0, n_jobs=1)
    model.fit(data.X, data.y, groups=data.groups)
    seconds = time.process_time() - start
    agreement = float(adjusted_rand_score(data.truth, model.learner_labels_))
    # Without collaboration there is nothing to gain: verdicts are not part of this answer.
    told = {name: value for name, value in _told(model).items() if name not in ("verdicts", "gains")}
    return {**told, "agreement": agreement, "exact": agreement == 1, "seconds": round(seconds, 3)}


FITS: dict[str, Callable[[Order], dict[str, Any]]] = {
    "real_tables": _real_table,
    "promises": _promised,
    "promised_tables": _promised_table,
    "classes": _class_table,
    "class_truths": _class_truth,
}


def answers(order: Order) -> Iterator[Answer]:
    """Fit once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield Answer(*order, **FITS[order.source](order))
