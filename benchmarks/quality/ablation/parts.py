"""The parts of the default search, and how each is switched off from outside.

A part is switched off by patching the function, the option or the rule in which it lives, so that the source
knows nothing of this benchmark. Three kinds differ in what has to be made again without the part:

- ``search``: the search alone;
- ``noise``: what is said of the learners' noise, and the search;
- ``rows``: everything, from the rows on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np

from coterie.method.n_clusters.held_out import RULE
from coterie.method.refine.flexible import FlexibleRule

Patches = Callable[[], list[Any]]


@dataclass(frozen=True)
class Part:
    """One part of the search.

    Parameters
    ----------
    name : str
        As in the table.
    patches : callable
        Returns what switches the part off.
    kind : {"search", "noise", "rows"}, default="search"
        What has to be made again.
    """

    name: str
    patches: Patches
    kind: str = "search"

    @contextmanager
    def off(self) -> Iterator[None]:
        """Switch the part off for a while."""
        with ExitStack() as stack:
            for each in self.patches():
                stack.enter_context(each)
            yield


def _set(place: str, value: Any) -> Patches:
    return lambda: [patch(f"coterie.{place}", value)]


def _everybody_together(evidence: Any, n_clusters: int) -> Any:
    return np.zeros(evidence.n_learners, dtype=np.int64)


def _two_errors(_: int) -> float:
    return RULE.standard_errors


def _no_clips(residuals: Any, *_: Any) -> Any:
    return np.full(len(residuals), np.inf)


def _equal_weights() -> list[Any]:
    modules = ("pooled", "refits")
    return [patch(f"coterie.method.refine.{module}.bounded_weights", np.ones_like) for module in modules]


def _no_wild_rows(X: Any, *_: Any) -> Any:
    return np.zeros(len(X), dtype=bool), ()


PARTS = (
    Part("start: spectral clusters", _set("method.n_clusters.evidence.Evidence.labels", _everybody_together)),
    Part("start: moments", _set("method.refine.pooled.PooledLosses.suggest", lambda *_: [])),
    Part("test of single learners", _set("method.n_clusters.held_out._nobody_worse", lambda *_: True)),
    Part("Student's quantile of few", _set("method.n_clusters.held_out.errors_allowed", _two_errors)),
    Part("test of one truth", _set("method.n_clusters.held_out._one_truth_z", lambda *_: None)),
    Part("flexible second search", _set("method.refine.refits.FLEXIBLE", FlexibleRule(share=2.0))),
    Part("one flexible model for all", _set("method.search.one_is_as_good", lambda *_: False)),
    Part("the learners' family", _set("method.refine.refits.RefitLosses.take_best_family", lambda *_: None)),
    Part("reassign", _set("method.refine.pooled.reassigned_labels", lambda *arguments: arguments[5])),
    Part("noise of mostly equal responses", _set("method.select.mostly_one_value", lambda _: False), "noise"),
    Part("clipping of losses", _set("method.select.clip_bounds", _no_clips), "noise"),
    Part("shrunken noise", _set("method.noise.shrunken_levels", lambda levels, _: levels), "noise"),
    Part("precision weights", _equal_weights, "noise"),
    Part("standard errors in order", _set("method.select.variance_inflation", lambda *_: 1.0), "noise"),
    Part("detection of order", _set("method.select.rows_depend", lambda _: False), "rows"),
    Part("wild rows set aside", _set("rows.learners.set_aside", _no_wild_rows), "rows"),
)
