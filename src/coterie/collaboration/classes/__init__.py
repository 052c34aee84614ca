"""Nested coteries for classes: members are classifiers, and weights are on probabilities.

As for numbers (`coterie.collaboration.nested`), a small dictionary of predictors is weighed on rows that it
has not seen. A logistic line from which learners depart takes the place of the line by moments.
"""

from __future__ import annotations

from coterie.collaboration.classes.average_record import ClassAverages
from coterie.collaboration.classes.nest import NestedClassResult, nest_classes
from coterie.collaboration.classes.record import ClassNewcomers, NestedClasses, PredictorScale
from coterie.collaboration.classes.views import Directions

__all__ = [
    "ClassAverages",
    "ClassNewcomers",
    "Directions",
    "NestedClassResult",
    "NestedClasses",
    "PredictorScale",
    "nest_classes",
]
