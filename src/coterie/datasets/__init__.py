"""Learners to try the method on.

A method that finds clusters is judged where the clusters are known. `make_linear_learners`,
`make_logistic_learners` and `make_stress` draw learners from truths that the record keeps beside the rows.
Everything comes as rows: `X`, `y`, and in `groups` the learner of each row, which is what the estimators and
the stages take.
"""

from coterie.datasets.files import data_home, local_copy
from coterie.datasets.logistic import ClassSimulation, make_logistic_learners
from coterie.datasets.simulated import Simulation, make_linear_learners
from coterie.datasets.stress import STRESS_SETTINGS, make_stress

__all__ = [
    "STRESS_SETTINGS",
    "ClassSimulation",
    "Simulation",
    "data_home",
    "local_copy",
    "make_linear_learners",
    "make_logistic_learners",
    "make_stress",
]
