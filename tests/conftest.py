"""Small learners with known truths, and the double loop that every kernel must agree with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from coterie import cross_evaluate, select_models
from coterie.method.refine.losses import LocalLosses, halves_of
from coterie.records import Exchange, Selection
from coterie.rows.learners import Learners, gather_learners


@pytest.fixture(scope="session")
def make_learners() -> Callable[..., Learners]:
    """Learners of unequal sizes whose response follows one of two truths."""

    def make(
        sizes: Sequence[int] = (12, 9, 15, 10, 11),
        n_features: int = 2,
        noise: float = 0.5,
        weighted: bool = False,
        seed: int = 0,
        truth: Callable[[Any, Any], Any] | None = None,
    ) -> Learners:
        rng = np.random.default_rng(seed)
        owner = np.repeat(np.arange(len(sizes)), sizes)
        X = rng.normal(size=(len(owner), n_features)) + rng.normal(size=(len(sizes), n_features))[owner]
        slopes = rng.normal(size=(2, n_features))[owner % 2]
        y = (X * slopes).sum(axis=1) + 1.0 if truth is None else truth(X, owner)
        y = y + noise * rng.uniform(0.5, 1.5, size=len(sizes))[owner] * rng.normal(size=len(owner))
        weights = rng.uniform(0.2, 3.0, size=len(owner)) if weighted else None
        return gather_learners(X, y, owner, sample_weight=weights, caller="test")

    return make


@pytest.fixture(scope="session")
def select() -> Callable[..., Selection]:
    """Select, in the order of the learners."""

    def run(learners: Learners, candidates: Any) -> Selection:
        chosen: Selection = select_models(learners, candidates=candidates).aligned_to(learners.ids)
        return chosen

    return run


@pytest.fixture(scope="session")
def evaluate() -> Callable[..., Exchange]:
    """Exchange, in the order of the learners."""

    def run(learners: Learners, selection: Selection) -> Exchange:
        exchange: Exchange = cross_evaluate(selection, learners).aligned_to(learners.ids)
        return exchange

    return run


@pytest.fixture(scope="session")
def double_loop() -> Callable[..., Any]:
    """Predict with every model on every learner, one by one."""

    def losses(models: Sequence[Any], learners: Learners, clips: Any = None) -> Any:
        table = np.empty((len(models), len(learners)))
        for i, model in enumerate(models):
            for j in range(len(learners)):
                span = learners.span(j)
                squares = (np.ravel(model.predict(learners.X[span])) - learners.scalar_y[span]) ** 2
                squares = squares if clips is None else np.minimum(squares, clips[j])
                weights = None if learners.weights is None else learners.weights[span]
                table[i, j] = np.average(squares, weights=weights)
        return table

    return losses


@pytest.fixture(scope="session")
def rows_by_hand() -> Callable[..., Any]:
    """Losses of shape (K, N) from explicit residuals, in the order in which the rows were gathered."""

    def losses(
        learners: Learners, selection: Selection, labels: Any, residuals_of: Callable[[int, int], Any]
    ) -> Any:
        table = np.empty((int(labels.max()) + 1, len(learners.y)))
        for k in range(len(table)):
            for j in range(len(learners)):
                span = learners.span(j)
                residuals = residuals_of(k, j)
                if residuals is None and labels[j] != k:
                    table[k, span] = np.inf
                    continue
                # Nobody is left in the learner's own cluster: its own honest residuals answer.
                residuals = selection.residuals[j][:, 0] if residuals is None else residuals
                table[k, span] = np.minimum(residuals**2, selection.clips[j])
                if learners.weights is not None:
                    table[k, span] *= learners.weights[span]
        return table

    return losses


@pytest.fixture(scope="session")
def halves_by_hand() -> Callable[..., Any]:
    """Means of such losses over the two halves of each learner, of shape (K, L, 2)."""

    def means(learners: Learners, selection: Selection, rows: Any) -> Any:
        halves = np.zeros((len(rows), len(learners), 2))
        for j in range(len(learners)):
            second = halves_of(selection.folds[j])
            for h in (0, 1):
                mine = learners.offsets[j] + np.flatnonzero(second == h)
                if len(mine):
                    halves[:, j, h] = rows[:, mine].mean(axis=1)
        return halves

    return means


@pytest.fixture(scope="session")
def in_order() -> Callable[..., Any]:
    """Bring the rows of an answer back into the order in which they were gathered."""

    def back(losses: LocalLosses, values: Any) -> Any:
        return values[..., np.argsort(losses.learners.rows)]

    return back


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the tests that wait most, for Flower to give up a node: others run meanwhile."""
    items.sort(key=lambda item: "test_deployment" not in item.nodeid)
