"""Learners to try the method on.

A method that finds clusters is judged where the clusters are known, and used where they are not.
So there are two kinds of data: learners drawn from truths that the record keeps beside the rows
(`make_linear_learners`, and the paper's three simulations), and the paper's two real tables, read
from a local folder, or downloaded once into a cache and verified. Everything comes as rows: `X`,
`y`, and in `groups` the learner of each row, which is what the estimators and the stages take.
"""

from coterie.datasets.files import data_home, local_copy
from coterie.datasets.friedman import friedman2, friedman3, friedman_predictors
from coterie.datasets.loaders import (
    GroupedTable,
    Table,
    load_ct_slices,
    load_grid_stability,
    parse_ct_slices,
)
from coterie.datasets.simulated import (
    Simulation,
    make_fairness,
    make_linear_learners,
    make_simulation1,
    make_simulation2,
)
from coterie.datasets.splitting import LearnerSplit, split_into_learners
from coterie.datasets.stress import STRESS_SETTINGS, make_stress
from coterie.datasets.transfer import DatasetCorrupted, DatasetUnavailable, download

__all__ = [
    "STRESS_SETTINGS",
    "DatasetCorrupted",
    "DatasetUnavailable",
    "GroupedTable",
    "LearnerSplit",
    "Simulation",
    "Table",
    "data_home",
    "download",
    "friedman2",
    "friedman3",
    "friedman_predictors",
    "load_ct_slices",
    "load_grid_stability",
    "local_copy",
    "make_fairness",
    "make_linear_learners",
    "make_simulation1",
    "make_simulation2",
    "make_stress",
    "parse_ct_slices",
    "split_into_learners",
]
