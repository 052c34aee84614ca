"""Sums of squares and products of predictors and response (second moments), by learner and by fold.

Rows are measured in common units. Rows that the same folds train on are summed once for each learner, so that
the sums without any fold, or without any two of them, are sums of these.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coterie._arrays import Array
from coterie.collaboration.nested.guard import widened
from coterie.rows.learners import Learners

# Lines of more predictors than this are not fitted; levels are.
MOST_PREDICTORS = 500
# Gram matrices of single learners have at most this many entries (160 MB); else no slopes of their own.
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
        """Return units in which predictors X (N, p) and response y (N,) have mean zero and variance one.

        With more than `MOST_PREDICTORS` predictors, none enters a line. ``low`` and ``high`` are what
        predictors are clipped to later. A constant column or response has unit one.
        """
        if X.shape[1] > MOST_PREDICTORS:
            X = X[:, :0]
        spread, size, (low, high) = X.std(axis=0), float(y.std()), widened(X)
        return cls(
            centre=X.mean(axis=0),
            spread=np.where(spread > 0, spread, 1.0),
            low=low,
            high=high,
            middle=float(y.mean()),
            size=size if size > 0 else 1.0,
        )

    def rows(self, X: Array) -> Array:
        """Return rows X (N, p) in common units, with a column of ones at the end, of shape (N, q), q = p + 1.

        Predictors are clipped to their range in training, so that lines do not extrapolate far.
        """
        clipped = np.clip(X[:, : len(self.centre)], self.low, self.high)
        return np.column_stack([(clipped - self.centre) / self.spread, np.ones(len(X))])

    def response(self, y: Array) -> Array:
        """Return responses in common units: mean zero and variance one over all learners."""
        return (y - self.middle) / self.size

    def outside(self, coefficients: Array, *, level: bool = True) -> Array:
        """Return coefficients (..., q) for predictors and response in their own units.

        They were fitted in common units. If ``level`` is false, the mean response of all learners is
        left out of the intercept: the caller adds it once, weighted.
        """
        slopes = coefficients[..., :-1] / self.spread * self.size
        intercept = coefficients[..., -1] * self.size - slopes @ self.centre
        return np.concatenate([slopes, (intercept + (self.middle if level else 0.0))[..., None]], axis=-1)


@dataclass(frozen=True)
class Sums:
    """Sums of squares and products (second moments) over some rows, by learner and over all learners.

    For L learners, rows z (q,) and responses y: ``counts`` (L,) are the rows' weights, ``inputs`` (L, q)
    sums of z, ``products`` (L, q) sums of z y, and ``squares`` (L,) sums of y y. ``total`` (q, q) is the
    sum of z z' over all learners, ``grams`` (L, q, q) that of each learner, or None where it is not kept.
    """

    counts: Array
    inputs: Array
    products: Array
    squares: Array
    total: Array
    grams: Array | None

    def take(self, members: Array, total: Array | None = None) -> Sums:
        """Return the sums of some learners only, chosen by ``members``, a mask or positions.

        ``total`` (q, q) is their sum of z z'; it is needed where ``grams`` are not kept.
        """
        grams = None if self.grams is None else self.grams[members]
        if grams is not None:
            total = grams.sum(axis=0)
        assert total is not None
        return Sums(
            counts=self.counts[members],
            inputs=self.inputs[members],
            products=self.products[members],
            squares=self.squares[members],
            total=total,
            grams=grams,
        )


def _cell_sums(row_values: Array, first_rows: Array, cells: Array, n_cells: int) -> Array:
    """Return sums of ``row_values`` (N, ...) over runs of consecutive rows, of shape (n_cells, ...).

    Run i begins at row ``first_rows[i]`` and is summed into cell ``cells[i]``; other cells are zero.
    """
    sums = np.zeros((n_cells, *row_values.shape[1:]))
    sums[cells] = np.add.reduceat(row_values, first_rows, axis=0)
    return sums


class FoldSums:
    """Sums of squares and products of learners' rows, kept by which folds train on the rows.

    ``Z`` (N, q) and ``y`` (N,) are in common units; ``training`` (F, N) marks the rows that each fold
    trains on. The attribute ``slopes`` says whether Gram matrices of single learners are kept.
    """

    def __init__(self, Z: Array, y: Array, learners: Learners, training: Array) -> None:
        """Sum rows by cell: the rows of one learner that the same set of folds trains on.

        The sums without any one or two folds then are sums over cells, without another pass over the rows.
        """
        # A pattern (F,) says which folds train on a row.
        patterns, pattern_of_row = np.unique(training.T, axis=0, return_inverse=True)
        self._patterns, n_patterns, n_learners = patterns, len(patterns), len(learners)
        self._codes, self._Z, self._owner = pattern_of_row.ravel(), Z, learners.owner
        self._weights = np.ones(len(y)) if learners.weights is None else learners.weights
        cell_of_row = learners.owner * n_patterns + self._codes
        order = np.argsort(cell_of_row, kind="stable")
        first_rows = np.flatnonzero(np.r_[True, np.diff(cell_of_row[order]) > 0])
        cells, weights = cell_of_row[order][first_rows], self._weights[order]
        weighted_rows, response = Z[order] * weights[:, None], y[order]
        shape = n_learners, n_patterns
        self._counts = _cell_sums(weights, first_rows, cells, n_learners * n_patterns).reshape(shape)
        self._squares = _cell_sums(weights * response**2, first_rows, cells, n_learners * n_patterns).reshape(
            shape
        )
        self._inputs = _cell_sums(weighted_rows, first_rows, cells, n_learners * n_patterns).reshape(
            *shape, -1
        )
        self._products = _cell_sums(
            weighted_rows * response[:, None], first_rows, cells, n_learners * n_patterns
        ).reshape(*shape, -1)
        self.slopes = (
            Z.shape[1] - 1 <= MOST_SLOPES and n_learners * n_patterns * Z.shape[1] ** 2 <= MOST_NUMBERS
        )
        self._grams = None
        if self.slopes:
            grams = np.zeros((n_learners * n_patterns, Z.shape[1], Z.shape[1]))
            ordered_rows = Z[order]
            for cell, first_row, end_row in zip(cells, first_rows, [*first_rows[1:], len(y)], strict=True):
                grams[cell] = weighted_rows[first_row:end_row].T @ ordered_rows[first_row:end_row]
            self._grams = grams.reshape(*shape, Z.shape[1], Z.shape[1])

    def _patterns_trained_on(self, folds: tuple[int, ...]) -> Array:
        """Mark the patterns (P,) of rows that all of the given folds train on."""
        trained_on = self._patterns[:, list(folds)]
        return np.asarray(trained_on.all(axis=1))

    def rows(self, folds: tuple[int, ...]) -> Array:
        """Mark the rows (N,) that all of the given folds train on; all rows if no fold is given."""
        training: Array = self._patterns_trained_on(folds)[self._codes]
        return training

    def total(self, folds: tuple[int, ...], members: Array | None = None) -> Array:
        """Return the sum of z z', of shape (q, q), over the rows that all of the given folds train on.

        ``members`` (L,) marks the learners whose rows count; None: all.
        """
        rows = self.rows(folds) if members is None else self.rows(folds) & members[self._owner]
        total: Array = (self._Z[rows] * self._weights[rows, None]).T @ self._Z[rows]
        return total

    def within(self, folds: tuple[int, ...] = ()) -> Sums:
        """Return the sums over the rows that all of the given folds train on; no fold: over all rows."""
        patterns = self._patterns_trained_on(folds)
        grams = None if self._grams is None else self._grams[:, patterns].sum(axis=1)
        return Sums(
            counts=self._counts[:, patterns].sum(axis=1),
            inputs=self._inputs[:, patterns].sum(axis=1),
            products=self._products[:, patterns].sum(axis=1),
            squares=self._squares[:, patterns].sum(axis=1),
            total=self.total(folds) if grams is None else grams.sum(axis=0),
            grams=grams,
        )
