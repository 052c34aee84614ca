"""The loss: everything that the method needs of a response.

Inside, a response is an array of shape (N, C): one column of numbers, or a column for each class. The loss of
a row is the sum of its squared residuals over the columns. That is the squared error of a number and the
Brier score of probabilities. Nothing else squares a residual; what is computed from second moments
(`kernels.affine`, `method.refine`) is a closed form of this loss.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from coterie._arrays import Array

# The standard deviation of normal noise whose median absolute value is one.
NORMAL_SPREAD = 1.4826


class Loss(ABC):
    """The loss of predictions, and how a user's response becomes columns of numbers and back.

    A kind of response (numbers, classes) is a subclass. It says how a response becomes an array of shape
    (N, C) and how predictions of that shape become what a user sees. The loss is the squared error for
    all kinds.
    """

    bounds: ClassVar[tuple[float, float] | None] = None
    """Lowest and highest possible response, so that none is an outlier. None: responses are unbounded."""

    def own_bounds(self, n_rows: int) -> tuple[float, float] | None:
        """Return the lowest and highest prediction allowed to a model fitted on ``n_rows`` rows.

        None means that the kind of response sets no bounds; the range of the model's responses does.
        """
        return None

    @property
    @abstractmethod
    def n_columns(self) -> int:
        """Number of columns C of a response."""

    @abstractmethod
    def response(self, y: Array) -> Array:
        """Return a user's response of shape (N,) as columns of shape (N, C)."""

    @abstractmethod
    def target(self, response: Array) -> Array:
        """Return what a model is fitted to, of shape (N,), from columns of shape (N, C)."""

    @abstractmethod
    def predict(self, model: Any, X: Array) -> Array:
        """Return a model's predictions as columns of shape (N, C); raise where it answers otherwise."""

    @abstractmethod
    def from_columns(self, predictions: Array) -> Array:
        """Return predictions of shape (N, C) as a user sees them."""

    def columns(self, predictions: Array) -> Array:
        """Return predictions as a user sees them as columns of shape (N, C): `from_columns` undone."""
        return np.reshape(predictions, (len(predictions), -1))

    def by_row(self, residuals: Array, clips: Array | float | None = None) -> Array:
        """Return the loss of each row: the sum of its squared residuals over the columns.

        ``residuals`` have the shape (..., C), the losses the shape (...). ``clips``, a number or an
        array of shape (...), bounds each loss from above, so that a few outlying rows do not decide.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            if residuals.shape[-1] == 1:
                losses: Array = np.square(residuals[..., 0])
            else:
                losses = np.square(residuals).sum(axis=-1)
        return losses if clips is None else np.minimum(losses, clips, out=losses)

    def mean(self, residuals: Array, weights: Array | None = None) -> float:
        """Return the mean loss of rows, residuals of shape (n, C), which count by their weights."""
        return float(np.average(self.by_row(residuals), weights=weights))

    def variance(self, y: Array) -> float:
        """Return the mean loss of the best constant prediction of a response ``y`` of shape (N, C).

        It is the variance, summed over columns. It is zero where it is no larger than rounding error,
        so that a constant response is recognised.
        """
        variance = float(y.var(axis=0).sum())
        return variance if variance > self.rounding(y) else 0.0

    def rounding(self, y: Array) -> float:
        """Return the loss that rounding errors alone may cause, for a response ``y`` of shape (N, C)."""
        return float((1e-12 * np.abs(y).max()) ** 2)

    def claimed(self, residuals: Array) -> tuple[Array, Array, Array] | None:
        """Return mean, variance and third central moment of each row's loss if the predictions are true.

        Predicted probabilities imply how large their Brier score should be; predicted numbers imply
        nothing, then this is None. ``residuals`` have the shape (..., C), each of the three arrays
        the shape (...).
        """
        return None

    def noise_level(self, residuals: Array) -> float:
        """Return a robust estimate of the noise variance from residuals of shape (n, C).

        It is the squared median absolute residual, scaled to the standard deviation of normal noise
        and summed over columns. Outlying rows, if fewer than half, hardly change it.
        """
        standard_deviations = NORMAL_SPREAD * np.median(np.abs(residuals), axis=0)
        return float((standard_deviations * standard_deviations).sum())


@dataclass(frozen=True)
class SquaredError(Loss):
    """Squared error of a number, as in the paper."""

    @property
    def n_columns(self) -> int:
        """One column."""
        return 1

    def response(self, y: Array) -> Array:
        """Return a response of shape (N,) as one column."""
        return np.reshape(y, (-1, 1))

    def target(self, response: Array) -> Array:
        """Return the one column, of shape (N,)."""
        return response[:, 0]

    def predict(self, model: Any, X: Array) -> Array:
        """Return the predictions of a regressor as one column."""
        prediction = np.asarray(model.predict(X), dtype=float)
        if prediction.shape not in ((len(X),), (len(X), 1)):
            raise ValueError(f"predicted the shape {prediction.shape} for {len(X)} rows")
        return prediction.reshape(-1, 1)

    def from_columns(self, predictions: Array) -> Array:
        """Return the predicted numbers, of shape (N,)."""
        return predictions[:, 0]


SQUARED_ERROR = SquaredError()


@dataclass(frozen=True)
class BrierScore(Loss):
    """Squared error of probabilities, for classes that are numbered 0 to ``n_classes`` - 1.

    Two classes have one column, the probability of the second; more have a column each. Models are
    classifiers whose ``predict_proba`` is read. One may have seen some of the classes only: the others have
    the probability zero.
    """

    bounds: ClassVar[tuple[float, float] | None] = (0.0, 1.0)

    n_classes: int = 2

    def own_bounds(self, n_rows: int) -> tuple[float, float] | None:
        """Return the lowest and highest probability allowed to a classifier of ``n_rows`` rows.

        By the rule of succession, the lowest is 1 / (n + K) for K classes: no number of rows shows
        that a class is impossible.
        """
        lowest_probability = 1 / (n_rows + self.n_classes)
        return lowest_probability, 1 - lowest_probability

    @property
    def n_columns(self) -> int:
        """One column for two classes, else a column for each."""
        return 1 if self.n_classes == 2 else self.n_classes

    def response(self, y: Array) -> Array:
        """Return the numbers of classes, of shape (N,), as columns of noughts and ones."""
        codes = np.asarray(y, dtype=int)
        return codes[:, None].astype(float) if self.n_classes == 2 else np.eye(self.n_classes)[codes]

    def target(self, response: Array) -> Array:
        """Return the number of the class of each row, of shape (N,)."""
        codes: Array = response[:, 0] if self.n_classes == 2 else response.argmax(axis=1)
        return codes.astype(int)

    def predict(self, model: Any, X: Array) -> Array:
        """Return a classifier's probabilities as columns, of shape (N, C).

        Classes that the classifier was not fitted on get the probability zero.
        """
        seen_probabilities = np.asarray(model.predict_proba(X), dtype=float)
        seen_classes = np.asarray(model.classes_).astype(int)
        if seen_probabilities.shape != (len(X), len(seen_classes)):
            raise ValueError(f"predicted the shape {seen_probabilities.shape} for {len(X)} rows")
        probabilities = np.zeros((len(X), self.n_classes))
        probabilities[:, seen_classes] = seen_probabilities
        return probabilities[:, 1:] if self.n_classes == 2 else probabilities

    def from_columns(self, predictions: Array) -> Array:
        """Return probabilities of all classes, of shape (N, n_classes), that sum to one.

        Mixtures with lines may leave the range from 0 to 1, so columns are clipped and divided by
        their sum. Rows whose columns are all zero get equal probabilities.
        """
        clipped = np.clip(predictions, 0.0, 1.0)
        if self.n_classes == 2:
            return np.column_stack([1 - clipped, clipped])
        totals = clipped.sum(axis=1, keepdims=True)
        equal_probabilities = np.full_like(clipped, 1 / self.n_classes)
        probabilities: Array = np.divide(clipped, totals, out=equal_probabilities, where=totals > 0)
        return probabilities

    def columns(self, predictions: Array) -> Array:
        """Return probabilities of all classes (N, n_classes) as columns, of shape (N, C)."""
        return predictions[:, 1:] if self.n_classes == 2 else predictions

    def claimed(self, residuals: Array) -> tuple[Array, Array, Array]:
        """Return mean, variance and third central moment of each row's loss if the probabilities are true.

        ``residuals`` (..., C) are response minus probability: positive only for the class that came.
        So they tell the predicted probabilities by themselves.
        """
        probabilities = np.where(residuals > 0, 1 - residuals, -residuals)
        if self.n_classes == 2:
            probability = probabilities[..., 0]
            mean_loss, asymmetry = probability * (1 - probability), 1 - 2 * probability
            return mean_loss, asymmetry**2 * mean_loss, asymmetry**4 * mean_loss
        sum_of_squares, sum_of_cubes, sum_of_fourths = (
            (probabilities**power).sum(axis=-1) for power in (2, 3, 4)
        )
        third_moment = -8 * (sum_of_fourths - 3 * sum_of_cubes * sum_of_squares + 2 * sum_of_squares**3)
        return 1 - sum_of_squares, 4 * (sum_of_cubes - sum_of_squares**2), third_moment

    def noise_level(self, residuals: Array) -> float:
        """Return infinity: a row of a rare class is no outlier, so no loss is clipped by the noise."""
        return float("inf")
