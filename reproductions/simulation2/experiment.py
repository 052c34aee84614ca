"""Simulation 2: what the candidates change (the paper's Table 2).

Twenty learners of 100 rows and 500 predictors, of which four count, with two of Friedman's functions. Five
sets of candidates are compared on the same draws. Sets overlap, so every candidate is fitted once per learner
and the sets choose among the fits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from threadpoolctl import threadpool_limits

from coterie.candidates import make_candidates
from coterie.collaboration.forms import collaborate
from coterie.method.cluster import cluster_learners
from coterie.method.exchange import cross_evaluate
from coterie.method.select import select_models
from coterie.models.forest import QuickForest
from coterie.records import Partition, Selection
from coterie.rows.learners import Learners, Standardization, gather_learners
from reproductions.harness.experiment import Experiment, Record
from reproductions.harness.pages import written_readme
from reproductions.harness.recovery import is_exact
from reproductions.simulation2.boosting import Boosting
from reproductions.simulation2.data import make_simulation2
from reproductions.simulation2.friedman import friedman2, friedman_predictors
from reproductions.simulation2.remembered import FitMemory, Remembered, unwrapped
from reproductions.simulation2.tables import SHOWN_FAMILIES, draw, tabulate

Array = NDArray[Any]

SETTINGS: dict[str, Any] = {
    "rows": 100,
    "p": 500,
    "test_rows": 100,
    "sets": [
        ["gb"],
        ["rf", "gb", "lasso"],
        ["rf", "knn", "gb", "lasso", "lars"],
        ["rf", "knn", "svr", "gb", "lasso", "lars", "en"],
        ["rf", "knn", "svr", "nn", "gb", "lasso", "lars", "en", "ridge"],
    ],
    "boosting": {"max_iter": 100, "max_depth": 3, "min_samples_leaf": 5, "max_bins": 32},
    "forest": {"n_estimators": 50, "max_features": 1 / 3, "min_samples_leaf": 2},
    "paper": {"scale": 1.0, "rule": "gap-jump"},
}
QUICK_SETTINGS: dict[str, Any] = {"p": 30, "sets": [["gb"], ["rf", "gb", "lasso"]]}


@dataclass(frozen=True)
class _Draw:
    """Standardised learners, and the test rows of the first one in its units."""

    learners: Learners
    truth: Array
    X_test: Array
    y_test: Array


def candidate_pool(settings: Mapping[str, Any]) -> dict[str, BaseEstimator]:
    """Return all candidates of the experiment by name.

    Parameters
    ----------
    settings : mapping
        As `SETTINGS`.

    Returns
    -------
    dict of str to estimator
        The preset ``"paper"``, with ensembles that are quick on many predictors.
    """
    return {
        **make_candidates("paper"),
        "gb": Boosting(early_stopping=False, **settings["boosting"]),
        "rf": QuickForest(**settings["forest"]),
    }


def _inside_first(units: Standardization, X: Array, y: Array) -> tuple[Array, Array]:
    first = np.zeros(len(y), dtype=int)
    return units.forward_X(X, first), (y - units.centre_y[0]) / units.spread_y[0]


def _draw(seed: int, settings: Mapping[str, Any]) -> _Draw:
    of_learners, of_test = np.random.SeedSequence(seed).spawn(2)
    drawn = make_simulation2(settings["rows"], settings["p"], np.random.default_rng(of_learners))
    assert drawn.truth is not None
    generator = np.random.default_rng(of_test)
    X = friedman_predictors(settings["test_rows"], settings["p"], generator)
    y = friedman2(X) + 0.1 * generator.standard_normal(len(X))
    learners, units = gather_learners(drawn.X, drawn.y, drawn.groups, caller="reproduce").standardized()
    return _Draw(learners, drawn.truth, *_inside_first(units, X, y))


def _pooled_prediction(
    drawn: _Draw, selection: Selection, partition: Partition, candidates: Any, seed: int
) -> Array:
    """Predict the test rows by one model on the rows of the first learner's coterie."""
    mates = np.flatnonzero(partition.labels == partition.labels[0])
    # One model for all of the coterie is what pooling within it means; the other coterie is not needed.
    with_coterie = collaborate(
        selection.take(mates),
        partition.take(mates),
        drawn.learners.take(mates),
        method="global",
        candidates=candidates,
        random_state=seed,
    )
    return with_coterie.predict(drawn.X_test, np.zeros(len(drawn.y_test), dtype=int))


def _one_set(
    names: Sequence[str], drawn: _Draw, pool: Mapping[str, Any], seed: int, settings: Mapping[str, Any]
) -> Record:
    candidates = {name: pool[name] for name in names}
    learners, paper = drawn.learners, settings["paper"]
    seeded: dict[str, Any] = {"random_state": seed}
    selection = unwrapped(select_models(learners, candidates=candidates, order=None, **seeded))
    exchange = cross_evaluate(selection, learners)
    # The paper's rule looks at losses alone: without the rows it gives the same clusters in less time.
    by_paper = cluster_learners(
        exchange, n_clusters=paper["rule"], scale=paper["scale"], refine=None, **seeded
    )
    by_coterie = cluster_learners(exchange, learners, selection=selection, **seeded)
    averaged = collaborate(selection, by_paper, learners, method="average")
    predictions = {
        "alone": selection.models[0].predict(drawn.X_test),
        "together_paper": averaged.predict(
            drawn.X_test, np.repeat(averaged.weight_rows[:1], len(drawn.y_test))
        ),
        "together_coterie": _pooled_prediction(drawn, selection, by_coterie, candidates, seed),
    }
    chosen = np.array(selection.names)
    return {
        "size": len(names),
        **{f"selected_{name}": float(np.mean(chosen == name)) for name in SHOWN_FAMILIES},
        "exact_paper": int(is_exact(by_paper.labels, drawn.truth)),
        "exact_coterie": int(is_exact(by_coterie.labels, drawn.truth)),
        "k_paper": by_paper.n_clusters,
        "k_coterie": by_coterie.n_clusters,
        **{name: float(np.mean((drawn.y_test - p) ** 2)) for name, p in predictions.items()},
    }


def replicate(seed: int, settings: Mapping[str, Any]) -> list[Record]:
    """Draw the learners once and cluster them with every set of candidates.

    Parameters
    ----------
    seed : int
        Of this replication.
    settings : mapping
        As `SETTINGS`.

    Returns
    -------
    list of mapping
        A record per set.
    """
    drawn = _draw(seed, settings)
    memory = FitMemory()
    pool = {name: Remembered(candidate, memory) for name, candidate in candidate_pool(settings).items()}
    # Boosting shares its sums out among threads: on busy processors they would wait for each other.
    with threadpool_limits(1):
        return [_one_set(names, drawn, pool, seed, settings) for names in settings["sets"]]


EXPERIMENT = Experiment(
    name="simulation2",
    title="Simulation 2: robustness against candidate models",
    settings=SETTINGS,
    quick_settings=QUICK_SETTINGS,
    replications=100,
    quick_replications=2,
    replicate=replicate,
    tabulate=tabulate,
    draw=draw,
    readme=written_readme(Path(__file__).parent),
)
