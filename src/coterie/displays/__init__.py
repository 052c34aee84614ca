"""Pictures of a fitted model: each display receives computed arrays, orders them, labels them and draws them.

``from_estimator`` takes the arrays from a fitted `CoterieRegressor`, ``plot`` draws them with matplotlib,
which is imported there and nowhere else, and ``frame`` returns the drawn numbers as a dict of columns that
``pandas.DataFrame`` and ``polars.DataFrame`` take as it is. A cluster has the same colour in every display.
"""

from __future__ import annotations

from coterie.displays.cluster_count import ClusterCountDisplay
from coterie.displays.differences import DifferencesDisplay
from coterie.displays.eigenvalues import EigenvaluesDisplay
from coterie.displays.embedding import EmbeddingDisplay
from coterie.displays.gains import GainsDisplay
from coterie.displays.importance import ImportanceDisplay
from coterie.displays.loss_heatmap import LossHeatmapDisplay
from coterie.displays.map import MapDisplay
from coterie.displays.membership import MembershipDisplay
from coterie.displays.weights import WeightsDisplay

__all__ = [
    "ClusterCountDisplay",
    "DifferencesDisplay",
    "EigenvaluesDisplay",
    "EmbeddingDisplay",
    "GainsDisplay",
    "ImportanceDisplay",
    "LossHeatmapDisplay",
    "MapDisplay",
    "MembershipDisplay",
    "WeightsDisplay",
]
