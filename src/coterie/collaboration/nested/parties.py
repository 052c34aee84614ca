"""What a learner is asked when weights are learnt: numbers of its own rows, never the rows.

A party knows its rows and what the dictionary's shared models predict there out of fold, its own model
included. It is asked three things: the spread of its predictors, for common units; log-likelihoods on a
grid, for the size of offsets and slopes; and the Gram matrix of its residuals fold by fold, for the
weights. Summed over the parties these decide, so that parties whose rows may not move can answer by
messages: E x 132 numbers and F x C x C numbers for E shared models, F folds and C = 2 E + 1 columns. With
as many models as a party has rows and more, its Gram matrix tells its residuals up to a rotation: say so to
whom it concerns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coterie._arrays import Array
from coterie.collaboration.nested.effects import OwnRows, linear_values
from coterie.collaboration.nested.guard import widened


@dataclass(frozen=True)
class RowParty:
    """A learner who answers by numbers.

    ``folds`` (n,) is the fold that holds each row out; -1 for rows that take no part. ``alone`` (n,) has its
    own model's predictions and ``shared`` (n, E) those of the shared models, out of fold. ``noise`` is its
    noise level. Variances of the response below ``smallest`` are rounding.
    """

    X: Array
    y: Array
    folds: Array
    n_folds: int
    alone: Array
    shared: Array
    noise: float
    weights: Array | None
    smallest: float

    @property
    def _seen(self) -> Array:
        return self.folds >= 0

    @property
    def _residuals(self) -> Array:
        residuals: Array = self.y[:, None] - self.shared
        return residuals

    def spreads(self) -> Array:
        """Return the standard deviation of every predictor, of shape (p,)."""
        spreads: Array = self.X.std(axis=0)
        return spreads

    def likelihoods(self, units: Array) -> Array:
        """Return log-likelihoods of shape (E, offsets, slopes) of the shared models' residuals."""
        seen = self._seen
        return OwnRows.of(self.X[seen], units, self.noise).likelihoods(self._residuals[seen])

    def _corrections(self, kept: Array, units: Array, ratios: Array, ahead: Array) -> Array:
        """Return the corrections of shape (2, n', E) that kept rows call for on the rows ahead."""
        own = OwnRows.of(self.X[kept], units, self.noise)
        corrections = []
        for ratio in ratios:
            coefficients = own.coefficients(self._residuals[kept], ratio)
            low, high = widened(linear_values(self.X[kept], coefficients))
            corrections.append(np.clip(linear_values(self.X[ahead], coefficients), low, high))
        return np.array(corrections)

    def columns(self, units: Array, ratios: Array) -> Array:
        """Return the predictions of all columns, out of fold, of shape (n, C); NaN where none holds out."""
        n_shared = self.shared.shape[1]
        columns = np.full((len(self.y), 2 * n_shared + 1), np.nan)
        for fold in range(self.n_folds):
            ahead = self.folds == fold
            kept = self._seen & ~ahead
            if not ahead.any():
                continue
            columns[ahead, 0] = self.alone[ahead]
            corrections = np.zeros((2, int(ahead.sum()), n_shared))
            if kept.any() and n_shared:
                corrections = self._corrections(kept, units, ratios, ahead)
            columns[ahead, 1:] = np.hstack([self.shared[ahead] + part for part in corrections])
        return columns

    def grams(self, units: Array, ratios: Array) -> tuple[Array, Array]:
        """Return the Gram matrices of its residuals by fold, of shape (F, C, C), and their weights (F,).

        The columns are its own model, the shared models with an offset (``ratios[0]``), and the shared
        models with offset and slopes (``ratios[1]``). In units of the variance of its response.
        """
        residuals = self.y[:, None] - self.columns(units, ratios)
        weights = np.ones(len(self.y)) if self.weights is None else self.weights
        n_columns = residuals.shape[1]
        grams, counts = np.zeros((self.n_folds, n_columns, n_columns)), np.zeros(self.n_folds)
        for fold in range(self.n_folds):
            mine = self.folds == fold
            rows = residuals[mine]
            grams[fold] = (rows * weights[mine, None]).T @ rows
            counts[fold] = weights[mine].sum()
        return grams / max(float(self.y.var()), self.smallest), counts

    def coefficients(self, units: Array, ratios: Array) -> Array:
        """Return offsets and slopes of shape (2, E, p + 1) from all rows that were held out."""
        seen = self._seen
        n_features = self.X.shape[1]
        whole = np.zeros((2, self.shared.shape[1], n_features + 1))
        if seen.any() and self.shared.shape[1]:
            own = OwnRows.of(self.X[seen], units, self.noise)
            for place, ratio in enumerate(ratios):
                found = own.coefficients(self._residuals[seen], ratio)
                whole[place, :, : found.shape[1] - 1] = found[:, :-1]
                whole[place, :, -1] = found[:, -1]
        return whole
