"""A shared predictor where rows may not move: for each coterie, weights over the learners' models."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from coterie._arrays import Array

Terms = tuple[Array, Array]


@dataclass(frozen=True)
class Shared:
    """What the clusters of one resolution predict with.

    ``count`` is the number of clusters asked for; one: all together. ``terms`` has for each cluster of
    ``labels`` (L,) the positions of its models and their weights, which sum to one. ``excluded`` (L, L) marks
    models that a learner does not use: its own, which is weighed apart, and wild ones.
    """

    count: int
    labels: Array
    terms: tuple[Terms, ...] = field(repr=False)
    excluded: Array = field(repr=False)

    def terms_of(self, learner: int) -> Terms:
        """Return the positions and weights of the models that one learner uses."""
        positions, weights = self.terms[self.labels[learner]]
        used = ~self.excluded[learner, positions]
        if not used.any():
            # Nobody else is there, or nobody of use: its own model.
            return np.array([learner]), np.ones(1)
        return positions[used], weights[used] / weights[used].sum()


@dataclass(frozen=True)
class Averages:
    """Shared predictors, and what each predicts where it had not seen the row.

    ``counts`` are the numbers of clusters at every resolution between alone and all. ``out_of_fold`` (N, E)
    has the predictions of the shared predictors, NaN where no fold holds the row out.
    """

    counts: tuple[int, ...]
    shared: tuple[Shared, ...]
    out_of_fold: Array = field(repr=False)
