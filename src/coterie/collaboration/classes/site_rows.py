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
    """A learner who answers by numbers; fields as for `nested.site_rows.SiteRows`, with C columns.

    ``y`` and ``own_predictions`` (out of fold) have the shape (n, C), ``table``, what M models predict on the
    rows, (M, n, C). ``folds`` (n,) is the fold that holds each row out, -1 for none. ``place`` is the
    learner's position among the models, and ``losses`` returns losses (K, n) of the averages of a labelling.
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
        # Rows that some fold holds out: out-of-fold predictions are known for these only.
        return self.folds >= 0

    def _without_fold(self, labels: Array, losses: Array, training: Array, validation: Array) -> Array:
        """Return probabilities (n, C) of validation rows by the average that is best on training rows.

        ``labels`` (M,) are the clusters, ``losses`` (K, n) the losses of their averages by row; ``training``
        and ``validation`` are positions. Only training rows decide on the cluster and on the models' weights:
        the validation rows judge these choices later.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            losses_of_models = self.loss.by_row(self.table[:, training] - self.y[training]).mean(axis=1)
        cluster = losses[:, training].mean(axis=1).argmin()
        positions, weights_of_models = average_of(
            labels == cluster, self.model_weights, losses_of_models, self.place
        )
        if positions.tolist() == [self.place]:
            # Its own model has seen these rows.
            return np.asarray(self.own_predictions[validation])
        predictions_of_models, bounds = (
            self.table[np.ix_(positions, validation)],
            self.bounds[positions][:, :, None, None],
        )
        # A model that fails on a row predicts the middle of what it may: one NaN would spoil the average.
        middles = bounds.mean(axis=1)
        predictions_of_models = np.clip(
            np.where(np.isfinite(predictions_of_models), predictions_of_models, middles),
            bounds[:, 0],
            bounds[:, 1],
        )
        averages: Array = np.einsum("m,mnc->nc", weights_of_models, predictions_of_models)
        return averages

    def average(self, labels: Array) -> Array:
        """Return out-of-fold probabilities (n, C) by the averages of a labelling (M,); cached.

        Rows that no fold holds out are NaN. Where there is nothing to choose a cluster by, the
        learner's own model predicts.
        """
        labels_key = labels.tobytes()
        if labels_key not in self._averages:
            losses, probabilities = self.losses(labels), np.full(self.y.shape, np.nan)
            for fold in range(self.n_folds):
                validation = np.flatnonzero(self.folds == fold)
                training = np.flatnonzero(self._seen & (self.folds != fold))
                if len(validation) and len(training):
                    probabilities[validation] = self._without_fold(labels, losses, training, validation)
                else:
                    probabilities[validation] = self.own_predictions[validation]
            self._averages[labels_key] = probabilities
        return self._averages[labels_key]

    def _base(self, labellings: Sequence[Array]) -> Array:
        """Return the out-of-fold log-odds (n, E, C) of the averages, to which own lines are added."""
        return log_odds_of(np.stack([self.average(labels) for labels in labellings], axis=1))

    def _rows(self, training: Array, units: Array) -> OwnClassRows:
        """Return training rows, prepared for lines beside any shared model."""
        weights = None if self.weights is None else self.weights[training]
        return OwnClassRows.of(self.X[training], self.y[training], weights, units)

    def likelihoods(self, labellings: Sequence[Array], units: Array) -> Array:
        """Return log-likelihoods (E, A, B) of E averages, on a grid of variances of offsets and slopes.

        They say how well each pair of variances explains the site's rows. They are relative to the largest
        one, bounded below and rounded: choosing the variances needs no more, and nothing more of the rows
        leaves the site.
        """
        is_held_out = self._seen
        log_likelihoods = self._rows(is_held_out, units).likelihoods(self._base(labellings)[is_held_out])
        relative = log_likelihoods - log_likelihoods.max(axis=(1, 2), keepdims=True)
        return np.asarray(np.round(np.maximum(relative, LEAST_LIKELIHOOD), LIKELIHOOD_DIGITS))

    def _lines(self, training: Array, base: Array, dictionary: AverageDictionary) -> OwnLines:
        """Return the learner's own lines beside the averages, fitted to training rows.

        First there are E with an offset only, then E with offset and slopes. ``base`` (n, E, C) are the
        averages' log-odds; ``dictionary`` says which averages there are, with units and prior variances.
        """
        rows = self._rows(training, dictionary.units)
        return rows.lines(np.concatenate([base[training]] * 2, axis=1), np.concatenate(dictionary.ratios))

    def columns(self, dictionary: AverageDictionary) -> Array:
        """Return out-of-fold probabilities (n, K, C) of all K = 2 E + 1 predictors; NaN without a fold.

        They are the learner's own model, E averages with an offset, and E averages with offset and
        slopes.
        """
        base = self._base(dictionary.labellings)
        columns = np.full((len(self.y), 1 + 2 * base.shape[1], self.y.shape[1]), np.nan)
        for fold in range(self.n_folds):
            validation = self.folds == fold
            training = self._seen & ~validation
            if not validation.any():
                continue
            columns[validation, 0] = self.own_predictions[validation]
            log_odds = np.concatenate([base[validation]] * 2, axis=1)
            # Lines are fitted to the rows of the other folds; without such rows averages stay as they are.
            if training.any():
                log_odds = self._lines(training, base, dictionary).added(self.X[validation], log_odds)
            columns[validation, 1:] = chances_of(log_odds)
        return columns

    def grams(self, dictionary: AverageDictionary) -> tuple[Array, Array]:
        """Return Gram matrices of the predictors' residuals by fold, (F, K, K), and row weights (F,).

        They are all that is needed to find the best weights of the predictors, without the rows. The
        predictors are the K of `columns`; a Gram matrix has the products of their residuals, summed over
        rows.
        """
        residuals = self.y[:, None] - self.columns(dictionary)
        weights = np.ones(len(self.y)) if self.weights is None else self.weights
        grams, counts = [], []
        for fold in range(self.n_folds):
            in_fold = self.folds == fold
            by_predictor = np.moveaxis(residuals[in_fold], 1, 0)
            weighted_residuals = (by_predictor * weights[in_fold, None]).reshape(len(by_predictor), -1)
            grams.append(weighted_residuals @ by_predictor.reshape(len(by_predictor), -1).T)
            counts.append(weights[in_fold].sum())
        return np.array(grams), np.array(counts)

    def residuals(self, dictionary: AverageDictionary, held_out: Array) -> Array:
        """Return out-of-fold residuals (n, C) of the mixture of predictors.

        ``held_out`` (F, K) are weights that were learnt without each fold; each row takes those without its
        own. The mixture is clipped to what the number of the learner's rows allows, since offsets and weights
        were learnt on these.
        """
        columns, weights = self.columns(dictionary), held_out[np.maximum(self.folds, 0)]
        mixture = np.clip(np.einsum("nkc,nk->nc", columns, weights), *self.bounds[self.place])
        residuals: Array = self.y - mixture
        return residuals

    def own_lines(self, dictionary: AverageDictionary) -> OwnLines:
        """Return the own lines (2 E, C, p + 1) that the learner adds to the averages, by all its rows.

        Without a row that some fold holds out there is nothing to fit, and zeros stand in. So they do for the
        slopes where predictors are too many for own slopes.
        """
        is_held_out, n_columns = self._seen, self.y.shape[1]
        fitted_lines = (
            self._lines(is_held_out, self._base(dictionary.labellings), dictionary)
            if is_held_out.any()
            else None
        )
        padded_lines = np.zeros((2 * len(dictionary.labellings), n_columns, self.X.shape[1] + 1))
        if fitted_lines is None:
            return OwnLines(padded_lines, np.zeros((*padded_lines.shape[:2], 2)))
        padded_lines[..., : fitted_lines.lines.shape[-1] - 1] = fitted_lines.lines[..., :-1]
        padded_lines[..., -1] = fitted_lines.lines[..., -1]
        return OwnLines(padded_lines, fitted_lines.limits)
