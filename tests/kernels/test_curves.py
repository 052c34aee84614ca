"""When clusters are refitted by a curve."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeRegressor

from coterie import CoterieRegressor, cluster_learners, cross_evaluate, select_models
from coterie._rows import Learners, gather_learners
from coterie.candidates import candidates_per_learner
from coterie.engines import resolve_engine
from coterie.kernels import refits
from coterie.kernels.affine import affine_matrix
from coterie.kernels.averages import AverageLosses
from coterie.kernels.curves import flexible_model, most_frequent, neighbourhoods
from coterie.kernels.pooled import PooledLosses
from coterie.kernels.refits import BestFormLosses, RefitLosses, pooled_losses
from coterie.records import Selection

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


def test_the_most_frequent_name_is_the_first_of_equals() -> None:
    assert most_frequent(["b", "a", "b", "a", "c"]) == "a"


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
    affine = affine_matrix(selection.models, 1)[1]
    sets = candidates_per_learner({"line": LinearRegression()}, selection.learner_ids.tolist())
    assert flexible_model(learners, selection, affine, None) is None
    assert flexible_model(learners, selection, affine, sets) is None


def test_a_curve_that_nobody_chose_is_found_among_the_candidates() -> None:
    learners = drawn(curved=False)
    selection = select_models(learners, candidates={"line": LinearRegression()})
    lost = tuple({**errors, "tree": 2 * errors["line"]} for errors in selection.candidate_errors)
    selection = replace(selection, candidate_errors=lost)
    affine = affine_matrix(selection.models, 1)[1]
    curve = flexible_model(learners, selection, affine, [CANDIDATES] * 12)
    assert isinstance(curve, DecisionTreeRegressor)
    assert curve.random_state == 0


def test_a_curve_that_somebody_chose_goes_before() -> None:
    learners = drawn(curved=True, n_rows=60)
    selection = select_models(learners, candidates=CANDIDATES)
    assert "tree" in selection.names
    affine = affine_matrix(selection.models, 1)[1]
    assert isinstance(flexible_model(learners, selection, affine, None), DecisionTreeRegressor)


@pytest.mark.parametrize(("curved", "form"), [(True, BestFormLosses), (False, PooledLosses)])
def test_pooled_rows_decide_whether_curves_pay(curved: bool, form: type) -> None:
    learners = drawn(curved)
    # Half of the learners had to take the tree, so that curves are asked at once.
    choice = {i: {"tree": TREE} if i < 6 else {"line": LinearRegression()} for i in range(12)}
    selection = select_models(learners, candidates=choice)
    exchange = cross_evaluate(selection, learners)
    assert type(pooled_losses(learners, selection, exchange, resolve_engine())) is form


def test_a_table_of_all_predictions_is_made_only_where_it_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    learners = drawn(curved=True)
    selection = select_models(learners, candidates={"tree": TREE})
    exchange = cross_evaluate(selection, learners)
    parts = (learners, selection, exchange, resolve_engine())
    small = pooled_losses(*parts)
    assert type(small) is RefitLosses
    assert type(small.proxy) is AverageLosses
    monkeypatch.setattr(refits, "MOST_PREDICTIONS", 12 * len(learners.y) - 1)
    assert type(pooled_losses(*parts)) is BestFormLosses


def test_where_nobody_chose_a_curve_lines_search_and_the_curve_is_asked_later() -> None:
    learners = drawn(curved=False)
    selection = lines(learners)
    lost = tuple({**errors, "tree": 2 * errors["line"]} for errors in selection.candidate_errors)
    selection = replace(selection, candidate_errors=lost)
    exchange = cross_evaluate(selection, learners)
    losses = pooled_losses(learners, selection, exchange, resolve_engine(), [CANDIDATES] * 12)
    assert type(losses) is PooledLosses
    assert type(losses.costlier) is BestFormLosses


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
