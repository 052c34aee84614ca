from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold, TimeSeriesSplit

from coterie import cluster_learners, cross_evaluate, select_models
from coterie.engines import ThreadEngine
from coterie.method.n_clusters.cross_validation import cross_validated
from coterie.method.n_clusters.evidence import Evidence
from coterie.records import Curve, Exchange, Selection
from coterie.rows.learners import Learners

Rows = tuple[Learners, Selection, Exchange, Any]


def curve_of(rows: Rows) -> Curve:
    learners, selection, exchange, _ = rows
    chosen = selection.aligned_to(learners.ids)
    evidence = Evidence(exchange.aligned_to(learners.ids), 2.0, 6, seed=0)
    return cross_validated(evidence, learners, chosen, ThreadEngine())


def by_hand(rows: Rows, labels: Any) -> Any:
    """Models of the first halves, averaged over the cluster, on the second halves: an error a learner."""
    learners, selection, _, _ = rows
    chosen = selection.aligned_to(learners.ids)
    first, models, errors = [training[0] for training in chosen.training], [], []
    for j, train in enumerate(first):
        span = learners.span(j)
        models.append(LinearRegression().fit(learners.X[span][train], learners.scalar_y[span][train]))
    for j in range(len(learners)):
        span, second = learners.span(j), chosen.folds[j] == 0
        X, y = learners.X[span][second], learners.scalar_y[span][second]
        members = np.flatnonzero(labels == labels[j])
        sizes = np.array([first[i].sum() for i in members])
        parts = np.array([models[i].predict(X) for i in members])
        errors.append(np.mean((y - sizes @ parts / sizes.sum()) ** 2))
    return np.array(errors)


def test_the_curve_is_the_error_on_the_other_half(three_truths: Rows) -> None:
    curve = curve_of(three_truths)
    pooled, apart = by_hand(three_truths, np.zeros(12)), by_hand(three_truths, three_truths[3])
    assert curve.rule == "cv"
    assert curve.n_clusters.tolist() == [1, 2, 3, 4, 5, 6]
    assert_allclose(curve.values[[0, 2]], [pooled.mean(), apart.mean()])
    assert curve.spread is not None
    assert_allclose(curve.spread[0], pooled.std(ddof=1) / np.sqrt(12))


def test_the_lowest_error_is_chosen(three_truths: Rows) -> None:
    curve = curve_of(three_truths)
    assert curve.chosen == 3
    assert curve.values[2] == curve.values.min()


@pytest.mark.parametrize("splitter", [KFold(3), TimeSeriesSplit(3)])
def test_the_first_fold_of_a_splitter_is_the_other_half(three_truths: Rows, splitter: Any) -> None:
    learners = three_truths[0]
    selection = select_models(learners, candidates=["lr"], splitter=splitter)
    rows = learners, selection, cross_evaluate(selection, learners), three_truths[3]
    assert_allclose(curve_of(rows).values[0], by_hand(rows, np.zeros(12)).mean())


def test_the_rule_may_decide(three_truths: Rows) -> None:
    learners, selection, exchange, truth = three_truths
    partition = cluster_learners(exchange, learners, selection=selection, n_clusters="cv")
    assert partition.rule == "cv"
    assert np.array_equal(partition.labels, truth)


def test_models_that_are_not_linear_are_averaged_too(three_truths: Rows) -> None:
    learners = three_truths[0]
    selection = select_models(learners, candidates=["knn"])
    rows = learners, selection, cross_evaluate(selection, learners), three_truths[3]
    curve = curve_of(rows)
    assert np.isfinite(curve.values).all()
    assert curve.values[2] < curve.values[0]
