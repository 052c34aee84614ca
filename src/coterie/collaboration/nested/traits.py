"""Who a learner is, in a few numbers: what a model of all learners is told beside the row.

A model of everybody's rows that does not know whose row it sees can only predict the average learner. Told
the level and the spread of its learner's response and in which directions its slopes depart from
everybody's, a forest finds by itself which learners are alike, and in which part of the predictors' space.

A learner's mean mixes where its rows lie with who it is. Its level is what it adds to one curve for all. As
mixed-effects forests do, the curve is fitted to what the levels leave, and the levels to what the curve
leaves, in turn; levels are shrunk by how much learners differ beside the noise.
"""

from __future__ import annotations

import numpy as np

from coterie._arrays import Array
from coterie.collaboration.nested.effects import MOST_SLOPES, slope_units
from coterie.collaboration.nested.linear import Moments
from coterie.models.boosting import BoostedTrees
from coterie.rows.learners import Learners

# Slopes of one's own count as much as everybody's once a learner has so many rows.
PSEUDO_ROWS = 20.0
# Rounds of curve and levels, and rows enough to tell them apart.
TURNS, MOST_ROWS = 5, 20_000


def traits_of(learners: Learners, centred: Moments) -> Array:
    """Describe every learner in numbers of shape (L, 2 + p), from its rows and their centred moments.

    These are level and spread of the response, then slopes less everybody's, drawn towards none, in units of
    the pooled spread. With too many predictors for slopes, level and spread alone.
    """
    levels = learners.mean_by_learner(learners.scalar_y)
    deviations = learners.scalar_y - levels[learners.owner]
    spreads = np.sqrt(learners.mean_by_learner(deviations**2))
    # In units of the pooled spread: trees take values nearer than 1e-7 for the same.
    pooled = float(np.sqrt(np.mean(spreads**2)))
    unit = max(pooled, 1e-12 * float(np.abs(levels).max()), np.finfo(float).tiny)
    plain = np.column_stack([levels - levels.mean(), spreads]) / unit
    if learners.n_features > MOST_SLOPES:
        return plain
    return np.column_stack([plain, _slopes(centred, learners.sizes) / unit])


def _slopes(centred: Moments, sizes: Array) -> Array:
    """Return every learner's slopes less everybody's, of shape (L, p), per typical spread of x."""
    G, c = centred.G[:, :-1, :-1], centred.c[:, :-1]
    squares = np.maximum(np.diagonal(G, axis1=1, axis2=2), 0.0)
    units = slope_units(np.sqrt(squares / sizes[:, None]))
    everybody = np.ones(len(G), dtype=bool)
    common = centred.solve(everybody, PSEUDO_ROWS)[:-1]
    moments = G / np.outer(units, units) + PSEUDO_ROWS * np.eye(len(units))
    slopes: Array = np.linalg.solve(moments, ((c - G @ common) / units)[..., None])[..., 0]
    return slopes


def with_traits(X: Array, traits: Array, owner: Array) -> Array:
    """Return rows of shape (n, p + T), the traits of their learners beside the predictors."""
    return np.hstack([X, traits[owner]])


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
