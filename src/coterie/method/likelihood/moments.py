"""Moments of the learners' rows: sums that are as sure as the residuals say.

The first visit adds up plain sums. They give every learner a line, shrunken to the common one, and so a
left-out residual for each row. The second visit weighs rows by these residuals: those of a long tail count
less. A third adds up the weighted rows and the scores' matrix B. One sandwich matrix for all learners, in
coordinates in which each learner's information is the identity, then makes the moments as sure as B says.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coterie._arrays import Array
from coterie.method.likelihood.bound import ROUNDING, Moments, State, improve, times
from coterie.method.likelihood.features import DIRECTION, LEVEL, Features
from coterie.method.likelihood.rules import RULES

# Rounds that the visits' first lines take: they need no exact answer.
ROUNDS = (8, 12)
# A row's leverage is limited to this: beyond, a left-out residual is rounding.
MOST_LEVERAGE = 0.98
# A standard deviation in units of the median absolute deviation of normal residuals.
MAD = 1.4826


class Rows:
    """Features and responses of all rows, learner by learner, and their sums."""

    def __init__(self, features: Features, y: Array, offsets: Array, weights: Array | None = None) -> None:
        self.Z, self.kinds = features
        self.weights = np.ones(len(y)) if weights is None else weights
        self.y, self.offsets = y, offsets
        self.sizes = np.diff(offsets)
        self.owner = np.repeat(np.arange(len(self.sizes)), self.sizes)

    def sums(self, weights: Array, counted: Array | None = None) -> Moments:
        """Return the weighted moments of each learner; the rows' own weights count, too.

        ``counted`` (N,) is true for the rows that count; None: all do.
        """
        if counted is not None:
            weights = weights * counted
        weights = weights * self.weights
        weighted = self.Z * weights[:, None]
        spans = [slice(i, j) for i, j in zip(self.offsets[:-1], self.offsets[1:], strict=True)]
        gram = np.array([weighted[s].T @ self.Z[s] for s in spans])
        cross = np.array([weighted[s].T @ self.y[s] for s in spans])
        square = np.add.reduceat(weights * self.y**2, self.offsets[:-1])
        n_rows = self.sizes if counted is None else np.add.reduceat(counted, self.offsets[:-1])
        return Moments(gram, cross, square, n_rows.astype(float), self.kinds)

    def halves(self, weights: Array, *, in_order: bool) -> tuple[Moments, Moments]:
        """Return the moments of halves of the rows: every other row, or blocks where rows are in order."""
        index = np.arange(len(self.y)) - self.offsets[self.owner]
        first = 2 * index < self.sizes[self.owner] if in_order else index % 2 == 0
        return self.sums(weights, first), self.sums(weights, ~first)

    def second_moments(self, values: Array) -> Array:
        """Return the sum over rows of values squared times zz', (L, d, d), with z a row's features."""
        scores = self.Z * values[:, None]
        return np.array(
            [scores[i:j].T @ scores[i:j] for i, j in zip(self.offsets[:-1], self.offsets[1:], strict=True)]
        )

    def medians(self, values: Array) -> Array:
        """Return the median (L,) of values (N,) inside each learner: the mean of the two middle ones."""
        order = np.lexsort((values, self.owner))
        middle = self.offsets[:-1] + (self.sizes - 1) // 2
        upper = self.offsets[:-1] + self.sizes // 2
        return np.asarray((values[order[middle]] + values[order[upper]]) / 2)


def starting_variances(moments: Moments) -> dict[str, Array]:
    """Return the forms of Omega's diagonal that compete: nothing, a level, every coordinate of its own.

    Omega^-1 is the variance of learners' own departures from their cluster's line; arrays have the shape
    (d,). They are multiples of the average learner's variance of estimation.
    """
    d = len(moments.kinds)
    usual = d / max(float(np.trace(moments.gram.mean(axis=0))), 1e-12)
    level = np.where(moments.kinds == LEVEL, RULES.start_cluster * usual, 0.0)
    return {"none": np.zeros(d), "level": level, "all": np.full(d, RULES.start_own * usual)}


def one_cluster(moments: Moments, own: Array, tau: Array) -> State:
    """Return the start of a single cluster, with variances of departures (d,) and noise precisions (L,)."""
    L, d = moments.cross.shape
    # A direction has no part in the common line: its precision is as good as infinite.
    precision = np.where(moments.kinds == DIRECTION, 1 / ROUNDING, 1.0)
    return State(np.ones((L, 1)), np.zeros(d), own, precision, tau)


def first_precisions(moments: Moments) -> Array:
    """Return noise precisions to start from: half the response is noise."""
    if moments.unit_noise:
        return np.ones(len(moments.n_rows))
    return np.asarray(2 * moments.n_rows / np.maximum(moments.square, 1e-9))


def _left_out(rows: Rows, moments: Moments, weights: Array, rounds: int) -> tuple[Array, Array]:
    """Return each row's residual and left-out residual (N,) from its learner's shrunken line.

    A line is shrunken to the common one. Left out, a row's residual is the residual over one minus its
    leverage, the share of its own response in its prediction; so no line is fitted again.
    """
    start = one_cluster(moments, starting_variances(moments)["all"], first_precisions(moments))
    state, _, _, _, common, _ = improve(moments, start, rounds=rounds)
    tau, v = state.noise_precision, state.own_variance
    gram = moments.gram * tau[:, None, None]
    S = v[:, None] * np.linalg.inv(np.eye(len(v)) + gram * v)
    lines = common + times(S, tau[:, None] * (moments.cross - moments.gram @ common))
    owner, Z = rows.owner, rows.Z
    residuals = rows.y - (Z * lines[owner]).sum(axis=1)
    leverage = np.empty(len(rows.y))
    for j, (i, k) in enumerate(zip(rows.offsets[:-1], rows.offsets[1:], strict=True)):
        leverage[i:k] = ((Z[i:k] @ S[j]) * Z[i:k]).sum(axis=1) * tau[j]
    return residuals, residuals / (1 - np.minimum(weights * rows.weights * leverage, MOST_LEVERAGE))


def _root(matrices: Array) -> tuple[Array, Array]:
    """Return symmetric square roots of matrices (..., d, d) and their inverses.

    Eigenvalues below 1e-10 of the largest are rounding, and count as that.
    """
    size, axes = np.linalg.eigh((matrices + matrices.swapaxes(-1, -2)) / 2)
    size = np.sqrt(np.maximum(size, 1e-10 * size[..., -1:]))[..., None, :]
    back = axes.swapaxes(-1, -2)
    return (axes * size) @ back, (axes / size) @ back


def sandwiched(moments: Moments, scores: Array, noise: Array) -> Moments:
    """Make the moments as sure as the scores' matrices B (L, d, d) say, at noise levels (L,).

    One matrix C of inflation serves all learners. It is shrunken to a multiple of the identity by Ledoit and
    Wolf's rule, and never below the identity. Every learner's own least squares stay as they are.

    Sums X'X promise the precision of independent normal rows. B, the sum of squared residuals times zz',
    says how much the sums really vary. With too few learners or rows to know C, moments stay as they are.
    """
    gram, cross, square, n_rows = moments[:4]
    L, d = cross.shape
    if L < 3 or n_rows.sum() < 3 * d:
        return moments
    root, inverse = _root(gram)
    enough = n_rows > 2 * d
    if enough.sum() > 2 and n_rows[enough].sum() > 0.5 * n_rows.sum():
        M = inverse[enough] @ scores[enough] @ inverse[enough] / noise[enough, None, None]
    else:
        _, usual = _root((gram / noise[:, None, None]).mean(axis=0))
        M = usual @ (scores / noise[:, None, None] ** 2) @ usual
    C = M.mean(axis=0)
    plain = np.trace(C) / d * np.eye(d)
    deviation = ((M - C) ** 2).sum() / len(M) ** 2
    share = max(0.0, 1 - deviation / max(((C - plain) ** 2).sum(), 1e-12))
    size, axes = np.linalg.eigh(share * C + (1 - share) * plain)
    own = times(inverse @ inverse, cross)
    gram = root @ ((axes / np.maximum(size, 1.0)) @ axes.T) @ root
    new = times(gram, own)
    square = square - (cross * own).sum(axis=1) + (new * own).sum(axis=1)
    return moments._replace(gram=gram, cross=new, square=square)


def robust_weights(rows: Rows, left_out: Array) -> Array:
    """Return weights (N,) that make the squares of left-out residuals count up to nine squared noise levels.

    A learner's level is a robust one, drawn to the median learner's, as a few rows show it badly.
    """
    levels = np.log(np.maximum(MAD * rows.medians(np.abs(left_out)), 1e-9))
    few = RULES.rows_of_the_median
    levels += (np.median(levels) - levels) * few / (few + rows.sizes)
    largest = RULES.clip * np.exp(2 * levels)[rows.owner]
    return np.asarray(np.minimum(1.0, largest / np.maximum(left_out**2, 1e-300)))


class Added(NamedTuple):
    """Moments as sure as their residuals say, plain moments of halves of the rows, and the rows' weights."""

    moments: Moments
    halves: tuple[Moments, Moments]
    weights: Array


def add_up(rows: Rows, weights: Array | None = None, *, in_order: bool = False) -> Added:
    """Add up the rows; with ``weights`` (N,) these are used, and no robust ones are made.

    Without, each visit weighs rows by the residuals of the visit before: rows of a long tail count less.
    ``in_order`` says that neighbouring rows depend on each other, so that halves are blocks.
    """
    given, w = weights is not None, np.ones(len(rows.y)) if weights is None else weights
    for rounds in ROUNDS:
        residuals, left_out = _left_out(rows, rows.sums(w), w, rounds)
        if not given:
            w = robust_weights(rows, left_out)
    size = w * rows.weights * np.abs(residuals * left_out)
    noise = np.maximum(np.bincount(rows.owner, size) / rows.sizes, 1e-12)
    # B of the sandwich: residual times left-out residual stands for a row's squared residual.
    scores = rows.second_moments(np.sqrt(w * rows.weights * size))
    return Added(sandwiched(rows.sums(w), scores, noise), rows.halves(w, in_order=in_order), w)
