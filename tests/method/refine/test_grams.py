"""Gram matrices answer what rows answer, as long as squares count in full."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression

from coterie import cross_evaluate, select_models
from coterie.datasets import make_linear_learners
from coterie.engines import ThreadEngine
from coterie.method.refine.averages import AverageLosses, model_weights
from coterie.method.refine.grams import GramAverages
from coterie.rows.learners import gather_learners


@pytest.fixture(scope="module")
def both() -> tuple[AverageLosses, GramAverages]:
    """The same learners, answered for by rows and by Gram matrices."""
    data = make_linear_learners(
        n_learners=5, n_truths=2, n_rows=[8, 9, 12, 20, 7], n_features=2, random_state=0
    )
    learners = gather_learners(data.X, data.y, data.groups, caller="test")
    selection = select_models(learners, candidates={"lr": LinearRegression()})
    plain = replace(selection, clips=np.full(5, np.inf))
    exchange = cross_evaluate(plain, learners)
    rows = AverageLosses.of_all(learners, plain, exchange, ThreadEngine())
    shape = (5, 2)
    products, responses = np.empty((*shape, 5, 5)), np.empty((*shape, 5))
    squares, own = np.empty(shape), np.empty(shape)
    for j in range(5):
        span = rows.learners.span(j)
        for half in (0, 1):
            mine = np.flatnonzero(rows.second[span] == half) + span.start
            table = np.array([model.predict(rows.learners.X[mine]) for model in plain.models])
            y = rows.learners.scalar_y[mine]
            products[j, half], responses[j, half] = table @ table.T / len(y), table @ y / len(y)
            squares[j, half], own[j, half] = np.mean(y**2), rows.own_losses[mine].mean()
    weights = model_weights(learners.sizes, plain.noise, exchange)
    return rows, GramAverages(products, responses, squares, own, weights)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=5, max_size=5).map(np.array))
def test_gram_matrices_answer_as_rows_do(both, labels):
    rows, grams = both
    assert np.allclose(grams.on_halves(labels), rows.on_halves(labels), rtol=1e-9)


def test_a_learner_alone_is_predicted_by_itself_and_an_empty_cluster_by_nobody(both):
    rows, grams = both
    losses = grams.on_halves(np.array([0, 0, 0, 0, 2]))
    assert np.isinf(losses[1]).all()
    assert np.allclose(losses[2, 4], rows.on_halves(np.array([0, 0, 0, 0, 2]))[2, 4])
