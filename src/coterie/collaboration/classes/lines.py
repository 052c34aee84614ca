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


# Common lines (K, q) of the clusters, and the learners' departures from them, (L, q).
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
        """Whether learners may have slopes of their own: the Gram matrix of each is then kept."""
        size = self.Z.shape[1]
        return size - 1 <= MOST_SLOPES and bool(self.n_learners * size * size <= MOST_NUMBERS)

    def only(self, selected: Array) -> ClassRows:
        """Return some of the rows, marked by ``selected`` (N,)."""
        return ClassRows(
            Z=self.Z[selected],
            Y=self.Y[selected],
            weights=self.weights[selected],
            owner=self.owner[selected],
            n_learners=self.n_learners,
        )

    def sums(self, response: Array, weights: Array, members: Array | None = None) -> Sums:
        """Return sums of squares and products of rows z and a response (N,), by learner and over all.

        From these least squares find lines without going through the rows again. Rows count by ``weights``
        (N,). ``members`` (L,) marks the learners whose rows count in the total; None: all.
        """
        # ``Z`` are the predictors in common units with a column of ones behind, for the intercept.
        weighted_Z, n_learners = self.Z * weights[:, None], self.n_learners
        size = self.Z.shape[1]
        inputs, products = np.zeros((n_learners, size)), np.zeros((n_learners, size))
        np.add.at(inputs, self.owner, weighted_Z)
        np.add.at(products, self.owner, weighted_Z * response[:, None])
        grams = None
        if self.has_slopes:
            grams = np.zeros((n_learners, size, size))
            # Where the next learner's rows begin, and the end of all rows.
            first_rows = np.flatnonzero(np.r_[True, np.diff(self.owner) > 0, True])
            for first_row, end_row in pairwise(first_rows.tolist()):
                grams[self.owner[first_row]] = weighted_Z[first_row:end_row].T @ self.Z[first_row:end_row]
        rows_of_members = slice(None) if members is None else members[self.owner]
        return Sums(
            counts=np.bincount(self.owner, weights, n_learners),
            inputs=inputs,
            products=products,
            squares=np.bincount(self.owner, weights * response**2, n_learners),
            total=weighted_Z[rows_of_members].T @ self.Z[rows_of_members],
            grams=grams,
        )


@dataclass(frozen=True)
class LogisticLines:
    """Lines (C, K, q) of clusters, how each learner departs from its cluster's, (C, L, q), and the ratios.

    A line has q - 1 slopes and, last, the intercept. Ratios are the prior variances of departures, by column.
    """

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
    """Return probabilities (N, C) from log-odds (N, C) of each class against the others.

    Several columns are divided by their sum, as each was fitted apart and they need not sum to one. A single
    one is the probability of the second of two classes.
    """
    chances: Array = expit(values)
    return chances if chances.shape[1] == 1 else chances / chances.sum(axis=1, keepdims=True)


def working(y: Array, values: Array, weights: Array) -> tuple[Array, Array]:
    """Return working responses (N,) of one class, and their weights (N,), at log-odds ``values`` (N,).

    A step of Newton's method on the logistic loss is the weighted least squares fit to them; ``y`` (N,)
    is nought or one. Curvature is bounded below, so that rows that are nearly sure have finite responses.
    """
    probabilities = expit(values)
    curvature = np.maximum(probabilities * (1 - probabilities), LEAST_SPREAD)
    return values + (y - probabilities) / curvature, weights * curvature


def _parts(sums: Sums, rows: ClassRows, curvature: Array, labels: Array) -> list[tuple[Array, Sums]]:
    """Return the members' positions, and their sums of squares and products, for each cluster.

    ``sums`` are of all learners, ``curvature`` (N,) the weights of their rows and ``labels`` (L,) the
    clusters.
    """
    # All labels are zero: the sums of the single cluster are there.
    if not labels.any():
        return [(np.arange(len(labels)), sums)]
    sums_of_clusters = []
    for cluster in range(int(labels.max()) + 1):
        members = labels == cluster
        total = None
        # Without a Gram matrix of each learner the members' total cannot be added up, and is made from rows.
        if sums.grams is None:
            member_rows = members[rows.owner]
            total = (rows.Z[member_rows] * curvature[member_rows, None]).T @ rows.Z[member_rows]
        sums_of_clusters.append((np.flatnonzero(members), sums.take(members, total)))
    return sums_of_clusters


def _no_worse(
    rows: ClassRows, y: Array, labels: Array, ratios: Ratios, here: Effects, there: Effects
) -> tuple[Array, Array, Array]:
    """Return lines (K, q), departures (L, q) and log-odds (N,) after a step that does not raise the loss.

    A full Newton step from ``here`` to ``there``, each lines and departures, goes too far where a class is
    rare. It is halved until the penalised log loss is no larger than before; if it never is, the start is
    returned. ``y`` (N,) is nought or one, ``labels`` (L,) are clusters; ``ratios`` penalise departures.
    """
    prior_variance = np.full(rows.Z.shape[1], max(ratios.slope, LEAST_VARIANCE))
    prior_variance[-1] = max(ratios.offset, LEAST_VARIANCE)

    def solution_at(step_share: float) -> tuple[float, tuple[Array, Array, Array]]:
        """Return the penalised loss of lines between two solutions, and lines, departures and log-odds there.

        ``step_share`` is how far to go, from zero (``here``) to one (``there``).
        """
        common, departures = (
            start + step_share * (end - start) for start, end in zip(here, there, strict=True)
        )
        values = np.clip(
            np.einsum("nq,nq->n", rows.Z, (common[labels] + departures)[rows.owner]), -SUREST, SUREST
        )
        loss = float(rows.weights @ (np.logaddexp(0.0, values) - y * values))
        penalty = ratios.ridge * float(np.sum(common[:, :-1] ** 2)) + float(
            np.sum(departures**2 / prior_variance)
        )
        return loss + penalty / 2, (common, departures, values)

    start_loss, start_solution = solution_at(0.0)
    for halving in range(HALVINGS):
        loss, solution = solution_at(0.5**halving)
        if loss <= start_loss:
            return solution
    return start_solution


def fit_lines(rows: ClassRows, labels: Array, ratios: Sequence[Ratios] | None = None) -> LogisticLines:
    """Fit a logistic line for each cluster of ``labels`` (L,), and each learner's shrunken departure from it.

    Each of the C columns of classes is fitted apart, by penalised Newton steps. ``ratios`` has for each
    column the prior variances of learners' offsets and slopes, and the ridge on common slopes; None: the most
    likely ones.
    """
    n_columns, size, n_clusters = rows.Y.shape[1], rows.Z.shape[1], int(labels.max()) + 1
    common, own = np.zeros((n_columns, n_clusters, size)), np.zeros((n_columns, rows.n_learners, size))
    chosen_ratios = []
    for column in range(n_columns):
        y = rows.Y[:, column]
        # It starts from the log-odds of the share of the class, kept from nought and one so that they are
        # finite.
        class_share = np.clip(float(np.average(y, weights=rows.weights)), 1e-5, 1 - 1e-5)
        common[column, :, -1] = np.log(class_share / (1 - class_share))
        class_ratios = Ratios() if ratios is None else ratios[column]
        log_odds_of_rows = np.full(len(y), common[column, 0, -1])
        for step in range(STEPS):
            response, curvature = working(y, log_odds_of_rows, rows.weights)
            sums = rows.sums(response, curvature)
            sums_of_clusters = _parts(sums, rows, curvature, labels)
            if ratios is None and step % TURN == 0:
                # Working responses weigh as much as they vary: their noise is one.
                class_ratios = likely_ratios(
                    [cluster_sums for _, cluster_sums in sums_of_clusters if cluster_sums.counts.sum() > 0],
                    noise=1.0,
                )
            here = common[column].copy(), own[column].copy()
            there = common[column].copy(), own[column].copy()
            for cluster, (members, cluster_sums) in enumerate(sums_of_clusters):
                if cluster_sums.counts.sum() > 0:
                    line = fit_line(cluster_sums, class_ratios)
                    there[0][cluster], there[1][members] = line.common, line.own
            previous_log_odds = log_odds_of_rows
            common[column], own[column], log_odds_of_rows = _no_worse(
                rows, y, labels, class_ratios, here, there
            )
            if np.abs(log_odds_of_rows - previous_log_odds).max(initial=0.0) < TOLERANCE:
                break
        chosen_ratios.append(class_ratios)
    return LogisticLines(common, own, tuple(chosen_ratios))


def effects_of(rows: ClassRows, common: Array, labels: Array, ratios: Sequence[Ratios]) -> Array:
    """Return each learner's shrunken departure from its cluster's line, (C, L, q), the lines held fixed.

    ``common`` (C, K, q) are the lines of K clusters, ``labels`` (L,) the learners' clusters, and
    ``ratios`` the prior variances of offsets and slopes for each column. It serves newcomers, and rows
    described without a fold: neither may move the common lines.
    """
    departures = np.zeros((len(common), rows.n_learners, rows.Z.shape[1]))
    for column, column_ratios in enumerate(ratios):
        for _ in range(STEPS):
            lines = (common[column, labels] + departures[column])[rows.owner]
            log_odds_of_rows = np.clip(np.einsum("nq,nq->n", rows.Z, lines), -SUREST, SUREST)
            response, curvature = working(rows.Y[:, column], log_odds_of_rows, rows.weights)
            common_log_odds = np.einsum("nq,nq->n", rows.Z, common[column, labels][rows.owner])
            sums = rows.sums(response - common_log_odds, curvature)
            # What the common line leaves is explained by departures alone, so the line given here is zero.
            moved_departures = own_effects(sums, np.zeros(rows.Z.shape[1]), column_ratios)
            here, there = (common[column], departures[column]), (common[column], moved_departures)
            _, moved_departures, _ = _no_worse(rows, rows.Y[:, column], labels, column_ratios, here, there)
            largest_change, departures[column] = (
                np.abs(moved_departures - departures[column]).max(initial=0.0),
                moved_departures,
            )
            if largest_change < TOLERANCE:
                break
    return departures
