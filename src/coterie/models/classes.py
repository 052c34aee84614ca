"""Classifiers made of what regresses, and the one for rows of a single class."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from coterie._arrays import Array


class OneClass(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The classifier for rows of a single class, which scikit-learn's classifiers refuse."""

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
        """Return the one class for every row, of shape (n,)."""
        class_positions = self.predict_proba(X).argmax(axis=1)
        predicted: Array = self.classes_[class_positions]
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
        """Grow the trees on X (n, p) and classes y (n,), rows weighted by ``sample_weight`` (n,).

        Two classes need one column, the second class; more have a column each.
        """
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        indicators = np.eye(len(self.classes_))[codes]
        target = indicators[:, 1] if len(self.classes_) == 2 else indicators
        if len(self.classes_) == 1:
            target = indicators[:, 0]
        self.forest_ = clone(self.forest).fit(X, target, sample_weight)
        return self

    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of the classes, (n, number of classes): mean shares in the leaves."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        class_shares: Array = self.forest_.predict(X)
        if len(self.classes_) == 1:
            return np.ones((len(X), 1))
        return np.column_stack([1 - class_shares, class_shares]) if class_shares.ndim == 1 else class_shares

    def predict(self, X: Any) -> Array:
        """Return the most probable class of every row, of shape (n,)."""
        class_positions = self.predict_proba(X).argmax(axis=1)
        predicted: Array = self.classes_[class_positions]
        return predicted
