"""How many clusters: the rules, one file each, and `cluster_learners`, which runs them.

The rules stand above the stages because ``"held-out"`` runs Cluster and Refine for every number of clusters.
"""

from __future__ import annotations

from coterie.how_many.partition import (
    RULES,
    Clustering,
    check_n_clusters,
    cluster_learners,
    search_clusters,
)

__all__ = ["RULES", "Clustering", "check_n_clusters", "cluster_learners", "search_clusters"]
