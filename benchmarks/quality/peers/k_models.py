"""K-models: refit each cluster on its learners' rows, move each learner to the model that predicts it best.

Losses are cross-fitted: the model of one half of the rows predicts the other half, since flexible families
predict whatever they were trained on. The number of clusters: partitions are searched on one half of the rows
alone and scored on the other; the lowest loss wins.
"""

from __future__ import annotations

import time

import numpy as np
from problem import LINES, Answer, Array, Problem, fill_empty

ROUNDS = 20
# Further numbers of clusters that are tried once more of them lose.
PATIENCE = 2


def _masks(problem: Problem, parts: int, generator: np.random.Generator) -> list[Array]:
    """Return the part of each row: whole numbers that are as frequent as can be."""
    return [generator.permutation(np.arange(len(y)) % parts) for y in problem.y]


def _losses(problem: Problem, labels: Array, k: int, part: list[Array], pairs: list[tuple]) -> Array:
    """Return losses of shape (L, K): models of the first part of a pair, scored on its second."""
    sums = np.zeros((problem.n_learners, k))
    counts = np.zeros((problem.n_learners, 1))
    for trained, scored in pairs:
        for c in range(k):
            model = problem.fit(np.flatnonzero(labels == c), [p == trained for p in part])
            rows = [X[p == scored] for X, p in zip(problem.X, part, strict=True)]
            squares = np.square(
                np.concatenate([y[p == scored] for y, p in zip(problem.y, part, strict=True)])
                - model.predict(np.vstack(rows))
            )
            cuts = np.cumsum([len(r) for r in rows])
            sums[:, c] += np.add.reduceat(squares, np.r_[0, cuts[:-1]])
        counts[:, 0] += np.diff(np.r_[0, cuts])
    return sums / counts


def _search(problem: Problem, k: int, part: list[Array], pairs: list[tuple], restarts: int, rng) -> Array:
    best, best_loss = np.zeros(problem.n_learners, dtype=int), np.inf
    for _ in range(restarts if k > 1 else 1):
        labels = rng.permutation(np.arange(problem.n_learners) % k)
        for _ in range(ROUNDS):
            losses = _losses(problem, labels, k, part, pairs)
            loss = losses[np.arange(len(labels)), labels].mean()
            if loss < best_loss:
                best, best_loss = labels, loss
            moved = fill_empty(losses.argmin(axis=1), losses)
            if (moved == labels).all():
                break
            labels = moved
    return best


def given(problem: Problem, k: int, restarts: int) -> Array:
    """Return the partition into k clusters with the lowest cross-fitted loss."""
    rng = np.random.default_rng(problem.seed)
    return _search(problem, k, _masks(problem, 2, rng), [(0, 1), (1, 0)], restarts, rng)


def _held_out_loss(problem: Problem, k: int, restarts: int) -> float:
    """Return the loss on each half of partitions that were found on the other half's two quarters."""
    rng = np.random.default_rng(problem.seed)
    quarter = _masks(problem, 4, rng)
    total = 0.0
    for searched, scored in (((0, 1), (2, 3)), ((2, 3), (0, 1))):
        a, b = searched
        labels = _search(problem, k, quarter, [(a, b), (b, a)], restarts, rng)
        halves = [np.isin(p, scored).astype(int) for p in quarter]
        losses = _losses(problem, labels, k, halves, [(0, 1)])
        total += losses[np.arange(len(labels)), labels].mean()
    return total


def run(problem: Problem) -> list[Answer]:
    """Return the partition for the given number of clusters, and for the number that predicts best."""
    # A forest costs a hundred times as much as a line.
    restarts, restarts_unknown = (10, 3) if problem.family is LINES else (3, 1)
    start = time.perf_counter()
    labels = given(problem, problem.n_clusters, restarts)
    answers = [Answer("K-models, K given", labels, time.perf_counter() - start)]
    start = time.perf_counter()
    losses: list[float] = []
    while len(losses) < problem.most and len(losses) - int(np.argmin([*losses, np.inf])) <= PATIENCE:
        losses.append(_held_out_loss(problem, len(losses) + 1, restarts_unknown))
    labels = given(problem, int(np.argmin(losses)) + 1, restarts)
    return [*answers, Answer("K-models, held-out loss", labels, time.perf_counter() - start)]
