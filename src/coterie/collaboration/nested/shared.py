"""A shared predictor as terms over models: the same for models of pooled rows and for averages of models."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coterie._arrays import Array

Terms = tuple[Array, Array]


@dataclass(frozen=True)
class Shared:
    """What the clusters of one resolution predict with.

    ``count`` is the number of clusters asked for; one: all together. ``kind`` is family and form. ``terms``
    has for each cluster of ``labels`` (L,) the positions of its models and their weights, which sum to one.
    ``levels`` (L,) is what each learner adds. ``excluded`` (L, models) marks models that a learner does not
    use: its own, where it is weighed apart, and wild ones. If ``uses_traits``, the models
    have the learners' traits as predictors.
    """

    count: int
    kind: str
    labels: Array
    terms: tuple[Terms, ...] = field(repr=False)
    levels: Array = field(repr=False)
    excluded: Array | None = field(default=None, repr=False)
    uses_traits: bool = False

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

    ``counts`` are the numbers of clusters at every resolution between alone and all. Positions in ``shared``
    below L are the learners' own models, those above are ``models``, fitted on pooled rows, with their
    families ``names`` and the ``bounds`` (models, 2) of their predictions. ``out_of_fold`` (N, E) has the
    predictions of the shared predictors, NaN where no fold holds the row out. ``n_fits`` counts models fitted
    on pooled rows, those of the folds included. Where some models have ``traits`` (L, T) of the
    learners as predictors, ``uses_traits`` says which.
    """

    counts: tuple[int, ...]
    shared: tuple[Shared, ...]
    models: tuple[Any, ...] = field(repr=False)
    names: tuple[str, ...] = field(repr=False)
    bounds: Array = field(repr=False)
    out_of_fold: Array = field(repr=False)
    n_fits: int
    traits: Array | None = field(default=None, repr=False)
    uses_traits: tuple[bool, ...] = ()
