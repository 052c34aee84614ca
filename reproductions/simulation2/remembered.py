"""Fits that are made once: the same candidate on the same rows serves every set that it is in."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from joblib import hash as content_hash
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin, clone

from coterie.records import Selection

Array = NDArray[Any]


class FitMemory(dict[str, Any]):
    """Fitted models by what they were fitted on.

    A copy is the memory itself, so that clones of an estimator that holds it remember together.
    """

    def __deepcopy__(self, copies: dict[int, Any]) -> FitMemory:
        return self


class Remembered(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A regressor whose fits are looked up before they are made.

    Parameters
    ----------
    estimator : estimator
        The regressor.
    memory : FitMemory
        Shared by all who may have fitted the same.

    Attributes
    ----------
    fitted_ : estimator
        The regressor, fitted.
    """

    def __init__(self, estimator: Any = None, memory: FitMemory | None = None) -> None:
        self.estimator = estimator
        self.memory = memory

    def fit(self, X: Array, y: Array) -> Remembered:
        """Fit, or take the fit that was made before on the same rows with the same settings.

        Parameters
        ----------
        X : ndarray of shape (n, p)
            Predictors.
        y : ndarray of shape (n,)
            Response.

        Returns
        -------
        Remembered
            Itself, fitted.
        """
        known = FitMemory() if self.memory is None else self.memory
        key = content_hash((self.estimator, X, y))
        if key not in known:
            known[key] = clone(self.estimator).fit(X, y)
        self.fitted_ = known[key]
        return self

    def predict(self, X: Array) -> Array:
        """Predict.

        Parameters
        ----------
        X : ndarray of shape (n, p)
            Predictors.

        Returns
        -------
        ndarray of shape (n,)
            Predictions.
        """
        prediction: Array = self.fitted_.predict(X)
        return prediction


def unwrapped(selection: Selection) -> Selection:
    """Return the selection with the regressors themselves in place of those who remember them.

    Parameters
    ----------
    selection : Selection
        Among `Remembered` candidates.

    Returns
    -------
    Selection
        The same as among the regressors themselves.
    """
    models = tuple(model.fitted_ for model in selection.models)
    folds = tuple(tuple(model.fitted_ for model in several) for several in selection.fold_models)
    return replace(selection, models=models, fold_models=folds)
