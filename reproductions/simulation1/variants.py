"""The ways in which Simulation 1 clusters its learners: the paper's, ours, and the oracle's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from coterie.datasets import Simulation
from coterie.method.cluster import cluster_learners
from coterie.method.exchange import cross_evaluate
from coterie.method.select import select_models
from coterie.models.forest import QuickForest
from coterie.models.linear import QuickLasso
from coterie.records import Exchange, Selection
from coterie.rows.learners import Learners

Array = NDArray[Any]

# The ways of clustering, as in the names exact_<way> and k_<way> of the records.
HEADS = {
    "paper": "paper's settings (ours)",
    "first": "the same, K by the first-K gap",
    "paper_2": "the same, K = 2 given",
    "refined": "paper's settings with Refine",
    "refined_2": "the same, K = 2 given",
    "coterie": "coterie's defaults (ours)",
    "coterie_2": "the same, K = 2 given",
    "oracle": "oracle",
}


def paper_candidates(settings: Mapping[str, Any]) -> dict[str, BaseEstimator]:
    """Return the paper's two candidates, for rows that are standardised inside each learner.

    Parameters
    ----------
    settings : mapping
        The entry ``"paper"`` of the experiment's settings.

    Returns
    -------
    dict of str to estimator
        Lasso with its penalty by half-half cross-validation, and a shallow forest.
    """
    # Where x and y have variance one, no penalty above one leaves a coefficient.
    penalties = np.logspace(0, -3, settings["penalties"])
    forest = QuickForest(settings["trees"], max_depth=settings["depth"])
    return {"lasso": QuickLasso(cv=2, alphas=penalties), "rf": forest}


def oracle_labels(drawn: Simulation) -> Array:
    """Assign every learner to the true function with the smaller error on its rows.

    Parameters
    ----------
    drawn : Simulation
        With its coefficients.

    Returns
    -------
    ndarray of shape (L,)
        The function of each learner.
    """
    assert drawn.coefficients is not None
    squares = (drawn.y[:, None] - drawn.X @ drawn.coefficients.T) ** 2
    owner = np.unique(drawn.groups, return_inverse=True)[1]
    sums = np.stack([np.bincount(owner, column) for column in squares.T])
    nearest: Array = sums.argmin(axis=0)
    return nearest


def exchanged(learners: Learners, candidates: Any, seed: int) -> tuple[Selection, Exchange]:
    """Select and exchange."""
    selection = select_models(learners, candidates=candidates, order=None, random_state=seed)
    return selection, cross_evaluate(selection, learners)


def paper_labels(learners: Learners, settings: Mapping[str, Any], seed: int) -> dict[str, Array]:
    """Return the labels by the paper's candidates, K by its rules or given, with and without Refine."""
    standardized = learners.standardized()[0]
    selection, exchange = exchanged(standardized, paper_candidates(settings), seed)
    shared = {"scale": settings["scale"], "random_state": seed}
    rules = {"paper": settings["rule"], "first": "gap", "paper_2": 2}
    # These rules look at losses alone: without the rows they give the same clusters in less time.
    labels = {
        variant: cluster_learners(exchange, n_clusters=rule, refine=None, **shared).labels
        for variant, rule in rules.items()
    }
    for variant, count in (("refined", int(labels["paper"].max()) + 1), ("refined_2", 2)):
        partition = cluster_learners(
            exchange, standardized, selection=selection, n_clusters=count, refine="pooled", **shared
        )
        labels[variant] = partition.labels
    return labels


def coterie_labels(learners: Learners, settings: Mapping[str, Any], seed: int) -> dict[str, Array]:
    """Return the labels by coterie's defaults, K unknown or given."""
    selection, exchange = exchanged(learners, settings["candidates"], seed)
    rules = {"coterie": "auto", "coterie_2": 2}
    return {
        variant: cluster_learners(
            exchange,
            learners,
            selection=selection,
            n_clusters=rule,
            candidates=settings["candidates"],
            random_state=seed,
        ).labels
        for variant, rule in rules.items()
    }
