"""What a learner answers about averages of classifiers: numbers of its own rows, never the rows.

It is `nested.parties` for probabilities: residuals are those of the Brier score, and what is the learner's
own in an average is a line in log-odds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from coterie._arrays import Array
from coterie.collaboration.classes.own_lines import OwnClassRows, OwnLines, chances_of, log_odds_of
from coterie.collaboration.nested.parties import (
    LEAST_LIKELIHOOD,
    LIKELIHOOD_DIGITS,
    AverageDictionary,
    average_of,
)
from coterie.loss import Loss


@dataclass(frozen=True)
class ClassParty:
    """A learner who answers by numbers; fields as for `nested.parties.RowParty`, with C columns.

    ``y`` and ``alone`` have the shape (n, C), ``table`` (M, n, C).
    """

    X: Array
    y: Array
    folds: Array
    n_folds: int
    alone: Array
    table: Array
    bounds: Array
    model_weights: Array
    place: int
    losses: Callable[[Array], Array]
    loss: Loss
    weights: Array | None = None
    _averages: dict[bytes, Array] = field(default_factory=dict, repr=False, compare=False)

    @property
    def _seen(self) -> Array:
        return self.folds >= 0

    def _without_fold(self, labels: Array, losses: Array, kept: Array, ahead: Array) -> Array:
        """Return the probabilities (n, C) of rows ahead by the average that predicts the kept rows best."""
        with np.errstate(over="ignore", invalid="ignore"):
            by_model = self.loss.by_row(self.table[:, kept] - self.y[kept]).mean(axis=1)
        home = losses[:, kept].mean(axis=1).argmin()
        positions, shares = average_of(labels == home, self.model_weights, by_model, self.place)
        if positions.tolist() == [self.place]:
            # Its own model has seen these rows.
            return np.asarray(self.alone[ahead])
        part, bounds = self.table[np.ix_(positions, ahead)], self.bounds[positions][:, :, None, None]
        middle = bounds.mean(axis=1)
        part = np.clip(np.where(np.isfinite(part), part, middle), bounds[:, 0], bounds[:, 1])
        averaged: Array = np.einsum("m,mnc->nc", shares, part)
        return averaged

    def average(self, labels: Array) -> Array:
        """Return the probabilities (n, C) by the averages of a labelling, out of fold."""
        key = labels.tobytes()
        if key not in self._averages:
            losses, found = self.losses(labels), np.full(self.y.shape, np.nan)
            for fold in range(self.n_folds):
                ahead = np.flatnonzero(self.folds == fold)
                kept = np.flatnonzero(self._seen & (self.folds != fold))
                if len(ahead) and len(kept):
                    found[ahead] = self._without_fold(labels, losses, kept, ahead)
                else:
                    found[ahead] = self.alone[ahead]
            self._averages[key] = found
        return self._averages[key]

    def _base(self, labellings: Sequence[Array]) -> Array:
        """Return the log-odds (n, E, C) of the averages, out of fold."""
        return log_odds_of(np.stack([self.average(labels) for labels in labellings], axis=1))

    def _rows(self, kept: Array, units: Array) -> OwnClassRows:
        weights = None if self.weights is None else self.weights[kept]
        return OwnClassRows.of(self.X[kept], self.y[kept], weights, units)

    def likelihoods(self, labellings: Sequence[Array], units: Array) -> Array:
        """Return log-likelihoods (E, offsets, slopes), from the largest one, down to a bound, rounded."""
        seen = self._seen
        found = self._rows(seen, units).likelihoods(self._base(labellings)[seen])
        below = found - found.max(axis=(1, 2), keepdims=True)
        return np.asarray(np.round(np.maximum(below, LEAST_LIKELIHOOD), LIKELIHOOD_DIGITS))

    def _lines(self, kept: Array, base: Array, dictionary: AverageDictionary) -> OwnLines:
        """Return its lines beside the averages with an offset, then with offset and slopes."""
        rows = self._rows(kept, dictionary.units)
        return rows.lines(np.concatenate([base[kept]] * 2, axis=1), np.concatenate(dictionary.ratios))

    def columns(self, dictionary: AverageDictionary) -> Array:
        """Return the probabilities (n, K, C) of all predictors out of fold; NaN where none holds out.

        They are its own model, the averages with an offset, and the averages with offset and slopes.
        """
        base = self._base(dictionary.labellings)
        columns = np.full((len(self.y), 1 + 2 * base.shape[1], self.y.shape[1]), np.nan)
        for fold in range(self.n_folds):
            ahead = self.folds == fold
            kept = self._seen & ~ahead
            if not ahead.any():
                continue
            columns[ahead, 0] = self.alone[ahead]
            twice = np.concatenate([base[ahead]] * 2, axis=1)
            if kept.any():
                twice = self._lines(kept, base, dictionary).added(self.X[ahead], twice)
            columns[ahead, 1:] = chances_of(twice)
        return columns

    def grams(self, dictionary: AverageDictionary) -> tuple[Array, Array]:
        """Return the Gram matrices of its residuals by fold, (F, K, K), and the rows' weights (F,)."""
        residuals = self.y[:, None] - self.columns(dictionary)
        weights = np.ones(len(self.y)) if self.weights is None else self.weights
        grams, counts = [], []
        for fold in range(self.n_folds):
            mine = self.folds == fold
            flat = np.moveaxis(residuals[mine], 1, 0)
            weighted = (flat * weights[mine, None]).reshape(len(flat), -1)
            grams.append(weighted @ flat.reshape(len(flat), -1).T)
            counts.append(weights[mine].sum())
        return np.array(grams), np.array(counts)

    def residuals(self, dictionary: AverageDictionary, held_out: Array) -> Array:
        """Return honest residuals (n, C) of a mixture; ``held_out`` (F, K) are weights without each fold.

        No mixture is surer than the learner's rows allow: offsets and weights were learnt on these.
        """
        columns, weights = self.columns(dictionary), held_out[np.maximum(self.folds, 0)]
        mixture = np.clip(np.einsum("nkc,nk->nc", columns, weights), *self.bounds[self.place])
        residuals: Array = self.y - mixture
        return residuals

    def own_lines(self, dictionary: AverageDictionary) -> OwnLines:
        """Return the lines (2 E, C, p + 1) that it adds to the averages, by all its rows."""
        seen, n_columns = self._seen, self.y.shape[1]
        found = self._lines(seen, self._base(dictionary.labellings), dictionary) if seen.any() else None
        whole = np.zeros((2 * len(dictionary.labellings), n_columns, self.X.shape[1] + 1))
        if found is None:
            return OwnLines(whole, np.zeros((*whole.shape[:2], 2)))
        whole[..., : found.lines.shape[-1] - 1] = found.lines[..., :-1]
        whole[..., -1] = found.lines[..., -1]
        return OwnLines(whole, found.limits)
