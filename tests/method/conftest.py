"""Losses whose clusters are plain to see, as a matrix and as rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from coterie.datasets import make_linear_learners
from coterie.method.exchange import cross_evaluate, exchange_from_losses
from coterie.method.n_clusters.evidence import Evidence
from coterie.method.select import select_models
from coterie.records import Exchange, Selection
from coterie.rows.learners import Learners, gather_learners


@pytest.fixture(scope="session")
def block_losses() -> Callable[..., Any]:
    """Return a matrix of losses: 1 at home and among one's own kind, `between` elsewhere, and jitter.

    Without jitter eigenvalues repeat, and which of their vectors come first is rounding.
    """

    def make(sizes: Sequence[int], between: float = 9.0, jitter: float = 0.0) -> Any:
        kind = np.repeat(np.arange(len(sizes)), sizes)
        losses = np.where(kind[:, None] == kind, 1.0, between)
        losses += np.random.default_rng(0).uniform(0, jitter, losses.shape)
        np.fill_diagonal(losses, 1.0)
        return losses

    return make


@pytest.fixture(scope="session")
def evidence_of() -> Callable[..., Evidence]:
    """Return what the rules look at, from a matrix of losses."""

    def make(losses: Any, most: int | None = None, scale: float = 1.0, **known: Any) -> Evidence:
        exchange = exchange_from_losses(losses)
        most = min(8, len(losses)) if most is None else most
        return Evidence(exchange, scale, most, seed=0, **known)

    return make


@pytest.fixture(scope="session")
def three_truths() -> tuple[Learners, Selection, Exchange, Any]:
    """Twelve learners of three truths that lie far apart: rows, models, losses, truth."""
    sizes = [36 + j for j in range(12)]
    data = make_linear_learners(
        12, n_rows=sizes, coefficients=3 * np.eye(3), noise_variance=0.5, random_state=0
    )
    learners = gather_learners(data.X, data.y, data.groups, caller="test")
    selection = select_models(learners, candidates=["lr"])
    return learners, selection, cross_evaluate(selection, learners), data.truth
