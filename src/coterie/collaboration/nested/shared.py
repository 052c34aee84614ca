"""A shared predictor as terms over models: the same for models of pooled rows and for averages of models."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Terms = tuple[Array, Array]


@dataclass(frozen=True)
class Shared:
    """What the clusters of one resolution predict with.

    Parameters
    ----------
    count : int
        Number of clusters asked for; one: all together.
    kind : str
        Family and form.
    labels : ndarray of shape (L,)
        Cluster of each learner.
    terms : tuple of pairs of ndarray
        For each cluster the positions of its models and their weights, which sum to one.
    levels : ndarray of shape (L,)
        What each learner adds.
    excluded : ndarray of bool, shape (L, models), or None, default=None
        Models that a learner does not use: its own, where it is weighed apart, and wild ones.
    told : bool, default=False
        Whether the models are told the learners' traits.
    """

    count: int
    kind: str
    labels: Array
    terms: tuple[Terms, ...] = field(repr=False)
    levels: Array = field(repr=False)
    excluded: Array | None = field(default=None, repr=False)
    told: bool = False

    def terms_of(self, learner: int) -> Terms:
        """Return the positions and weights of the models that one learner uses."""
        positions, weights = self.terms[self.labels[learner]]
        if self.excluded is None:
            return positions, weights
        used = ~self.excluded[learner, positions]
        if not used.any():
            # Nobody else is there, or nobody of use: its own model.
            return np.array([learner]), np.ones(1)
        return positions[used], weights[used] / weights[used].sum()


@dataclass(frozen=True)
class Dictionary:
    """Shared predictors, and what each predicts where it had not seen the row.

    Parameters
    ----------
    counts : tuple of int
        Number of clusters at every resolution between alone and all.
    shared : tuple of Shared
        The predictors. Positions below L are the learners' own models, those above ``models``.
    models : tuple of estimators
        Fitted on pooled rows.
    names : tuple of str
        Their families.
    bounds : ndarray of shape (len(models), 2)
        What their predictions are clipped to.
    out_of_fold : ndarray of shape (N, E)
        Predictions of the shared predictors, out of fold; NaN where no fold holds the row out.
    n_fits : int
        Models fitted on pooled rows, those of the folds included.
    traits : ndarray of shape (L, T) or None, default=None
        Of the learners, where some models are told.
    told : tuple of bool, default=()
        Which of the models are.
    """

    counts: tuple[int, ...]
    shared: tuple[Shared, ...]
    models: tuple[Any, ...] = field(repr=False)
    names: tuple[str, ...] = field(repr=False)
    bounds: Array = field(repr=False)
    out_of_fold: Array = field(repr=False)
    n_fits: int
    traits: Array | None = field(default=None, repr=False)
    told: tuple[bool, ...] = ()
