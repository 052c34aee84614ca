"""Second moments of every learner's rows, over the rows that some folds train on.

Rows are measured in common units. Rows that the same folds train on are summed once for each learner, so that
the moments without any fold, or without any two of them, are sums of these.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coterie._arrays import Array
from coterie.collaboration.nested.guard import widened
from coterie.rows.learners import Learners

# Lines of more predictors than this are not fitted; levels are.
MOST_PREDICTORS = 500
# Moments of single learners take at most this many numbers (160 MB); beyond that, no slopes of their own.
MOST_NUMBERS = 2e7
# With more predictors than this, slopes of one's own have not been seen to bring anything.
MOST_SLOPES = 60


@dataclass(frozen=True)
class Units:
    """Common units of the predictors and of the response.

    A predictor is clipped to ``low`` and ``high``, its range in training with a margin, and measured from
    ``centre`` in units of ``spread``, all of shape (p,); the response from ``middle`` in units of ``size``.
    """

    centre: Array
    spread: Array
    low: Array
    high: Array
    middle: float
    size: float

    @classmethod
    def of(cls, X: Array, y: Array) -> Units:
        """Return units in which rows (N, p) and responses (N,) have mean zero and variance one."""
        if X.shape[1] > MOST_PREDICTORS:
            X = X[:, :0]
        spread, size = X.std(axis=0), float(y.std())
        return cls(
            X.mean(axis=0),
            np.where(spread > 0, spread, 1.0),
            *widened(X),
            float(y.mean()),
            size if size > 0 else 1.0,
        )

    def rows(self, X: Array) -> Array:
        """Return rows of shape (N, q) in common units, a column of ones behind them."""
        clipped = np.clip(X[:, : len(self.centre)], self.low, self.high)
        return np.column_stack([(clipped - self.centre) / self.spread, np.ones(len(X))])

    def response(self, y: Array) -> Array:
        """Return responses in common units."""
        return (y - self.middle) / self.size

    def outside(self, coefficients: Array, *, level: bool = True) -> Array:
        """Return coefficients (..., q) for predictors and response as they came; ``level``: of whole y."""
        slopes = coefficients[..., :-1] / self.spread * self.size
        intercept = coefficients[..., -1] * self.size - slopes @ self.centre
        return np.concatenate([slopes, (intercept + (self.middle if level else 0.0))[..., None]], axis=-1)


@dataclass(frozen=True)
class Sums:
    """Moments over some rows: of each of L learners, and over all of them.

    ``counts`` (L,) are rows, ``inputs`` (L, q) sums of z, ``products`` (L, q) of z y, ``squares`` (L,) of y
    y, ``total`` (q, q) is that of z z' over all learners, and ``grams`` (L, q, q) of each; None: not kept.
    """

    counts: Array
    inputs: Array
    products: Array
    squares: Array
    total: Array
    grams: Array | None

    def take(self, members: Array, total: Array | None = None) -> Sums:
        """Return the moments of some learners; ``total`` is theirs where ``grams`` are not kept."""
        grams = None if self.grams is None else self.grams[members]
        if grams is not None:
            total = grams.sum(axis=0)
        assert total is not None
        return Sums(
            self.counts[members],
            self.inputs[members],
            self.products[members],
            self.squares[members],
            total,
            grams,
        )


def _cell_sums(values: Array, starts: Array, cells: Array, n_cells: int) -> Array:
    """Return the sums of values over consecutive rows, by cell."""
    sums = np.zeros((n_cells, *values.shape[1:]))
    sums[cells] = np.add.reduceat(values, starts, axis=0)
    return sums


class FoldSums:
    """The moments of learners' rows, by which folds train on them.

    ``Z`` (N, q) and ``y`` (N,) are in common units; ``training`` (F, N) marks the rows that each fold trains
    on. ``slopes`` says whether moments of single learners are kept.
    """

    def __init__(self, Z: Array, y: Array, learners: Learners, training: Array) -> None:
        """Add up the moments of rows by learner and by which folds train on them."""
        patterns, codes = np.unique(training.T, axis=0, return_inverse=True)
        self._patterns, n_patterns, n = patterns, len(patterns), len(learners)
        self._codes, self._Z, self._owner = codes.ravel(), Z, learners.owner
        self._weights = np.ones(len(y)) if learners.weights is None else learners.weights
        key = learners.owner * n_patterns + self._codes
        order = np.argsort(key, kind="stable")
        starts = np.flatnonzero(np.r_[True, np.diff(key[order]) > 0])
        cells, weights = key[order][starts], self._weights[order]
        weighted, response = Z[order] * weights[:, None], y[order]
        shape = n, n_patterns
        self._counts = _cell_sums(weights, starts, cells, n * n_patterns).reshape(shape)
        self._squares = _cell_sums(weights * response**2, starts, cells, n * n_patterns).reshape(shape)
        self._inputs = _cell_sums(weighted, starts, cells, n * n_patterns).reshape(*shape, -1)
        self._products = _cell_sums(weighted * response[:, None], starts, cells, n * n_patterns).reshape(
            *shape, -1
        )
        self.slopes = Z.shape[1] - 1 <= MOST_SLOPES and n * n_patterns * Z.shape[1] ** 2 <= MOST_NUMBERS
        self._grams = None
        if self.slopes:
            grams = np.zeros((n * n_patterns, Z.shape[1], Z.shape[1]))
            rows = Z[order]
            for cell, start, stop in zip(cells, starts, [*starts[1:], len(y)], strict=True):
                grams[cell] = weighted[start:stop].T @ rows[start:stop]
            self._grams = grams.reshape(*shape, Z.shape[1], Z.shape[1])

    def _patterns_trained_on(self, folds: tuple[int, ...]) -> Array:
        """Return which patterns of folds all of the given folds train on."""
        trained_on = self._patterns[:, list(folds)]
        return np.asarray(trained_on.all(axis=1))

    def rows(self, folds: tuple[int, ...]) -> Array:
        """Return which rows all of some folds train on, of shape (N,); of no folds: all rows."""
        training: Array = self._patterns_trained_on(folds)[self._codes]
        return training

    def total(self, folds: tuple[int, ...], members: Array | None = None) -> Array:
        """Return z z' summed over those rows, of shape (q, q), of all learners or of ``members`` (L,)."""
        rows = self.rows(folds) if members is None else self.rows(folds) & members[self._owner]
        total: Array = (self._Z[rows] * self._weights[rows, None]).T @ self._Z[rows]
        return total

    def within(self, folds: tuple[int, ...] = ()) -> Sums:
        """Return the moments over the rows that all of some folds train on; of no folds: all rows."""
        patterns = self._patterns_trained_on(folds)
        grams = None if self._grams is None else self._grams[:, patterns].sum(axis=1)
        return Sums(
            self._counts[:, patterns].sum(axis=1),
            self._inputs[:, patterns].sum(axis=1),
            self._products[:, patterns].sum(axis=1),
            self._squares[:, patterns].sum(axis=1),
            self.total(folds) if grams is None else grams.sum(axis=0),
            grams,
        )
