"""When clusters are refitted by a curve."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeRegressor

from coterie import CoterieRegressor, cluster_learners, cross_evaluate, select_models
from coterie.candidates import candidates_per_learner
from coterie.engines import resolve_engine
from coterie.method.refine.flexible import has_curve, neighbourhoods, quick_forest
from coterie.method.refine.pooled import PooledLosses
from coterie.method.refine.refits import BestFormLosses, pooled_losses
from coterie.records import Selection
from coterie.rows.learners import Learners, gather_learners

TREE = DecisionTreeRegressor(max_depth=3, min_samples_leaf=5)
CANDIDATES = {"line": LinearRegression(), "tree": TREE}


def drawn(curved: bool, n_learners: int = 12, n_rows: int = 16) -> Learners:
    """Return learners of one truth, a step or a line, who choose lines on so few rows and so much noise."""
    rng = np.random.default_rng(4)
    X = rng.uniform(-1, 1, (n_learners * n_rows, 1))
    signal = np.where(np.abs(X[:, 0]) < 0.5, 3.0, -3.0) if curved else 3 * X[:, 0]
    y = signal + rng.normal(size=len(X))
    return gather_learners(X, y, np.repeat(np.arange(n_learners), n_rows), caller="test")


def lines(learners: Learners) -> Selection:
    """Return what learners choose who know lines only."""
    return select_models(learners, candidates={"line": LinearRegression()})


def test_neighbourhoods_are_few_and_cover_everybody() -> None:
    learners = drawn(curved=False)
    groups = neighbourhoods(cross_evaluate(lines(learners), learners))
    assert len(groups) == 12
    assert set(groups.tolist()) == set(range(int(groups.max()) + 1))
    assert groups.max() < 8


def test_two_learners_are_one_neighbourhood() -> None:
    learners = drawn(curved=False, n_learners=2)
    assert neighbourhoods(cross_evaluate(lines(learners), learners)).tolist() == [0, 0]


def test_nobody_has_a_curve_where_all_candidates_are_lines() -> None:
    learners = drawn(curved=False)
    selection = lines(learners)
    sets = candidates_per_learner({"line": LinearRegression()}, selection.learner_ids.tolist())
    assert not has_curve(learners, selection, None)
    assert not has_curve(learners, selection, sets)


def test_a_curve_that_nobody_chose_is_found_among_the_candidates() -> None:
    learners = drawn(curved=False)
    assert has_curve(learners, lines(learners), [CANDIDATES] * 12)


def test_a_candidate_that_cannot_be_fitted_is_no_curve() -> None:
    learners = drawn(curved=False)
    broken = {**CANDIDATES, "tree": DecisionTreeRegressor(max_depth=-1)}
    assert not has_curve(learners, lines(learners), [broken] * 12)


def test_the_quick_forest_does_not_depend_on_the_unit_of_the_response() -> None:
    learners = drawn(curved=True)
    large = quick_forest().fit(learners.X, learners.scalar_y).predict(learners.X)
    small = quick_forest().fit(learners.X, learners.scalar_y * 2.0**-60).predict(learners.X)
    assert np.array_equal(small * 2.0**60, large)
    assert np.corrcoef(large, learners.scalar_y)[0, 1] > 0.9


def test_where_nobody_chose_a_curve_lines_search_and_the_curve_is_asked_later() -> None:
    learners = drawn(curved=False)
    selection = lines(learners)
    lost = tuple({**errors, "tree": 2 * errors["line"]} for errors in selection.candidate_errors)
    selection = replace(selection, candidate_errors=lost)
    exchange = cross_evaluate(selection, learners)
    losses, local = pooled_losses(learners, selection, exchange, resolve_engine(), [CANDIDATES] * 12)
    assert type(losses) is PooledLosses
    assert type(local.second.losses) is BestFormLosses


def test_learners_on_different_parts_of_one_curve_are_one_cluster() -> None:
    rng = np.random.default_rng(0)
    centres = rng.permutation(np.linspace(-1, 1, 12)).repeat(40)
    X = (centres + rng.uniform(-1, 1, len(centres)))[:, None]
    y = 4 * np.abs(X[:, 0]) + rng.normal(scale=0.5, size=len(X))
    rows = (X, y, np.repeat(np.arange(12), 40))
    candidates = {"line": LinearRegression(), "near": KNeighborsRegressor(7)}
    selection = select_models(*rows, candidates=candidates)
    exchange = cross_evaluate(selection, *rows)
    partition = cluster_learners(exchange, *rows, selection=selection, candidates=candidates)
    assert partition.n_clusters == 1
    model = CoterieRegressor(candidates=candidates, collaboration="pooled").fit(
        rows[0], rows[1], groups=rows[2]
    )
    assert model.n_clusters_ == 1
