from typing import Any

import numpy as np
import pytest

from coterie import collaborate, cross_evaluate, select_models
from coterie.method.cluster import search_clusters
from coterie.method.search import SearchOptions
from coterie.rows.learners import gather_learners


@pytest.fixture
def clustered() -> Any:
    """Return a function that takes learners through the stages, up to what judging the clusters takes."""

    def through(X: Any, y: Any, groups: Any, weights: Any = None, **options: Any) -> Any:
        learners = gather_learners(X, y, groups, sample_weight=weights, caller="test")
        selection = select_models(learners, candidates=["lr"])
        exchange = cross_evaluate(selection, learners)
        clustering = search_clusters(exchange, learners, selection, SearchOptions(**options))
        coterie = collaborate(selection, clustering.partition, learners, candidates=["lr"])
        return learners, selection, exchange, clustering, coterie

    return through


@pytest.fixture
def odd_one_out() -> Any:
    """Seven learners of one truth and one, the fourth, whose responses are turned round."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(320, 3))
    groups = np.repeat([f"learner {j}" for j in range(8)], 40)
    y = X @ [2.0, 0, 1] + 0.5 * rng.normal(size=320)
    y[groups == "learner 3"] *= -1
    return X, y, groups
