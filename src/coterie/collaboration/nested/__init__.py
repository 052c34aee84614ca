"""Nested coteries: alone, with a coterie, with all, mixed as held-out rows tell.

Nobody knows beforehand whether a learner does best alone, with a few others or with everybody. So a small
dictionary of predictors is fitted: the learner's own model, lines that depart from everybody's or from the
coterie's, and trees on everybody's rows, some of which are told who the learner is and which coteries it
belongs to. They are weighed on rows that they have not seen: weights that are common to all learners, then
moved a little for each. Where rows may not move, averages of the learners' models take the place of all but
the first.
"""

from __future__ import annotations

from coterie.collaboration.nested.collaborate import FewRows, Nested, nest_coteries, nest_learners
from coterie.collaboration.nested.newcomers import PooledNewcomers
from coterie.collaboration.nested.own import folds_of, own_by_fold
from coterie.collaboration.nested.record import AverageNewcomers, NestedCollaboration, NestedForm
from coterie.collaboration.nested.resolutions import Recipe

__all__ = [
    "AverageNewcomers",
    "FewRows",
    "Nested",
    "NestedCollaboration",
    "NestedForm",
    "PooledNewcomers",
    "Recipe",
    "folds_of",
    "nest_coteries",
    "nest_learners",
    "own_by_fold",
]
