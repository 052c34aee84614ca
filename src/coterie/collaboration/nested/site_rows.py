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
WILD_LOSS_RATIO = 4.0
# A model that loses more on my rows than its cluster's median model weighs less, by this power of the ratio.
# Where one of twelve sites had a slope off by .5, the errors of its coterie rose by 28 % with two, 17 %
# with four, 14 % with eight; without liars excess errors were .0142, .0144 and .0151.
DOUBT_POWER = 8.0
# No learner says more against a size of offsets and slopes than this log-likelihood.
LEAST_LIKELIHOOD = -20.0
LIKELIHOOD_DIGITS = 3


def average_of(members: Array, model_weights: Array, losses: Array, place: int) -> tuple[Array, Array]:
    """Return the positions and weights of the models whose average predicts for the learner at ``place``.

    ``members`` (M,) marks its cluster, ``model_weights`` (M,) are the models' weights, and ``losses``
    (M,) their mean losses on the learner's rows, not finite where a model failed.

    The learner's own model is left out, as it is weighed apart. So are failing models and those with
    several times the median loss; others that lose more than the median weigh less. If no model is left,
    it is the learner's own.
    """
    useful = members & np.isfinite(losses) & (model_weights > 0)
    useful[place] = False
    if not useful.any():
        return np.array([place]), np.ones(1)
    median_loss = np.median(losses[useful])
    used = np.flatnonzero(useful & (losses <= WILD_LOSS_RATIO * median_loss))
    loss_ratios = losses[used] / median_loss if median_loss > 0 else np.ones(len(used))
    weights = model_weights[used] / np.maximum(loss_ratios, 1.0) ** DOUBT_POWER
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
        """Return predictions of validation rows by the average of the cluster that is best on training rows.

        ``labels`` (M,) are the clusters, ``losses`` (K, n) the losses of their averages by row;
        ``training`` and ``validation`` are positions. Only training rows decide on the cluster and on
        the models' weights.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            losses_of_models = SQUARED_ERROR.by_row(
                (self.table[:, training] - self.y[training])[..., None]
            ).mean(axis=1)
        cluster = losses[:, training].mean(axis=1).argmin()
        positions, weights_of_models = average_of(
            labels == cluster, self.model_weights, losses_of_models, self.place
        )
        if positions.tolist() == [self.place]:
            # Its own model has seen these rows.
            return np.asarray(self.own_predictions[validation])
        predictions_of_models = self.table[np.ix_(positions, validation)]
        # A model that fails on a few rows only stands in with the middle of its bounds there.
        middle = self.bounds[positions].mean(axis=1)[:, None]
        predictions_of_models = np.clip(
            np.where(np.isfinite(predictions_of_models), predictions_of_models, middle),
            *self.bounds[positions].T[..., None],
        )
        averages: Array = weights_of_models @ predictions_of_models
        return averages

    def average(self, labels: Array) -> Array:
        """Return out-of-fold predictions (n,) by the averages of a labelling (M,); cached.

        Rows that no fold holds out are NaN. Where there is nothing to choose a cluster by, the
        learner's own model predicts.
        """
        labels_key = labels.tobytes()
        if labels_key not in self._averages:
            losses, predictions = self.losses(labels), np.full(len(self.y), np.nan)
            for fold in range(self.n_folds):
                validation = np.flatnonzero(self.folds == fold)
                training = np.flatnonzero(self._seen & (self.folds != fold))
                if len(validation) and len(training):
                    predictions[validation] = self._without_fold(labels, losses, training, validation)
                else:
                    predictions[validation] = self.own_predictions[validation]
            self._averages[labels_key] = predictions
        return self._averages[labels_key]

    def _shared(self, labellings: Sequence[Array]) -> Array:
        """Return what the averages predict out of fold, of shape (n, E)."""
        return np.column_stack([self.average(labels) for labels in labellings])

    def likelihoods(self, labellings: Sequence[Array], units: Array) -> Array:
        """Return log-likelihoods (E, A, B) of E averages, on a grid of variances of offsets and slopes.

        They are relative to the largest one, bounded below and rounded: choosing the variances needs
        no more, and the site tells no more of its rows than needed.
        """
        is_held_out = self._seen
        residuals = self.y[is_held_out, None] - self._shared(labellings)[is_held_out]
        log_likelihoods = OwnRows.of(self.X[is_held_out], units, self.noise).likelihoods(residuals)
        relative = log_likelihoods - log_likelihoods.max(axis=(1, 2), keepdims=True)
        return np.asarray(np.round(np.maximum(relative, LEAST_LIKELIHOOD), LIKELIHOOD_DIGITS))

    def columns(self, dictionary: AverageDictionary) -> Array:
        """Return out-of-fold predictions (n, C) of all C = 2 E + 1 predictors; NaN without a fold.

        The columns are the learner's own model, E averages with an offset, and E averages with offset
        and slopes. Offsets and slopes are fitted without the fold as well.
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
                own_rows = OwnRows.of(self.X[training], dictionary.units, self.noise)
                for kind, ratios_of_shared in enumerate(dictionary.ratios):
                    coefficients = own_rows.coefficients(residuals[training], ratios_of_shared)
                    low, high = widened(linear_values(self.X[training], coefficients))
                    corrections[kind] = np.clip(linear_values(self.X[validation], coefficients), low, high)
            columns[validation, 1:] = np.hstack(
                [shared[validation] + kind_corrections for kind_corrections in corrections]
            )
        return columns

    def grams(self, dictionary: AverageDictionary) -> tuple[Array, Array]:
        """Return Gram matrices R'R of the predictors' residuals by fold, (F, C, C), and row weights (F,).

        They are all that is needed to find the best weights of the predictors, without the rows: these stay
        at the site. The predictors are those of `columns`.
        """
        residuals = self.y[:, None] - self.columns(dictionary)
        weights = np.ones(len(self.y)) if self.weights is None else self.weights
        n_columns = residuals.shape[1]
        grams, counts = np.zeros((self.n_folds, n_columns, n_columns)), np.zeros(self.n_folds)
        for fold in range(self.n_folds):
            in_fold = self.folds == fold
            fold_residuals = residuals[in_fold]
            grams[fold] = (fold_residuals * weights[in_fold, None]).T @ fold_residuals
            counts[fold] = weights[in_fold].sum()
        return grams, counts

    def residuals(self, dictionary: AverageDictionary, held_out: Array) -> Array:
        """Return out-of-fold residuals (n,) of the mixture of predictors.

        ``held_out`` (F, C) are weights that were learnt without each fold, so that a row has no say
        in its own prediction.
        """
        columns, weights = self.columns(dictionary), held_out[np.maximum(self.folds, 0)]
        residuals: Array = self.y - np.einsum("nc,nc->n", columns, weights)
        return residuals

    def correction(self, dictionary: AverageDictionary, weights: Array) -> tuple[Array, tuple[float, float]]:
        """Return the learner's own line, slopes and intercept (p + 1,), and what its values are clipped to.

        Under the weights (C,) of the columns, it is the weighted sum of the offsets and slopes that
        are added to the averages. The bounds are its range on the rows, with a margin.
        """
        is_held_out, n_features = self._seen, self.X.shape[1]
        shared = self._shared(dictionary.labellings)
        line = np.zeros(n_features + 1)
        if is_held_out.any():
            own_rows = OwnRows.of(self.X[is_held_out], dictionary.units, self.noise)
            for ratios_of_shared, weights_of_shared in zip(
                dictionary.ratios, weights[1:].reshape(2, shared.shape[1]), strict=True
            ):
                coefficients = weights_of_shared @ own_rows.coefficients(
                    self.y[is_held_out, None] - shared[is_held_out], ratios_of_shared
                )
                line[: len(coefficients) - 1] += coefficients[:-1]
                line[-1] += coefficients[-1]
        low, high = widened(linear_values(self.X, line[None])[:, 0])
        return line, (float(low), float(high))
