"""Everybody's rows in one place: who holds which, checked once, in an order of its own.

Learners are kept in sorted order of their ids and each one's rows lie together. Whatever order the table
came in, the arithmetic below therefore runs in the same order, and its results agree to the last bit;
`appearance` brings them back into the order in which the learners first appeared.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie.loss import SQUARED_ERROR, Loss
from coterie.rows.ids import as_ids, canonical_order, id_array
from coterie.rows.numbers import divided
from coterie.rows.tables import (
    check_finite,
    check_predictors,
    check_response,
    check_weights,
    column_names,
    split_group_column,
    whose,
)
from coterie.rows.wild import UNLIMITED, WildCells, column_limits, set_aside

# Squares of squared residuals, summed, must stay numbers, and so must squared predictors.
LARGEST_RESPONSE = 1e70
LARGEST_PREDICTOR = 1e140
# Trees hold predictors in single precision.
SMALLEST_PREDICTOR = 1e-37
# Of differences smaller than this, squares of squares are lost below the smallest numbers.
SMALLEST_SPREAD = 1e-70
# If a learner's values spread this many times as far as usual, one of them is a code for a missing value, or
# the others' differences are rounding beside it.
WILD = 1e9
# What of a value's usual size counts as a spread, where most learners have but one value.
LEAST_SHARE = 1e-6


@dataclass(frozen=True)
class Learners:
    """The rows of all learners, learner by learner.

    ``ids`` of shape (L,) are sorted by their text. ``X`` (N, p) and ``y`` (N, C), in the columns of ``loss``,
    have the rows of one learner together: learner j holds ``offsets[j]:offsets[j + 1]``. ``rows`` (N,) says
    where each row stood in the table that was given, ``appearance`` (L,) the positions in ``ids`` in order of
    first appearance. ``weights`` (N,) are scaled to mean one inside each learner. ``wild`` is what was far
    from all other values; see `coterie.rows.wild`.
    """

    ids: Array
    X: Array
    y: Array
    offsets: Array
    rows: Array
    appearance: Array
    weights: Array | None = None
    wild: tuple[WildCells, ...] = ()
    loss: Loss = SQUARED_ERROR

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def n_features(self) -> int:
        """Number of predictors."""
        return int(self.X.shape[1])

    @cached_property
    def sizes(self) -> Array:
        """Number of rows of each learner."""
        return np.diff(self.offsets)

    @cached_property
    def owner(self) -> Array:
        """The position of the learner who holds each row."""
        return np.repeat(np.arange(len(self)), self.sizes)

    @property
    def scalar_y(self) -> Array:
        """The responses of shape (N,), for arithmetic that knows one column only."""
        if self.y.shape[1] != 1:
            raise ValueError(f"This takes a response of one column. Got {self.y.shape[1]} columns.")
        return self.y[:, 0]

    def span(self, j: int) -> slice:
        """Return the rows of learner j."""
        return slice(int(self.offsets[j]), int(self.offsets[j + 1]))

    def take(self, positions: Array) -> Learners:
        """Return some of the learners, in the order given by their ``positions``, with their rows.

        The order of first appearance is kept among those who are taken.
        """
        if np.array_equal(positions, np.arange(len(self))):
            # Nothing moves: no copy of the rows.
            return self
        kept = np.concatenate([np.arange(*self.offsets[[j, j + 1]]) for j in positions])
        return replace(
            self.rearranged(kept),
            ids=self.ids[positions],
            offsets=np.r_[0, np.cumsum(self.sizes[positions])],
            appearance=np.argsort(np.argsort(self.appearance)[positions], kind="stable"),
        )

    def rearranged(self, order: Array) -> Learners:
        """Return the same learners with their rows in another order, or some of them, still together."""
        weights = None if self.weights is None else self.weights[order]
        return replace(self, X=self.X[order], y=self.y[order], rows=self.rows[order], weights=weights)

    def only(self, mask: Array) -> Learners:
        """Return all learners with the rows that ``mask`` (N,) marks, at least one each.

        Weights are scaled again to mean one inside each learner.
        """
        sizes = np.bincount(self.owner[mask], minlength=len(self))
        weights = None
        if self.weights is not None:
            totals = np.bincount(self.owner[mask], self.weights[mask], minlength=len(self))
            weights = self.weights[mask] / (totals / sizes)[self.owner[mask]]
        return replace(self.rearranged(mask), offsets=np.r_[0, np.cumsum(sizes)], weights=weights)

    def mean_by_learner(self, values: Array) -> Array:
        """Average row values inside each learner, along the last axis; rows count by their weight."""
        weighted = values if self.weights is None else values * self.weights
        return np.add.reduceat(weighted, self.offsets[:-1], axis=-1) / self.sizes

    def mean_losses(self, residuals: Array, clips: Array | None = None) -> Array:
        """Return each learner's mean loss of shape (..., L), from residuals of shape (..., N, C).

        ``clips`` of shape (N,) bounds the losses of rows, so that one wild row does not decide; None:
        unbounded.
        """
        return self.mean_by_learner(self.loss.by_row(residuals, clips))

    def standardized(self) -> tuple[Learners, Standardization]:
        """Standardise x and y inside each learner, as the paper's simulations do; return rows and units.

        Levels and spreads then no longer tell learners apart: only how y depends on x does.
        """
        centre_x, centre_y = self.mean_by_learner(self.X.T).T, self.mean_by_learner(self.y.T).T
        spread_x = np.sqrt(self.mean_by_learner((self.X - centre_x[self.owner]).T ** 2)).T
        spread_y = np.sqrt(self.mean_losses(self.y - centre_y[self.owner]))
        # A constant column has no spread to divide by: it becomes zero, as in StandardScaler.
        spread_x[spread_x <= 1e-12 * np.abs(centre_x)] = 1.0
        spread_x[spread_x == 0] = 1.0
        spread_y[(spread_y <= 1e-12 * np.abs(centre_y).max(axis=1)) | (spread_y == 0)] = 1.0
        units = Standardization(centre_x, spread_x, centre_y, spread_y)
        X = units.forward_X(self.X, self.owner)
        y = (self.y - centre_y[self.owner]) / spread_y[self.owner, None]
        return replace(self, X=X, y=y), units


@dataclass(frozen=True)
class Standardization:
    """Each learner's own centre and spread: of predictors (L, p), of the response (L, C) and (L,)."""

    centre_x: Array
    spread_x: Array
    centre_y: Array
    spread_y: Array

    def forward_X(self, X: Array, owner: Array) -> Array:
        """Bring predictors into the units of the learners who own the rows."""
        return (X - self.centre_x[owner]) / self.spread_x[owner]

    def backward_y(self, y: Array, owner: Array) -> Array:
        """Bring predictions of shape (N, C) back into the units of the response."""
        return y * self.spread_y[owner, None] + self.centre_y[owner]

    def take(self, positions: Array) -> Standardization:
        """Return the units of some of the learners, in the order given."""
        return Standardization(*(getattr(self, f)[positions] for f in self.__dataclass_fields__))

    def average(self) -> Standardization:
        """Return the units of the average learner."""
        return Standardization(*(getattr(self, f).mean(axis=0)[None] for f in self.__dataclass_fields__))

    def joined(self, other: Standardization) -> Standardization:
        """Append the learners of another standardization."""
        pairs = ((getattr(self, f), getattr(other, f)) for f in self.__dataclass_fields__)
        return Standardization(*(np.concatenate(pair) for pair in pairs))


def joined_learners(first: Learners, others: Learners) -> Learners:
    """Return learners with the rows of others behind theirs; ids are in that order, not sorted.

    Where only one of the two has weights, rows of the other weigh one.
    """
    weights = None
    if first.weights is not None or others.weights is not None:
        parts = [np.ones(len(p.y)) if p.weights is None else p.weights for p in (first, others)]
        weights = np.concatenate(parts)
    return replace(
        first,
        ids=id_array([*first.ids.tolist(), *others.ids.tolist()]),
        X=np.concatenate([first.X, others.X]),
        y=np.concatenate([first.y, others.y]),
        offsets=np.r_[first.offsets, first.offsets[-1] + others.offsets[1:]],
        rows=np.concatenate([first.rows, others.rows]),
        appearance=np.arange(len(first) + len(others)),
        weights=weights,
    )


def _factorize(ids: Array) -> tuple[Array, Array, Array]:
    """Return the L distinct ids sorted by their text, each row's position there (N,), first appearances (L,).

    The last are positions among the sorted ids, in the order in which these first came. Objects are compared
    by a dict, as they need not be sortable.
    """
    if ids.dtype.kind == "O":
        positions: dict[object, int] = {}
        codes = np.array([positions.setdefault(i, len(positions)) for i in ids.tolist()], dtype=int)
        distinct = np.empty(len(positions), dtype=object)
        distinct[:] = list(positions)
        first = np.unique(codes, return_index=True)[1]
    else:
        distinct, first, codes = np.unique(ids, return_index=True, return_inverse=True)
    order = canonical_order(distinct)
    rank = np.empty(len(order), dtype=int)
    rank[order] = np.arange(len(order))
    return distinct[order], rank[codes], np.argsort(first[order], kind="stable")


def _refuse_wild(values: Array, sizes: Array, ids: Array, what: str, caller: str) -> None:
    """Refuse a learner one of whose values lies a billion times as far from its others as is usual.

    ``values`` (N,) stand learner by learner, ``sizes`` (L,) rows each; ``what`` and ``caller`` are for the
    error. One such value would rule whatever is shared, and rounding beside it lose the other values.
    """
    if len(sizes) < 2:
        return
    starts = np.r_[0, np.cumsum(sizes)[:-1]]
    spreads = np.maximum.reduceat(values, starts) - np.minimum.reduceat(values, starts)
    usual = np.sort(spreads)[(len(spreads) - 1) // 2]
    usual = max(usual, LEAST_SHARE * float(np.median(np.abs(values))))
    worst = int(spreads.argmax())
    if 0 < WILD * usual < spreads[worst]:
        selected = values[starts[worst] : starts[worst] + sizes[worst]]
        wildest = selected[np.abs(selected - np.median(selected)).argmax()]
        raise ValueError(
            f"Input {what} of {caller} has {wildest:.6g} in the rows of {whose(worst, ids)}. It is more than "
            "a billion times as far from its others as is usual. If that is a code for a missing value, "
            "leave the row out. If it is real, fit this learner separately."
        )


def _refuse_tiny(X: Array, names: list[str] | None, caller: str) -> None:
    """Refuse a column in units so small that trees, which hold it in single precision, see zeros."""
    largest = np.maximum(X.max(axis=0, initial=0.0), -X.min(axis=0, initial=0.0))
    tiny = np.flatnonzero((largest > 0) & (largest < SMALLEST_PREDICTOR))
    if len(tiny):
        label = repr(names[tiny[0]]) if names else str(tiny[0])
        raise ValueError(
            f"Column {label} of X in {caller} is at most {largest[tiny[0]]:.3g} in size, and numbers below "
            f"{SMALLEST_PREDICTOR:g} leave the range of single precision. Give it in other units."
        )


def gather_learners(
    X: Any,
    y: Any = None,
    groups: Any = None,
    *,
    sample_weight: Any = None,
    limits: Array | None = None,
    names: list[str] | None = None,
    exponents: Array | None = None,
    loss: Loss = SQUARED_ERROR,
    caller: str,
) -> Learners:
    """Check a table, its response and its groups, and bring them together learner by learner.

    ``X`` is a table of shape (N, p), or rows already gathered, which pass through; ``y`` and
    ``sample_weight`` have the shape (N,), and rows of weight zero are left out. ``groups`` has the learner of
    each row, or the name of the column of X that holds it; None: one learner. Cells beyond ``limits`` of
    shape (2, p + 1) are wild and their rows set aside; None: by these rows, if two learners hold them.
    ``names`` of the columns are for errors; None: those of X. Columns are divided by two to the power of
    ``exponents`` (see `extreme_exponents`); None: they have to be in ordinary units. ``caller`` is named in
    the errors.
    """
    if isinstance(X, Learners):
        return X
    if isinstance(groups, str):
        X, groups = split_group_column(X, groups, caller)
    names = column_names(X) if names is None else names
    X = check_predictors(X, caller)
    y = check_response(y, caller, len(X))
    ids = np.zeros(len(X), dtype=int) if groups is None else as_ids(groups, caller)
    if len(ids) != len(X):
        raise ValueError(
            f"The 'groups' argument of {caller} must have one entry per row of X ({len(X)}). Got {len(ids)}."
        )
    rows = np.arange(len(X))
    weights = None
    if sample_weight is not None:
        weights = check_weights(sample_weight, len(X), caller)
        rows = np.flatnonzero(weights > 0)
        X, y, ids, weights = X[rows], y[rows], ids[rows], weights[rows]
    distinct, owners, appearance = _factorize(ids)
    check_finite(X, names, owners, distinct, caller)
    if not np.isfinite(y).all():
        bad = int(np.flatnonzero(~np.isfinite(y))[0])
        what = "NaN" if np.isnan(y[bad]) else "infinity"
        raise ValueError(
            f"Input y of {caller} contains {what} in the rows of {whose(owners[bad], distinct)}. "
            "Drop the rows without a response."
        )
    if exponents is None:
        _refuse_tiny(X, names, caller)
    else:
        X = divided(X, exponents)
    for what, values, limit in (("y", y, LARGEST_RESPONSE), ("X", X, LARGEST_PREDICTOR)):
        largest = np.abs(values).max(initial=0.0)
        if largest > limit:
            raise ValueError(
                f"Input {what} of {caller} reaches {largest:.3g} in size, and powers of more than {limit:g} "
                f"leave the range of numbers. Give {what} in other units."
            )
    spread = np.ptp(y) if len(y) else 0.0
    if 0 < spread < SMALLEST_SPREAD:
        raise ValueError(
            f"Input y of {caller} varies by {spread:.3g} only, and powers of less than {SMALLEST_SPREAD:g} "
            "leave the range of numbers. Give y in other units."
        )
    wild: tuple[WildCells, ...] = ()
    if limits is None:
        # One learner alone harms nobody, and sites that keep their rows must answer as they would together.
        # A rare class is no wild value.
        columns = (*X.T, y) if loss.bounds is None else (*X.T, np.zeros(1))
        limits = column_limits(columns) if len(distinct) > 1 else UNLIMITED
    if np.isfinite(limits).any():
        aside, wild = set_aside(X, y, owners, distinct, limits, names)
        X, y, owners, rows = X[~aside], y[~aside], owners[~aside], rows[~aside]
        weights = None if weights is None else weights[~aside]
    order = np.argsort(owners, kind="stable")
    sizes = np.bincount(owners, minlength=len(distinct))
    if loss.bounds is None:
        _refuse_wild(y[order], sizes, distinct, "y", caller)
    if weights is not None:
        weights = weights / (np.bincount(owners, weights) / sizes)[owners]
    return Learners(
        ids=distinct,
        X=X[order],
        y=loss.response(y[order]),
        offsets=np.r_[0, np.cumsum(sizes)],
        rows=rows[order],
        appearance=appearance,
        weights=None if weights is None else weights[order],
        wild=wild,
        loss=loss,
    )


def stack_learners(datasets: Any) -> tuple[Array, Array, Array]:
    """Stack datasets, one per learner, into ``X, y, groups``.

    Parameters
    ----------
    datasets : mapping
        Learner id to a pair ``(X, y)``, all with the same predictors in the same order.

    Returns
    -------
    X : ndarray of shape (N, p)
        All rows.
    y : ndarray of shape (N,)
        All responses.
    groups : ndarray of shape (N,)
        The id of the learner who holds each row.

    Examples
    --------
    >>> from coterie import stack_learners
    >>> X, y, groups = stack_learners({"north": ([[0.0], [1.0]], [0, 1]), "south": ([[2.0]], [5])})
    >>> X.shape, groups.tolist()
    ((3, 1), ['north', 'north', 'south'])
    """
    if not datasets:
        raise ValueError("stack_learners needs at least one learner: pass {name: (X, y), ...}.")
    parts: list[Array] = []
    responses: list[Array] = []
    ids: list[Any] = []
    first_names: list[str] | None = None
    for index, (learner, (X, y)) in enumerate(datasets.items()):
        names = column_names(X)
        part = check_predictors(X, "stack_learners")
        if index == 0:
            first_names = names
        elif part.shape[1] != parts[0].shape[1] or names != first_names:
            raise ValueError(
                f"The columns of learner {learner!r} differ from those of the first learner "
                f"({names or part.shape[1]} against {first_names or parts[0].shape[1]}): "
                "give every learner the same predictors in the same order."
            )
        parts.append(part)
        responses.append(check_response(y, "stack_learners", len(part)))
        ids.extend([learner] * len(part))
    return np.vstack(parts), np.concatenate(responses), id_array(ids)
