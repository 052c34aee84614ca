"""Who a learner is, in a few numbers: what a model of all learners is told beside the row.

A model of everybody's rows that does not know whose row it sees can only predict the average learner. Told
the level and the spread of its learner's response and in which directions its slopes depart from
everybody's, a forest finds by itself which learners are alike, and in which part of the predictors' space.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie._rows import Learners
from coterie.nested.effects import OwnRows, slope_units
from coterie.nested.linear import Moments

Array = NDArray[Any]

# Slopes of one's own count as much as everybody's once a learner has so many rows.
PSEUDO_ROWS = 20.0


def traits_of(learners: Learners, centred: Moments) -> Array:
    """Describe every learner.

    Parameters
    ----------
    learners : Learners
        Their rows.
    centred : Moments
        Of the same rows, from each learner's own means.

    Returns
    -------
    ndarray of shape (L, 2 + p)
        Level and spread of the response, then slopes less everybody's, drawn towards none. With too many
        predictors for slopes, level and spread alone.
    """
    levels = learners.mean_by_learner(learners.y)
    deviations = learners.y - levels[learners.owner]
    spreads = np.sqrt(learners.mean_by_learner(deviations**2))
    everybody = np.ones(len(learners), dtype=bool)
    common = centred.as_model(centred.solve(everybody, PSEUDO_ROWS), centred=True)
    residuals = deviations - learners.X @ common.coef_
    spans = [learners.span(j) for j in range(len(learners))]
    units = slope_units(np.array([learners.X[span].std(axis=0) for span in spans]))
    ratios = np.array([[0.0, 1 / PSEUDO_ROWS]])
    slopes = []
    for span in spans:
        own = OwnRows.of(learners.X[span], units, 1.0)
        slopes.append(own.coefficients(residuals[span, None], ratios)[0, :-1])
    return np.column_stack([levels, spreads, np.array(slopes)])


def with_traits(X: Array, traits: Array, owner: Array) -> Array:
    """Return rows of shape (n, p + T), the traits of their learners beside the predictors."""
    return np.hstack([X, traits[owner]])
