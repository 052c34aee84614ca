"""What all displays share: how they are made from a fitted model, and how they open an axis."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from coterie._arrays import Array
from coterie.displays._look import open_axis
from coterie.estimator import CoterieEstimator


def fitted(model: Any, display: type) -> CoterieEstimator:
    """Return the model after a check that it is one of our estimators and fitted.

    ``display`` is the class of the picture, whose name the error has.
    """
    if not isinstance(model, CoterieEstimator):
        is_class = isinstance(model, type)
        description = f"the class {model.__name__} itself" if is_class else type(model).__name__
        raise TypeError(
            f"{display.__name__}.from_estimator takes a fitted CoterieRegressor. Got {description}."
        )
    check_is_fitted(model)
    return model


def loss_name_of(model: CoterieEstimator) -> str:
    """Return what a model's errors are called on axes: mean squared error, or Brier score of classes."""
    options = model.record_.options
    if options.loss.bounds is not None:
        return "Brier score"
    return "mean squared error" + (" of the log" if options.log_target else "")


def by_reference(ids: Array) -> Array:
    """Return ids, texts as an object array: repeating them then copies references, not characters."""
    return ids.astype(object) if ids.dtype.kind == "U" else ids


def ids_or_positions(learner_ids: ArrayLike | None, count: int) -> Array:
    """Return the ids given, or 0 to count - 1."""
    return np.arange(count) if learner_ids is None else np.asarray(learner_ids)


class Display:
    """A picture of a fitted model.

    A subclass says what it takes from a model (``_of``), how large its figure is (``_size``), and how it
    draws the numbers of its ``frame`` on an axis (``_draw``).

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where ``plot`` drew.
    figure_ : matplotlib Figure
        The figure of ``ax_``.
    """

    ax_: Any
    figure_: Any

    @classmethod
    def _of(cls, model: CoterieEstimator) -> Self:
        """Make the display from a fitted model: each subclass takes the arrays that it draws."""
        raise NotImplementedError

    def _size(self) -> tuple[float, float]:
        """Return the width and height of a new figure, in inches."""
        raise NotImplementedError

    def _draw(self, ax: Any, kwargs: dict[str, Any]) -> None:
        """Draw on a matplotlib axis; ``kwargs`` are the user's options for the points, bars or image."""
        raise NotImplementedError

    def _check_lengths(self, **columns: Array) -> None:
        """Refuse columns that do not run over the same learners."""
        lengths = {name: len(column) for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            lengths_text = ", ".join(f"{name} {length}" for name, length in lengths.items())
            name = type(self).__name__
            raise ValueError(f"The arguments of {name} must have one entry per learner. Got {lengths_text}.")

    @classmethod
    def from_estimator(cls, model: Any) -> Self:
        """Take the numbers from a fitted model.

        Parameters
        ----------
        model : CoterieRegressor or CoterieClassifier
            Fitted.

        Returns
        -------
        Display
            Ready to be drawn.
        """
        return cls._of(fitted(model, cls))

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the numbers of ``frame``.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw. None: a new figure.
        **kwargs : dict
            For what is drawn: its points, passed to ``Axes.scatter``, its bars, passed to ``Axes.barh``, or
            its image, passed to ``Axes.imshow``.

        Returns
        -------
        Display
            Itself, with ``ax_`` and ``figure_``.
        """
        self.ax_ = open_axis(ax, self._size())
        self.figure_ = self.ax_.figure
        self._draw(self.ax_, kwargs)
        return self
