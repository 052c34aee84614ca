"""Levels that the predictors do not explain: what a learner adds to one curve for all.

A learner's mean mixes where its rows lie with who it is. As mixed-effects forests do, a curve for all is
fitted to what the levels leave, and the levels to what the curve leaves, in turn; levels are shrunk by how
much learners differ beside the noise.
"""

from __future__ import annotations

import numpy as np

from coterie._arrays import Array
from coterie.models.boosting import BoostedTrees
from coterie.rows.learners import Learners

TURNS = 5
# Rows enough to tell levels from a curve.
MOST_ROWS = 20_000


def _shrunk(left: Array, learners: Learners) -> Array:
    """Return the learners' means of what is left, shrunk towards zero by one ratio for all."""
    means = learners.mean_by_learner(left)
    within = float(np.mean((left - means[learners.owner]) ** 2))
    between = float(np.mean(means**2 - within / learners.sizes))
    if between <= 0:
        return np.zeros(len(learners))
    shrunk: Array = means * learners.sizes / (learners.sizes + within / between)
    return shrunk


def unexplained_levels(learners: Learners) -> Array:
    """Return what each learner adds to a curve for all, of shape (L,), around zero."""
    rows = np.unique(np.linspace(0, len(learners.y) - 1, min(len(learners.y), MOST_ROWS)).astype(int))
    weights = None if learners.weights is None else learners.weights[rows]
    # Boosting works in single precision: y must be of ordinary size. Powers of two change no digit.
    exponent = np.frexp(np.ptp(learners.scalar_y))[1]
    y, levels = np.ldexp(learners.scalar_y, -exponent), np.zeros(len(learners))
    for _ in range(TURNS):
        curve = BoostedTrees(
            learning_rate=0.1, max_iter=60, max_leaf_nodes=8, min_samples_leaf=10, early_stopping=False
        )
        curve.fit(learners.X[rows], (y - levels[learners.owner])[rows], sample_weight=weights)
        levels = _shrunk(y - curve.predict(learners.X), learners)
    found: Array = np.ldexp(levels, exponent)
    return found
