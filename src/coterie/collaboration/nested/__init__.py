"""Nested coteries: alone, with a coterie, with all, mixed by weights from held-out rows.

Nobody knows beforehand whether a learner does best alone, with a few others or with everybody. So a small
dictionary of predictors is fitted. These are the learner's own model, lines that depart from everybody's or
from the coterie's, and trees on everybody's rows. Some trees see the learner's id and its coteries. Their
weights are learnt on rows that they have not seen: first weights that are common to all learners, which are
then moved a little for each. If rows may not move, averages of the learners' models replace all members but
the first.
"""

from __future__ import annotations

from coterie.collaboration.nested.collaborate import FewRows, NestedResult, nest_coteries, nest_learners
from coterie.collaboration.nested.newcomers import PooledNewcomers
from coterie.collaboration.nested.own import folds_of, own_by_fold
from coterie.collaboration.nested.record import AverageNewcomers, NestedCollaboration, NestedForm
from coterie.collaboration.nested.resolutions import Recipe

__all__ = [
    "AverageNewcomers",
    "FewRows",
    "NestedCollaboration",
    "NestedForm",
    "NestedResult",
    "PooledNewcomers",
    "Recipe",
    "folds_of",
    "nest_coteries",
    "nest_learners",
    "own_by_fold",
]
