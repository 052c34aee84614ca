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

# The standard deviation of normal noise whose median size is one.
NORMAL_SPREAD = 1.4826


class Loss(ABC):
    """What a row of predictions costs, and how responses and predictions look inside and outside.

    A kind of response says how it becomes columns, and its predictions from columns. The arithmetic is the
    same for all of them.
    """

    bounds: ClassVar[tuple[float, float] | None] = None
    """What all responses lie within. Then none of them is far from the others. None: anything may come."""

    def own_bounds(self, n_rows: int) -> tuple[float, float] | None:
        """Return what a model of some rows may predict at all; None: what its responses make plausible."""
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
        """Return the losses of shape (...) of residuals of shape (..., C), at most ``clips`` if given."""
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
        """Return the mean loss of the best constant on a response of shape (N, C); zero if it is rounding."""
        variance = float(y.var(axis=0).sum())
        return variance if variance > self.rounding(y) else 0.0

    def rounding(self, y: Array) -> float:
        """Return the loss that is rounding of values as large as these, of shape (N, C)."""
        return float((1e-12 * np.abs(y).max()) ** 2)

    def claimed(self, residuals: Array) -> tuple[Array, Array, Array] | None:
        """Return what predictions say of their own losses, from residuals (..., C); None: they say nothing.

        These are mean, variance and third central moment of the loss of each row, of shape (...).
        """
        return None

    def noise_level(self, residuals: Array) -> float:
        """Return the mean loss that the middle rows show: outlying ones do not count.

        It is the squared robust standard deviation of residuals of shape (n, C), summed over columns.
        """
        spreads = NORMAL_SPREAD * np.median(np.abs(residuals), axis=0)
        return float((spreads * spreads).sum())


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
        """Return the bounds of the rule of succession: no rows show that a class is impossible."""
        least = 1 / (n_rows + self.n_classes)
        return least, 1 - least

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
        """Return the probabilities of a classifier as columns."""
        answered = np.asarray(model.predict_proba(X), dtype=float)
        seen = np.asarray(model.classes_).astype(int)
        if answered.shape != (len(X), len(seen)):
            raise ValueError(f"predicted the shape {answered.shape} for {len(X)} rows")
        whole = np.zeros((len(X), self.n_classes))
        whole[:, seen] = answered
        return whole[:, 1:] if self.n_classes == 2 else whole

    def from_columns(self, predictions: Array) -> Array:
        """Return probabilities of all classes, of shape (N, n_classes), that sum to one."""
        inside = np.clip(predictions, 0.0, 1.0)
        if self.n_classes == 2:
            return np.column_stack([1 - inside, inside])
        totals = inside.sum(axis=1, keepdims=True)
        nobody = np.full_like(inside, 1 / self.n_classes)
        shares: Array = np.divide(inside, totals, out=nobody, where=totals > 0)
        return shares

    def columns(self, predictions: Array) -> Array:
        """Return probabilities of all classes (N, n_classes) as columns, of shape (N, C)."""
        return predictions[:, 1:] if self.n_classes == 2 else predictions

    def claimed(self, residuals: Array) -> tuple[Array, Array, Array]:
        """Return mean, variance and third central moment of the loss if the probabilities hold.

        A residual is positive for the class that came, so that it tells the probability by itself.
        """
        probabilities = np.where(residuals > 0, 1 - residuals, -residuals)
        if self.n_classes == 2:
            chance = probabilities[..., 0]
            spread, lean = chance * (1 - chance), 1 - 2 * chance
            return spread, lean**2 * spread, lean**4 * spread
        second, third, fourth = ((probabilities**power).sum(axis=-1) for power in (2, 3, 4))
        skewed = -8 * (fourth - 3 * third * second + 2 * second**3)
        return 1 - second, 4 * (third - second**2), skewed

    def noise_level(self, residuals: Array) -> float:
        """Return infinity: a rare class is no outlier, and no row counts for less."""
        return float("inf")
