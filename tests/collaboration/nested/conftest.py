"""Learners of two linear truths, in the order in which the stages keep them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from coterie import cluster_learners, cross_evaluate, select_models
from coterie.records import Exchange, Partition, Selection
from coterie.rows.learners import Learners, gather_learners


@dataclass(frozen=True)
class Staged:
    """Learners and what the stages found, all in the same order."""

    learners: Learners
    selection: Selection
    exchange: Exchange
    partition: Partition


def two_truths(
    sizes: tuple[int, ...] = (20,) * 8, level: float = 0.0, noise: float = 0.3, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of learners who follow x0 or -x0, in turn, at levels of their own."""
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    X = rng.normal(size=(len(owner), 2))
    slopes = np.where(owner % 2, -1.0, 1.0)
    y = slopes * X[:, 0] + level * rng.normal(size=len(sizes))[owner] + noise * rng.normal(size=len(owner))
    return X, y, owner


@pytest.fixture(scope="session")
def staged() -> Callable[..., Staged]:
    """Run the stages on learners of two truths."""

    def run(candidates: Any = ("lr",), weights: Any = None, **options: Any) -> Staged:
        X, y, owner = two_truths(**options)
        learners = gather_learners(X, y, owner, sample_weight=weights, caller="test")
        selection = select_models(learners, candidates=list(candidates)).aligned_to(learners.ids)
        exchange = cross_evaluate(selection, learners).aligned_to(learners.ids)
        partition = cluster_learners(exchange, learners, selection=selection, n_clusters=2)
        return Staged(learners, selection, exchange, partition.aligned_to(learners.ids))

    return run
