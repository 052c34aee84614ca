"""The search on one draw: whole, and without each part in turn.

Parts of the search ask for the same numbers again and again. Over the parts of one draw they are remembered,
unless the time is measured.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import numpy as np
from constants import VARIED
from parts import PARTS, Part
from settings import Rows, candidates_of, draw
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from coterie import cluster_learners, cross_evaluate, select_models
from coterie.method import cluster as partition
from coterie.method import search as search_module
from coterie.method import select
from coterie.method.n_clusters import one_truth
from coterie.method.refine import moment_starts as moment_search
from coterie.method.refine import pooled, refits
from coterie.method.refine.losses import LocalLosses
from coterie.records import Curve

WHOLE = Part("the whole", list)
COLUMNS = (
    *("benchmark", "setting", "candidates", "seed", "without"),
    *("k", "ari", "ari_given", "clear", "seconds"),
)


@dataclass(frozen=True)
class Models:
    """What learners selected and exchanged."""

    learners: Any
    selection: Any
    exchange: Any

    @classmethod
    def of(cls, rows: Rows, candidates: Any) -> Models:
        """Let the learners select and exchange."""
        learners = rows.gathered()
        selection = select_models(learners, candidates=candidates)
        return cls(learners, selection, cross_evaluate(selection, learners))

    def noise_anew(self) -> Models:
        """Say anew how noisy the learners are, from the residuals that they have."""
        chosen = self.selection.aligned_to(self.learners.ids)
        variance = select._pooled_variance(self.learners)
        spans = map(self.learners.span, range(len(self.learners)))
        tied = np.array([select.mostly_one_value(self.learners.y[span]) for span in spans])
        clips = select.clip_bounds(chosen.residuals, variance, tied)
        noise = select.noise_levels(chosen.residuals, clips, variance, tied)
        inflation = select.variance_inflation(chosen.residuals, chosen.folds) if chosen.dependent else 1.0
        chosen = replace(chosen, clips=clips, noise=noise, inflation=inflation)
        levels = dict(zip(chosen.learner_ids.tolist(), noise.tolist(), strict=True))
        there = np.array([levels[learner] for learner in self.exchange.learner_ids.tolist()])
        selection = chosen.aligned_to(self.selection.learner_ids)
        return Models(self.learners, selection, replace(self.exchange, noise=there))


def _no_curve(*_: Any, **__: Any) -> Any:
    empty = np.array([1])
    return Curve("other", empty, empty.astype(float), 1, "not drawn")


@contextmanager
def other_rules_left_out() -> Iterator[None]:
    """Leave out the curves of the other rules for K, which do not change the answer."""
    with ExitStack() as stack:
        for name in ("eigengap", "penalty"):
            stack.enter_context(patch.object(search_module, name, _no_curve))
        stack.enter_context(patch.object(search_module, "gap_rules", lambda _: (_no_curve(), _no_curve())))
        stack.enter_context(patch.object(partition, "cross_validated", _no_curve))
        yield


def _remembering(function: Callable[..., Any], key: Callable[..., Any]) -> Callable[..., Any]:
    known: dict[Any, Any] = {}

    def answer(*arguments: Any, **more: Any) -> Any:
        requested = key(*arguments, **more)
        if requested not in known:
            # The arguments are kept, too: an object that is gone gives its identity to another.
            known[requested] = function(*arguments, **more), arguments
        return known[requested][0]

    return answer


def _losses_key(learners: Any, selection: Any, exchange: Any, *_: Any) -> Any:
    # What a part has patched while losses are made belongs to what they are.
    switched = (
        refits.FLEXIBLE,
        pooled.RIDGE,
        id(refits.RefitLosses.take_best_family),
        id(pooled.bounded_weights),
        id(pooled.PooledLosses.suggest),
    )
    return selection.noise.tobytes(), selection.clips.tobytes(), switched


def _truth_key(Z: Any, *_: Any) -> Any:
    return id(Z), one_truth.DRAWS, moment_search.SEARCH


def _labels_key(losses: Any, labels: Any) -> Any:
    return id(losses), labels.tobytes()


@contextmanager
def remembered() -> Iterator[None]:
    """Remember losses, starts and tests as long as the same learners are searched."""
    made = patch.object(partition, "pooled_losses", _remembering(partition.pooled_losses, _losses_key))
    answers = patch.object(LocalLosses, "_answer", _remembering(LocalLosses._answer, _labels_key))
    truth = patch.object(
        pooled, "compare_with_one_truth", _remembering(pooled.compare_with_one_truth, _truth_key)
    )
    with made, answers, truth:
        yield


def searched(models: Models, candidates: Any, n_clusters: Any = "auto") -> tuple[Any, float]:
    """Return the partition that the search finds, and its processor time."""
    start = time.process_time()
    answer = cluster_learners(
        models.exchange,
        models.learners,
        selection=models.selection,
        candidates=candidates,
        n_clusters=n_clusters,
    )
    return answer, time.process_time() - start


def acts_on(part: Part, models: Models) -> bool:
    """Tell whether a part that works on rows has done anything to these."""
    if part.name == "wild rows set aside":
        return bool(models.learners.wild)
    return bool(models.selection.in_order) or part.name.startswith("SerialRule")


def models_without(part: Part, models: Models, rows: Rows, candidates: Any) -> Models:
    """Return what the learners select and exchange without a part."""
    if part.kind == "rows":
        return Models.of(rows, candidates)
    return models.noise_anew() if part.kind == "noise" else models


def _given(models: Models, candidates: Any, truth: Any) -> Any:
    """Return the labels for the true number of clusters; None where there is one, or none is true."""
    count = 1 if truth is None else len(np.unique(truth))
    return None if count == 1 else searched(models, candidates, count)[0].labels


def _numbers(part: Part, models: Models, rows: Rows, candidates: Any) -> tuple[Any, ...]:
    """Return K, the indices with K unknown and given, whether the answer is clear, and the seconds."""
    try:
        mine = models_without(part, models, rows, candidates)
    # Without a part the rows may be refused: nobody is clustered.
    except ValueError:
        return 0, "0", "0", 1, "0"
    answer, seconds = searched(mine, candidates)
    given = _index(rows.truth, _given(mine, candidates, rows.truth))
    index = _index(rows.truth, answer.labels)
    return answer.n_clusters, index, given, int(answer.clear), f"{seconds:.3f}"


def one_draw(folder: str, setting: str, kind: str, seed: int, parts: tuple[str, ...]) -> list[dict]:
    """Return what the search finds as a whole, and without each of the named parts."""
    candidates = candidates_of(kind)
    rows = draw(folder, setting, seed)
    timed = seed == 0
    found = []
    with threadpool_limits(1), warnings.catch_warnings(), other_rules_left_out(), ExitStack() as memory:
        warnings.simplefilter("ignore")
        models = Models.of(rows, candidates)
        if not timed:
            memory.enter_context(remembered())
        whole: tuple[Any, ...] = ()
        for part in (WHOLE, *(part for part in (*PARTS, *VARIED) if part.name in parts)):
            numbers = whole
            if part.kind != "rows" or acts_on(part, models):
                with part.off():
                    numbers = _numbers(part, models, rows, candidates)
            whole = whole or numbers
            *answers, seconds = numbers
            values = folder, setting, kind, seed, part.name, *answers, seconds if timed else ""
            found.append(dict(zip(COLUMNS, values, strict=True)))
    return found


def _index(truth: Any, labels: Any) -> str:
    return "" if truth is None or labels is None else f"{adjusted_rand_score(truth, labels):.4f}"
