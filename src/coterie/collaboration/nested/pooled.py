"""Nested coteries of pooled rows: the dictionary is fitted without each fold, weighed, fitted again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie.collaboration.nested.dictionary import Entry, FittedEntry, fit_entries
from coterie.collaboration.nested.families import Family, family_for_traits, possible_families, worth_fitting
from coterie.collaboration.nested.folds import Folds
from coterie.collaboration.nested.linear import RIDGES, Moments
from coterie.collaboration.nested.resolutions import Recipe, nested_labels
from coterie.collaboration.nested.shared import Dictionary, Shared
from coterie.kernels.affine import Frame
from coterie.method.noise import smallest_level
from coterie.method.refine.flexible import FLEXIBLE
from coterie.records import Selection
from coterie.rows.learners import Learners

# More rows than these make a fold's model slower, not its weight better known.
MOST_ROWS = 20_000


def response_units(learners: Learners) -> Array:
    """Return the variance of each learner's response, of shape (L,); where it is rounding, its bound."""
    means = learners.mean_by_learner(learners.y.T).T[learners.owner]
    spread = learners.mean_losses(learners.y - means)
    units: Array = np.maximum(spread, smallest_level(learners.loss.variance(learners.y)))
    return units


class _CrossFit:
    """Fits entries without each fold and predicts the rows that the fold holds out."""

    def __init__(
        self, learners: Learners, folds: Folds, labels: Sequence[dict[int, Array]], recipe: Recipe
    ) -> None:
        self.learners, self.folds = learners, folds
        frame = Frame(learners)
        self._left = [learners.only(kept) for kept in folds.training]
        self._moments = [Moments.of(left, frame) for left in self._left]
        self.whole = Moments.of(learners, frame)
        self._labels, self._recipe = labels, recipe
        # Losses are compared in units of each learner's variance, so that learners count alike.
        self._unit = response_units(learners)
        self.n_fits = 0

    def predict(self, entries: Sequence[Entry], folds: Sequence[int] | None = None) -> Array:
        """Return predictions of shape (N, E), NaN outside the rows that the folds hold out."""
        predictions = np.full((len(self.learners.y), len(entries)), np.nan)
        for fold in range(len(self.folds)) if folds is None else folds:
            ahead = self.folds.held_out == fold
            rows = self._left[fold], self._labels[fold], self._moments[fold]
            fitted = fit_entries(entries, *rows, self._recipe, most_rows=MOST_ROWS)
            self.n_fits += sum(
                len(f.models) for f, e in zip(fitted, entries, strict=True) if e.family.candidate is not None
            )
            X, owner = self.learners.X[ahead], self.learners.owner[ahead]
            for place, entry in enumerate(fitted):
                predictions[ahead, place] = entry.predict(X, owner)
        return predictions

    def losses(self, predictions: Array) -> Array:
        """Return the mean over learners of their loss in units of variance, of shape (E,)."""
        seen = np.isfinite(predictions).all(axis=1)
        owner = self.learners.owner[seen]
        squares = (self.learners.scalar_y[seen, None] - predictions[seen]) ** 2
        counts = np.bincount(owner, minlength=len(self.learners))
        sums = np.array([np.bincount(owner, column, len(self.learners)) for column in squares.T])
        held = counts > 0
        losses: Array = (sums[:, held] / counts[held] / self._unit[held]).mean(axis=1)
        return losses


def _linear_entries(
    cross: _CrossFit, plain: Sequence[tuple[int, bool]], family: Family
) -> tuple[list[Entry], Array]:
    """Return the linear predictors, each with the ridge that loses least, and what they predict."""
    tried = [Entry(count, family, centred, ridge) for count, centred in plain for ridge in RIDGES]
    predictions = cross.predict(tried)
    losses = cross.losses(predictions).reshape(len(plain), len(RIDGES))
    best = np.arange(len(plain)) * len(RIDGES) + losses.argmin(axis=1)
    return [tried[b] for b in best], predictions[:, best]


def _kept_families(
    cross: _CrossFit, families: tuple[Family, ...], chosen: int, linear: Array | None
) -> tuple[Family, ...]:
    """Let the families compete on the first fold, inside the chosen clusters and among all.

    Each in its better form: where levels follow from the predictors, a forest that may not see them,
    because they were taken off beforehand, is worth little, and the plain one may be the best there is.
    """
    flexible = [family for family in families if family.candidate is not None]
    if not flexible:
        return ()
    forms = _competing(chosen)
    tried = [Entry(count, family, centred) for family in flexible for count, centred in forms]
    first = cross.predict(tried, [0])
    losses = cross.losses(first).reshape(len(flexible), -1, 2)
    better = np.where(np.isfinite(losses), losses, np.inf).min(axis=2)
    benchmark = None
    if linear is not None:
        seen = np.asarray(np.isfinite(first).all(axis=1))
        benchmark = cross.losses(np.where(seen[:, None], linear, np.nan)).reshape(-1, 2).min(axis=1)
    return worth_fitting(tuple(flexible), better, benchmark)


def _competing(chosen: int) -> list[tuple[int, bool]]:
    """Return where families compete, and whether centred: two forms for each place."""
    places = (chosen, 1) if chosen > 1 else (1,)
    return [(count, centred) for count in places for centred in (True, False)]


def _as_dictionary(
    counts: tuple[int, ...],
    entries: Sequence[Entry],
    fitted: Sequence[FittedEntry],
    n_learners: int,
    out_of_fold: Array,
    n_fits: int,
) -> Dictionary:
    shared, first = [], n_learners
    for entry, found in zip(entries, fitted, strict=True):
        terms = tuple((np.array([first + k]), np.ones(1)) for k in range(len(found.models)))
        first += len(found.models)
        form = "" if entry.form == "plain" else f", {entry.form}"
        kind = entry.family.name + form + ", with traits" * entry.uses_traits
        shared.append(
            Shared(entry.count, kind, found.labels, terms, found.levels, uses_traits=entry.uses_traits)
        )
    # The entry behind each model.
    behind = [entry for entry, found in zip(entries, fitted, strict=True) for _ in found.models]
    return Dictionary(
        counts,
        tuple(shared),
        tuple(model for found in fitted for model in found.models),
        tuple(entry.family.name for entry in behind),
        np.vstack([found.bounds for found in fitted]),
        out_of_fold,
        n_fits + sum(entry.family.candidate is not None for entry in behind),
        next((found.traits for found in fitted if found.traits is not None), None),
        tuple(entry.uses_traits for entry in behind),
    )


def fit_dictionary(
    learners: Learners,
    selection: Selection,
    labels: Array,
    folds: Folds,
    alone: Sequence[tuple[Any, ...]],
    sets: Sequence[dict[str, Any]],
    recipe: Recipe,
) -> Dictionary:
    """Fit shared predictors at all resolutions, without each fold and on all rows.

    ``labels`` (L,) are the chosen clusters, ``alone`` has every learner's model without each fold, ``sets``
    each learner's candidates.
    """
    counts, without, full = nested_labels(learners, selection, labels, folds, alone, recipe)
    cross = _CrossFit(learners, folds, without, recipe)
    chosen = recipe.chosen if recipe.chosen in counts else 1
    plain = [(count, True) for count in counts] + [(chosen, False)] * (chosen > 1) + [(1, False), (1, True)]
    families = possible_families(sets, by_moments=learners.n_features <= FLEXIBLE.predictors)
    entries: list[Entry] = []
    columns: list[Array] = []
    benchmark = None
    for family in families:
        if family.candidate is None:
            entries, linear = _linear_entries(cross, plain, family)
            columns = [linear]
            benchmark = linear[:, [plain.index(form) for form in _competing(chosen)]]
    kept = _kept_families(cross, families, chosen, benchmark)
    for family in kept:
        coarse = _competing(chosen)
        mine = [Entry(count, family, centred) for count, centred in (coarse if family.coarse else plain)]
        if family is family_for_traits(kept):
            mine += [Entry(1, family, centred, uses_traits=True) for centred in (True, False)]
        if family is kept[0]:
            mine += [Entry(1, family, False, random_intercept=True)]
        columns.append(cross.predict(mine))
        entries += mine
    fitted = fit_entries(entries, learners, full, cross.whole, recipe)
    return _as_dictionary(counts, entries, fitted, len(learners), np.hstack(columns), cross.n_fits)
