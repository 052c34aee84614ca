"""A logistic line for all learners, or for each coterie, from which learners depart by shrunken effects.

For a class, the log-odds of learner j are Z (b + u_j) with u_j ~ N(0, D): offsets and slopes of one's own.
Newton's steps on the logistic loss are weighted least squares on working responses, so each step is the mixed
line of regression (`nested.line`), and the ratios in D maximise its marginal likelihood. Of more than two
classes each has lines of its own against the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from scipy.special import expit

from coterie._arrays import Array
from coterie.collaboration.nested.line import Ratios, fit_line, likely_ratios, own_effects
from coterie.collaboration.nested.sums import MOST_NUMBERS, MOST_SLOPES, Sums
from coterie.models.logistic import LEAST_SPREAD

# Steps at most, after how many of them ratios are chosen anew, and the change of log-odds that ends them.
STEPS, TURN, TOLERANCE = 12, 4, 1e-3
# A step is halved so often at most; what varies less than this does not vary.
HALVINGS, LEAST_VARIANCE = 6, 1e-9
# Log-odds beyond this differ in nothing that rows can show.
SUREST = 12.0


Effects = tuple[Array, Array]


@dataclass(frozen=True)
class ClassRows:
    """Rows in common units: ``Z`` (N, q) with a column of ones behind, classes ``Y`` (N, C) in columns.

    The rows of a learner lie together; ``owner`` (N,) is its position among ``n_learners``.
    """

    Z: Array = field(repr=False)
    Y: Array = field(repr=False)
    weights: Array = field(repr=False)
    owner: Array = field(repr=False)
    n_learners: int

    @property
    def has_slopes(self) -> bool:
        """Whether learners may have slopes of their own: moments of each are then kept."""
        size = self.Z.shape[1]
        return size - 1 <= MOST_SLOPES and bool(self.n_learners * size * size <= MOST_NUMBERS)

    def only(self, selected: Array) -> ClassRows:
        """Return some of the rows, marked by ``selected`` (N,)."""
        return ClassRows(
            self.Z[selected], self.Y[selected], self.weights[selected], self.owner[selected], self.n_learners
        )

    def sums(self, response: Array, weights: Array, members: Array | None = None) -> Sums:
        """Return moments of a response (N,), by learner and over all, or those of ``members`` (L,)."""
        weighted, n = self.Z * weights[:, None], self.n_learners
        size = self.Z.shape[1]
        inputs, products = np.zeros((n, size)), np.zeros((n, size))
        np.add.at(inputs, self.owner, weighted)
        np.add.at(products, self.owner, weighted * response[:, None])
        grams = None
        if self.has_slopes:
            grams = np.zeros((n, size, size))
            cuts = np.flatnonzero(np.r_[True, np.diff(self.owner) > 0, True])
            for start, stop in pairwise(cuts.tolist()):
                grams[self.owner[start]] = weighted[start:stop].T @ self.Z[start:stop]
        rows = slice(None) if members is None else members[self.owner]
        return Sums(
            np.bincount(self.owner, weights, n),
            inputs,
            products,
            np.bincount(self.owner, weights * response**2, n),
            weighted[rows].T @ self.Z[rows],
            grams,
        )


@dataclass(frozen=True)
class LogisticLines:
    """Lines (C, K, q) of clusters, how each learner departs from its own, (C, L, q), and the ratios."""

    common: Array = field(repr=False)
    own: Array = field(repr=False)
    ratios: tuple[Ratios, ...]

    def of_learners(self, labels: Array) -> Array:
        """Return the lines of learners, of shape (L, C, q), by their clusters ``labels`` (L,)."""
        lines: Array = (self.common[:, labels] + self.own).transpose(1, 0, 2)
        return lines


def log_odds(Z: Array, lines: Array) -> Array:
    """Return log-odds (N, C) of rows Z (N, q) by their own lines (N, C, q)."""
    values: Array = np.clip(np.einsum("nq,ncq->nc", Z, lines), -SUREST, SUREST)
    return values


def probabilities(values: Array) -> Array:
    """Return log-odds (N, C) of each class against the others as probabilities; one column stays one."""
    chances: Array = expit(values)
    return chances if chances.shape[1] == 1 else chances / chances.sum(axis=1, keepdims=True)


def working(y: Array, values: Array, weights: Array) -> tuple[Array, Array]:
    """Return working responses (N,) of a class at some log-odds, and what each of them weighs."""
    probabilities = expit(values)
    curvature = np.maximum(probabilities * (1 - probabilities), LEAST_SPREAD)
    return values + (y - probabilities) / curvature, weights * curvature


def _parts(sums: Sums, rows: ClassRows, curvature: Array, labels: Array) -> list[tuple[Array, Sums]]:
    """Return the moments of each cluster, with the positions of its members."""
    if not labels.any():
        return [(np.arange(len(labels)), sums)]
    result = []
    for k in range(int(labels.max()) + 1):
        members = labels == k
        total = None
        if sums.grams is None:
            selected = members[rows.owner]
            total = (rows.Z[selected] * curvature[selected, None]).T @ rows.Z[selected]
        result.append((np.flatnonzero(members), sums.take(members, total)))
    return result


def _no_worse(
    rows: ClassRows, y: Array, labels: Array, ratios: Ratios, here: Effects, there: Effects
) -> tuple[Array, Array, Array]:
    """Return lines (K, q), departures (L, q) and log-odds (N,) between two solutions.

    A Newton step goes too far where classes are rare: it is halved until rows and penalties lose no more than
    before.
    """
    variance = np.full(rows.Z.shape[1], max(ratios.slope, LEAST_VARIANCE))
    variance[-1] = max(ratios.offset, LEAST_VARIANCE)

    def tried(share: float) -> tuple[float, tuple[Array, Array, Array]]:
        """Return the penalised loss of lines between two solutions, and those lines."""
        common, own = (first + share * (second - first) for first, second in zip(here, there, strict=True))
        values = np.clip(np.einsum("nq,nq->n", rows.Z, (common[labels] + own)[rows.owner]), -SUREST, SUREST)
        losses = float(rows.weights @ (np.logaddexp(0.0, values) - y * values))
        penalty = ratios.ridge * float(np.sum(common[:, :-1] ** 2)) + float(np.sum(own**2 / variance))
        return losses + penalty / 2, (common, own, values)

    least, result = tried(0.0)
    for halving in range(HALVINGS):
        losses, candidate = tried(0.5**halving)
        if losses <= least:
            return candidate
    return result


def fit_lines(rows: ClassRows, labels: Array, ratios: Sequence[Ratios] | None = None) -> LogisticLines:
    """Fit a line for each cluster of ``labels`` (L,), with what is each learner's own.

    ``ratios`` are those of each class; None: the most likely ones.
    """
    n_columns, size, n_clusters = rows.Y.shape[1], rows.Z.shape[1], int(labels.max()) + 1
    common, own = np.zeros((n_columns, n_clusters, size)), np.zeros((n_columns, rows.n_learners, size))
    chosen = []
    for c in range(n_columns):
        y = rows.Y[:, c]
        share = np.clip(float(np.average(y, weights=rows.weights)), 1e-5, 1 - 1e-5)
        common[c, :, -1] = np.log(share / (1 - share))
        best = Ratios() if ratios is None else ratios[c]
        values = np.full(len(y), common[c, 0, -1])
        for step in range(STEPS):
            response, curvature = working(y, values, rows.weights)
            sums = rows.sums(response, curvature)
            parts = _parts(sums, rows, curvature, labels)
            if ratios is None and step % TURN == 0:
                # Working responses weigh as much as they vary: their noise is one.
                best = likely_ratios([part for _, part in parts if part.counts.sum() > 0], noise=1.0)
            here = common[c].copy(), own[c].copy()
            there = common[c].copy(), own[c].copy()
            for k, (members, part) in enumerate(parts):
                if part.counts.sum() > 0:
                    line = fit_line(part, best)
                    there[0][k], there[1][members] = line.common, line.own
            before = values
            common[c], own[c], values = _no_worse(rows, y, labels, best, here, there)
            if np.abs(values - before).max(initial=0.0) < TOLERANCE:
                break
        chosen.append(best)
    return LogisticLines(common, own, tuple(chosen))


def effects_of(rows: ClassRows, common: Array, labels: Array, ratios: Sequence[Ratios]) -> Array:
    """Return how learners depart from given lines (C, K, q) of their clusters, of shape (C, L, q)."""
    own = np.zeros((len(common), rows.n_learners, rows.Z.shape[1]))
    for c, ratio in enumerate(ratios):
        for _ in range(STEPS):
            lines = (common[c, labels] + own[c])[rows.owner]
            values = np.clip(np.einsum("nq,nq->n", rows.Z, lines), -SUREST, SUREST)
            response, curvature = working(rows.Y[:, c], values, rows.weights)
            shared = np.einsum("nq,nq->n", rows.Z, common[c, labels][rows.owner])
            sums = rows.sums(response - shared, curvature)
            moved = own_effects(sums, np.zeros(rows.Z.shape[1]), ratio)
            here, there = (common[c], own[c]), (common[c], moved)
            _, moved, _ = _no_worse(rows, rows.Y[:, c], labels, ratio, here, there)
            change, own[c] = np.abs(moved - own[c]).max(initial=0.0), moved
            if change < TOLERANCE:
                break
    return own
