"""Who belongs together, in all simulated settings: K unknown, K given, and the form for averages.

Settings are those of ``how_many``, ``given``, ``peers``, ``one_truth`` and ``ablation``. Those of ``peers``
have rows for a test, so their predictions are scored, too.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from .rows import BENCHMARKS, Answer, Order, numbers, ordered_labels

DRAWS = {"how_many": 16, "peers": 16, "own": 16, "one_truth": 100}
FOREST = "forest"


def _settings() -> Any:
    sys.path.insert(0, str(BENCHMARKS / "quality" / "ablation"))
    import settings

    return settings


def orders(source: str) -> Iterator[Order]:
    """Give out every draw of every setting, draw by draw."""
    every = _settings().settings()
    # Curved truths are known from their tests with forests alone.
    every += [("how_many", name, FOREST) for name in _settings().HOW_MANY.SETTINGS if "curved" in name]
    for seed in range(max(DRAWS.values())):
        for folder, name, kind in every:
            if seed < DRAWS[folder]:
                yield Order(source, f"{folder}: {name}", kind, seed)


def _variants(folder: str, truth: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "", {}
    if truth is not None and len(np.unique(truth)) > 1:
        yield ", K given", {"n_clusters": len(np.unique(truth))}
    if folder == "how_many":
        yield ", averages", {"refine": "average"}


def answers(order: Order) -> Iterator[Answer]:
    """Let learners select and exchange once, and cluster them in every way that the setting has."""
    from coterie import cluster_learners, collaborate, cross_evaluate, select_models
    from coterie.rows.learners import gather_learners

    settings = _settings()
    folder, name = order.setting.split(": ", 1)
    rows = settings.draw(folder, name, order.seed)
    candidates = ["rf"] if order.variant == FOREST else settings.candidates_of(order.variant)
    start = time.process_time()
    learners, units = gather_learners(rows.X, rows.y, rows.groups, caller="benchmark"), None
    if rows.standardize:
        learners, units = learners.standardized()
    selection = select_models(learners, candidates=candidates)
    exchange = cross_evaluate(selection, learners)
    shared = time.process_time() - start
    for variant, options in _variants(folder, rows.truth):
        start = time.process_time()
        found = cluster_learners(exchange, learners, selection=selection, candidates=candidates, **options)
        seconds = shared + time.process_time() - start
        errors = None
        if folder == "peers":
            drawn = settings.PEERS.draw(name, order.seed)
            together = collaborate(selection, found, learners, candidates=candidates)
            place = {learner: j for j, learner in enumerate(selection.learner_ids.tolist())}
            mine = np.array([place[learner] for learner in drawn.groups_test.tolist()])
            owner = np.searchsorted(learners.ids, drawn.groups_test)
            X = drawn.X_test if units is None else units.forward_X(drawn.X_test, owner)
            predicted = together.predict(X, together.weight_rows[mine])
            if units is not None:
                predicted = units.backward_y(predicted[:, None], owner)[:, 0]
            squares = (predicted - drawn.signal_test) ** 2
            errors = numbers(np.bincount(owner, squares) / np.bincount(owner))
        agreement = None if rows.truth is None else float(adjusted_rand_score(rows.truth, found.labels))
        yield Answer(
            *(order.source, order.setting, order.variant + variant, order.seed),
            n_clusters=int(found.n_clusters),
            clear=bool(found.clear),
            labels=ordered_labels(found.labels),
            agreement=agreement,
            exact=None if agreement is None else agreement == 1,
            errors=errors,
            seconds=round(seconds, 3),
        )
