"""coterie: with whom should I learn?

Many parties each hold a small regression dataset over the same predictors. coterie clusters the learners by
the relation between X and y that their data show, after one exchange of fitted models and scalar losses, lets
each predict with its coterie, and tells it whether that pays. The method is Select-Exchange-Cluster of Ye,
Ghanadan and Ding.
"""

from __future__ import annotations

from coterie._rows import stack_learners
from coterie.estimators import CoterieRegressor
from coterie.how_many import cluster_learners
from coterie.persistence import load, save
from coterie.stages import collaborate, cross_evaluate, select_models

__version__ = "0.1.0"

__all__ = [
    "CoterieRegressor",
    "__version__",
    "cluster_learners",
    "collaborate",
    "cross_evaluate",
    "load",
    "save",
    "select_models",
    "stack_learners",
]
