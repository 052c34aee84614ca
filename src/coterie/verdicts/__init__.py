"""Verdicts: whether a learner's coterie pays, how sure that is, and where a newcomer belongs."""

from __future__ import annotations

from coterie.verdicts.admission import Admission, place_newcomers, second_clusters
from coterie.verdicts.bootstrap import Stability, bootstrap_clustering, bootstrap_losses
from coterie.verdicts.cluster_fit import ClusterFit, measure_cluster_fit
from coterie.verdicts.differences import Differences, Region, compare_clusters
from coterie.verdicts.gain_model import NOTHING_MEASURED, GainModel
from coterie.verdicts.gains import few_gains, measure_gains, newcomer_gains
from coterie.verdicts.importance import Importance, Shape, measure_importance
from coterie.verdicts.intervals import Intervals
from coterie.verdicts.label_sets import LabelSets
from coterie.verdicts.outliers import Outliers, bad_models, find_outliers, outliers_among
from coterie.verdicts.table import Gains
from coterie.verdicts.verdict import VERDICTS

__all__ = [
    "NOTHING_MEASURED",
    "VERDICTS",
    "Admission",
    "ClusterFit",
    "Differences",
    "GainModel",
    "Gains",
    "Importance",
    "Intervals",
    "LabelSets",
    "Outliers",
    "Region",
    "Shape",
    "Stability",
    "bad_models",
    "bootstrap_clustering",
    "bootstrap_losses",
    "compare_clusters",
    "few_gains",
    "find_outliers",
    "measure_cluster_fit",
    "measure_gains",
    "measure_importance",
    "newcomer_gains",
    "outliers_among",
    "place_newcomers",
    "second_clusters",
]
