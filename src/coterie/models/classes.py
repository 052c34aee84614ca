"""Classifiers made of what regresses, and the one for rows of a single class."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from coterie._arrays import Array


class OneClass(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The classifier of rows that have one class only: it knows no other."""

    def fit(self, X: Any, y: Any) -> OneClass:
        """Remember the class of ``y`` (n,)."""
        X, y = validate_data(self, X, y)
        self.classes_ = np.unique(y)[:1]
        return self

    def predict_proba(self, X: Any) -> Array:
        """Return the probability one for every row, of shape (n, 1)."""
        check_is_fitted(self)
        return np.ones((len(validate_data(self, X, reset=False)), 1))

    def predict(self, X: Any) -> Array:
        """Return the one class."""
        best = self.predict_proba(X).argmax(axis=1)
        predicted: Array = self.classes_[best]
        return predicted


class VotingForest(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A forest of regression trees on noughts and ones, a column for each class.

    The splits that reduce the squared error of such columns most are those of Gini's index, so the trees are
    a classifier's, and the mean of their leaves is the share of each class.

    Parameters
    ----------
    forest : regressor
        The forest, such as `coterie.models.forest.QuickForest`.
    """

    def __init__(self, forest: Any) -> None:
        self.forest = forest

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> VotingForest:
        """Grow the trees on X of shape (n, p) and classes y, rows weighted by ``sample_weight``."""
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        columns = np.eye(len(self.classes_))[codes]
        target = columns[:, 1] if len(self.classes_) == 2 else columns
        if len(self.classes_) == 1:
            target = columns[:, 0]
        self.forest_ = clone(self.forest).fit(X, target, sample_weight)
        return self

    def predict_proba(self, X: Any) -> Array:
        """Return the shares of the classes, of shape (n, number of classes)."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        shares: Array = self.forest_.predict(X)
        if len(self.classes_) == 1:
            return np.ones((len(X), 1))
        return np.column_stack([1 - shares, shares]) if shares.ndim == 1 else shares

    def predict(self, X: Any) -> Array:
        """Return the class with the largest share."""
        best = self.predict_proba(X).argmax(axis=1)
        predicted: Array = self.classes_[best]
        return predicted
