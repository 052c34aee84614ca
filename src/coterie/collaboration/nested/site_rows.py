"""What a learner answers about averages of models: numbers of its own rows, never the rows.

A site knows its rows, and what everybody's models predict there. Others' models have never seen its rows, so
only its own model needs folds. At each resolution it predicts with the average of the cluster that loses
least on its rows; for rows that a fold holds out, the cluster is chosen by the other rows. It answers two
questions: log-likelihoods on a grid, for the size of offsets and slopes; and the Gram matrices of its
residuals by fold, for the weights. Sites whose rows may not move answer by messages, and the same functions
decide. With as many predictors as a site has rows, a Gram matrix tells the residuals up to a rotation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from coterie._arrays import Array
from coterie.collaboration.nested.effects import OwnRows, linear_values
from coterie.collaboration.nested.guard import widened
from coterie.loss import SQUARED_ERROR

# A model is wild if its loss on my rows is this many times that of the median model of its cluster. If its
# owner lies about its own rows, it may be in the cluster of others.
WILD = 4.0
# A model that loses more on my rows than its cluster's median model weighs less, by this power of the ratio.
# Where one of twelve sites had a slope off by .5, the errors of its coterie rose by 28 % with two, 17 %
# with four, 14 % with eight; without liars excess errors were .0142, .0144 and .0151.
DOUBT = 8.0
# No learner says more against a size of offsets and slopes than this log-likelihood.
LEAST_LIKELIHOOD = -20.0
LIKELIHOOD_DIGITS = 3


def average_of(members: Array, model_weights: Array, losses: Array, place: int) -> tuple[Array, Array]:
    """Return the positions and weights of the models of a cluster that the learner at ``place`` averages.

    ``members`` (M,) marks the cluster, and ``losses`` (M,) are those of everybody's models on the learner's
    rows; a model that failed has none that is finite. Its own model, failing and wild ones are left out, and
    those that lose more than the median model weigh less. Where nobody is of use, it is the learner's own
    model.
    """
    others = members & np.isfinite(losses) & (model_weights > 0)
    others[place] = False
    if not others.any():
        return np.array([place]), np.ones(1)
    typical = np.median(losses[others])
    used = np.flatnonzero(others & (losses <= WILD * typical))
    worse = losses[used] / typical if typical > 0 else np.ones(len(used))
    weights = model_weights[used] / np.maximum(worse, 1.0) ** DOUBT
    return used, weights / weights.sum()


@dataclass(frozen=True)
class AverageDictionary:
    """Which shared predictors there are: the averages of labellings of M learners, coarse ones last.

    ``units`` (p,) are common units of the predictors; ``ratios`` (2, E, 2) are the variances of offsets and
    slopes of each of the E averages, with an offset only and with both.
    """

    labellings: tuple[Array, ...]
    units: Array
    ratios: Array


@dataclass(frozen=True)
class SiteRows:
    """A learner who answers by numbers.

    ``folds`` (n,) is the fold that holds each row out; -1 for rows that take no part. ``own_predictions``
    (n,) has its own model's predictions out of fold, ``table`` (M, n) those of everybody's models, NaN where
    one failed, and ``bounds`` (M, 2) what these are clipped to. ``model_weights`` (M,) is what models weigh
    in averages; ``place`` says where the learner stands among them. ``losses`` returns what the averages of a
    labelling lose by row, of shape (K, n). ``noise`` is its noise level.
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
    noise: float
    weights: Array | None = None
    _averages: dict[bytes, Array] = field(default_factory=dict, repr=False, compare=False)

    @property
    def _seen(self) -> Array:
        return self.folds >= 0

    def _without_fold(self, labels: Array, losses: Array, training: Array, validation: Array) -> Array:
        """Return the predictions of validation rows by the average that is best on training rows."""
        with np.errstate(over="ignore", invalid="ignore"):
            by_model = SQUARED_ERROR.by_row((self.table[:, training] - self.y[training])[..., None]).mean(
                axis=1
            )
        cluster = losses[:, training].mean(axis=1).argmin()
        positions, shares = average_of(labels == cluster, self.model_weights, by_model, self.place)
        if positions.tolist() == [self.place]:
            # Its own model has seen these rows.
            return np.asarray(self.own_predictions[validation])
        part = self.table[np.ix_(positions, validation)]
        # A model that fails on a few rows only stands in with the middle of its bounds there.
        middle = self.bounds[positions].mean(axis=1)[:, None]
        part = np.clip(np.where(np.isfinite(part), part, middle), *self.bounds[positions].T[..., None])
        predictions: Array = shares @ part
        return predictions

    def average(self, labels: Array) -> Array:
        """Return what the averages of a labelling predict out of fold, of shape (n,)."""
        key = labels.tobytes()
        if key not in self._averages:
            losses, predictions = self.losses(labels), np.full(len(self.y), np.nan)
            for fold in range(self.n_folds):
                validation = np.flatnonzero(self.folds == fold)
                training = np.flatnonzero(self._seen & (self.folds != fold))
                if len(validation) and len(training):
                    predictions[validation] = self._without_fold(labels, losses, training, validation)
                else:
                    predictions[validation] = self.own_predictions[validation]
            self._averages[key] = predictions
        return self._averages[key]

    def _shared(self, labellings: Sequence[Array]) -> Array:
        """Return what the averages predict out of fold, of shape (n, E)."""
        return np.column_stack([self.average(labels) for labels in labellings])

    def likelihoods(self, labellings: Sequence[Array], units: Array) -> Array:
        """Return log-likelihoods of shape (E, offsets, slopes) of the averages' residuals.

        They are counted from the largest one, down to a bound, and rounded: more is not needed to choose.
        """
        seen = self._seen
        residuals = self.y[seen, None] - self._shared(labellings)[seen]
        result = OwnRows.of(self.X[seen], units, self.noise).likelihoods(residuals)
        below = result - result.max(axis=(1, 2), keepdims=True)
        return np.asarray(np.round(np.maximum(below, LEAST_LIKELIHOOD), LIKELIHOOD_DIGITS))

    def columns(self, dictionary: AverageDictionary) -> Array:
        """Return the predictions of all columns, out of fold, of shape (n, C); NaN where none holds out.

        The columns are its own model, the averages with an offset, and the averages with offset and slopes.
        """
        shared = self._shared(dictionary.labellings)
        residuals, n_shared = self.y[:, None] - shared, shared.shape[1]
        columns = np.full((len(self.y), 2 * n_shared + 1), np.nan)
        for fold in range(self.n_folds):
            validation = self.folds == fold
            training = self._seen & ~validation
            if not validation.any():
                continue
            columns[validation, 0] = self.own_predictions[validation]
            corrections = np.zeros((2, int(validation.sum()), n_shared))
            if training.any():
                own = OwnRows.of(self.X[training], dictionary.units, self.noise)
                for index, ratio in enumerate(dictionary.ratios):
                    coefficients = own.coefficients(residuals[training], ratio)
                    low, high = widened(linear_values(self.X[training], coefficients))
                    corrections[index] = np.clip(linear_values(self.X[validation], coefficients), low, high)
            columns[validation, 1:] = np.hstack([shared[validation] + part for part in corrections])
        return columns

    def grams(self, dictionary: AverageDictionary) -> tuple[Array, Array]:
        """Return the Gram matrices of its residuals by fold, (F, C, C), and the rows' weights (F,)."""
        residuals = self.y[:, None] - self.columns(dictionary)
        weights = np.ones(len(self.y)) if self.weights is None else self.weights
        n_columns = residuals.shape[1]
        grams, counts = np.zeros((self.n_folds, n_columns, n_columns)), np.zeros(self.n_folds)
        for fold in range(self.n_folds):
            selected = self.folds == fold
            rows = residuals[selected]
            grams[fold] = (rows * weights[selected, None]).T @ rows
            counts[fold] = weights[selected].sum()
        return grams, counts

    def residuals(self, dictionary: AverageDictionary, held_out: Array) -> Array:
        """Return honest residuals (n,) of a mixture; ``held_out`` (F, C) are weights without each fold."""
        columns, weights = self.columns(dictionary), held_out[np.maximum(self.folds, 0)]
        residuals: Array = self.y - np.einsum("nc,nc->n", columns, weights)
        return residuals

    def correction(self, dictionary: AverageDictionary, weights: Array) -> tuple[Array, tuple[float, float]]:
        """Return the learner's own slopes and intercept, (p + 1,), under weights (C,) of the columns.

        With it comes what the correction is clipped to: its range on the rows, with a margin.
        """
        seen, n_features = self._seen, self.X.shape[1]
        shared = self._shared(dictionary.labellings)
        whole = np.zeros(n_features + 1)
        if seen.any():
            own = OwnRows.of(self.X[seen], dictionary.units, self.noise)
            for ratio, parts in zip(dictionary.ratios, weights[1:].reshape(2, shared.shape[1]), strict=True):
                result = parts @ own.coefficients(self.y[seen, None] - shared[seen], ratio)
                whole[: len(result) - 1] += result[:-1]
                whole[-1] += result[-1]
        low, high = widened(linear_values(self.X, whole[None])[:, 0])
        return whole, (float(low), float(high))
