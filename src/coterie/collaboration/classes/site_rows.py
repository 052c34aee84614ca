"""What a learner answers about averages of classifiers: numbers of its own rows, never the rows.

It is `nested.sites` for probabilities: residuals are those of the Brier score, and what is the learner's
own in an average is a line in log-odds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from coterie._arrays import Array
from coterie.collaboration.classes.own_lines import OwnClassRows, OwnLines, chances_of, log_odds_of
from coterie.collaboration.nested.site_rows import (
    LEAST_LIKELIHOOD,
    LIKELIHOOD_DIGITS,
    AverageDictionary,
    average_of,
)
from coterie.loss import Loss


@dataclass(frozen=True)
class ClassSiteRows:
    """A learner who answers by numbers; fields as for `nested.sites.SiteRows`, with C columns.

    ``y`` and ``own_predictions`` have the shape (n, C), ``table`` (M, n, C).
    """

    X: Array
    y: Array
    folds: Array
    n_folds: int
    own_predictions: Array
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

    def _without_fold(self, labels: Array, losses: Array, training: Array, validation: Array) -> Array:
        """Return the probabilities (n, C) of validation rows by the average that is best on training rows."""
        with np.errstate(over="ignore", invalid="ignore"):
            by_model = self.loss.by_row(self.table[:, training] - self.y[training]).mean(axis=1)
        cluster = losses[:, training].mean(axis=1).argmin()
        positions, shares = average_of(labels == cluster, self.model_weights, by_model, self.place)
        if positions.tolist() == [self.place]:
            # Its own model has seen these rows.
            return np.asarray(self.own_predictions[validation])
        part, bounds = self.table[np.ix_(positions, validation)], self.bounds[positions][:, :, None, None]
        middle = bounds.mean(axis=1)
        part = np.clip(np.where(np.isfinite(part), part, middle), bounds[:, 0], bounds[:, 1])
        averaged: Array = np.einsum("m,mnc->nc", shares, part)
        return averaged

    def average(self, labels: Array) -> Array:
        """Return the probabilities (n, C) by the averages of a labelling, out of fold."""
        key = labels.tobytes()
        if key not in self._averages:
            losses, result = self.losses(labels), np.full(self.y.shape, np.nan)
            for fold in range(self.n_folds):
                validation = np.flatnonzero(self.folds == fold)
                training = np.flatnonzero(self._seen & (self.folds != fold))
                if len(validation) and len(training):
                    result[validation] = self._without_fold(labels, losses, training, validation)
                else:
                    result[validation] = self.own_predictions[validation]
            self._averages[key] = result
        return self._averages[key]

    def _base(self, labellings: Sequence[Array]) -> Array:
        """Return the log-odds (n, E, C) of the averages, out of fold."""
        return log_odds_of(np.stack([self.average(labels) for labels in labellings], axis=1))

    def _rows(self, training: Array, units: Array) -> OwnClassRows:
        """Return training rows, prepared for lines beside any shared model."""
        weights = None if self.weights is None else self.weights[training]
        return OwnClassRows.of(self.X[training], self.y[training], weights, units)

    def likelihoods(self, labellings: Sequence[Array], units: Array) -> Array:
        """Return log-likelihoods (E, offsets, slopes), from the largest one, down to a bound, rounded."""
        seen = self._seen
        result = self._rows(seen, units).likelihoods(self._base(labellings)[seen])
        below = result - result.max(axis=(1, 2), keepdims=True)
        return np.asarray(np.round(np.maximum(below, LEAST_LIKELIHOOD), LIKELIHOOD_DIGITS))

    def _lines(self, training: Array, base: Array, dictionary: AverageDictionary) -> OwnLines:
        """Return its lines beside the averages with an offset, then with offset and slopes."""
        rows = self._rows(training, dictionary.units)
        return rows.lines(np.concatenate([base[training]] * 2, axis=1), np.concatenate(dictionary.ratios))

    def columns(self, dictionary: AverageDictionary) -> Array:
        """Return the probabilities (n, K, C) of all predictors out of fold; NaN where none holds out.

        They are its own model, the averages with an offset, and the averages with offset and slopes.
        """
        base = self._base(dictionary.labellings)
        columns = np.full((len(self.y), 1 + 2 * base.shape[1], self.y.shape[1]), np.nan)
        for fold in range(self.n_folds):
            validation = self.folds == fold
            training = self._seen & ~validation
            if not validation.any():
                continue
            columns[validation, 0] = self.own_predictions[validation]
            twice = np.concatenate([base[validation]] * 2, axis=1)
            if training.any():
                twice = self._lines(training, base, dictionary).added(self.X[validation], twice)
            columns[validation, 1:] = chances_of(twice)
        return columns

    def grams(self, dictionary: AverageDictionary) -> tuple[Array, Array]:
        """Return the Gram matrices of its residuals by fold, (F, K, K), and the rows' weights (F,)."""
        residuals = self.y[:, None] - self.columns(dictionary)
        weights = np.ones(len(self.y)) if self.weights is None else self.weights
        grams, counts = [], []
        for fold in range(self.n_folds):
            selected = self.folds == fold
            flat = np.moveaxis(residuals[selected], 1, 0)
            weighted = (flat * weights[selected, None]).reshape(len(flat), -1)
            grams.append(weighted @ flat.reshape(len(flat), -1).T)
            counts.append(weights[selected].sum())
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
        result = self._lines(seen, self._base(dictionary.labellings), dictionary) if seen.any() else None
        whole = np.zeros((2 * len(dictionary.labellings), n_columns, self.X.shape[1] + 1))
        if result is None:
            return OwnLines(whole, np.zeros((*whole.shape[:2], 2)))
        whole[..., : result.lines.shape[-1] - 1] = result.lines[..., :-1]
        whole[..., -1] = result.lines[..., -1]
        return OwnLines(whole, result.limits)
