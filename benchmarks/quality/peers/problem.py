"""What every peer is given: learners' rows, a family of models, and the number of clusters or a bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.preprocessing import PolynomialFeatures

Array = np.ndarray


@dataclass(frozen=True)
class Family:
    """How a peer models a relation: by refitting ``make()``, or linearly in the columns of ``basis(X)``."""

    make: Callable[[], Any]
    basis: Callable[[Array], Array]


class Line:
    """Least squares with an intercept, without the checks that cost more than the arithmetic."""

    def fit(self, X: Array, y: Array) -> Line:
        """Fit."""
        Z = np.column_stack([X, np.ones(len(X))])
        self._weights = np.linalg.lstsq(Z, y, rcond=None)[0]
        return self

    def predict(self, X: Array) -> Array:
        """Predict."""
        return X @ self._weights[:-1] + self._weights[-1]


def _squares_and_products(X: Array) -> Array:
    return PolynomialFeatures(2, include_bias=False).fit_transform(X)


# Peers that are linear by nature get squares and products where truths are curved: lines would flatter us.
LINES = Family(Line, lambda X: X)
FORESTS = Family(lambda: RandomForestRegressor(15, min_samples_leaf=2, random_state=0), _squares_and_products)


@dataclass(frozen=True)
class Problem:
    """Learners to be clustered, in units that all peers share."""

    X: list[Array]
    y: list[Array]
    n_clusters: int
    most: int
    family: Family
    seed: int

    @property
    def n_learners(self) -> int:
        """Number of learners."""
        return len(self.y)

    @cached_property
    def designs(self) -> list[Array]:
        """The basis of each learner's rows, and a column of ones."""
        return [np.column_stack([self.family.basis(X), np.ones(len(X))]) for X in self.X]

    @cached_property
    def coefficients(self) -> Array:
        """Least squares on each learner's rows alone."""
        pairs = zip(self.designs, self.y, strict=True)
        return np.array([np.linalg.lstsq(Z, y, rcond=None)[0] for Z, y in pairs])

    def fit(self, members: Array, rows: list[Array] | None = None) -> Any:
        """Fit one model on the members' pooled rows, or on those that a mask per learner leaves."""
        pick = [slice(None)] * self.n_learners if rows is None else rows
        X = np.vstack([self.X[j][pick[j]] for j in members])
        y = np.concatenate([self.y[j][pick[j]] for j in members])
        return self.family.make().fit(X, y)


@dataclass(frozen=True)
class Answer:
    """What a method found, and what it predicts for the test rows where it brings models of its own."""

    method: str
    labels: Array
    seconds: float
    predictions: Array | None = None


def fill_empty(labels: Array, losses: Array) -> Array:
    """Give every cluster without members the learner that its own cluster predicts worst."""
    labels = labels.copy()
    worst = np.argsort(-losses[np.arange(len(labels)), labels], kind="stable")
    for k in range(losses.shape[1]):
        if not (labels == k).any():
            labels[next(j for j in worst if (labels == labels[j]).sum() > 1)] = k
    return labels
