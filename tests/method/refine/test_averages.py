from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor

from coterie.engines import ThreadEngine
from coterie.kernels.limits import Limits
from coterie.kernels.losses import DenseTiles
from coterie.method.refine import averages
from coterie.method.refine.averages import (
    LARGEST_WEIGHT,
    AverageLosses,
    bounded_weights,
    how_models_travel,
    membership,
    model_averages,
    model_weights,
)
from coterie.method.weight_limits import WEIGHT_LIMITS
from coterie.records import Exchange, Selection
from coterie.rows.learners import Learners

labellings = st.lists(st.integers(0, 3), min_size=5, max_size=5).map(np.array)


class Opaque:
    """Predicts as a model does and tells nothing else."""

    def __init__(self, model: Any) -> None:
        self.predict = model.predict


@pytest.fixture(scope="module")
def learners(make_learners: Callable[..., Learners]) -> Learners:
    return make_learners(weighted=True)


@pytest.fixture(scope="module")
def linear(learners: Learners, select: Callable[..., Selection]) -> Selection:
    return select(learners, [LinearRegression()])


@pytest.fixture(scope="module")
def nearest(learners: Learners, select: Callable[..., Selection]) -> Selection:
    return select(learners, {i: "lr" if i % 2 else KNeighborsRegressor(2) for i in range(5)})


def travels(exchange: Exchange) -> list[float]:
    """Look at each model's losses, in units of noise, on the third of the others that it suits best."""
    n = len(exchange.learner_ids)
    ratios = [sorted(exchange.losses[i, j] / exchange.noise[j] for j in range(n) if j != i) for i in range(n)]
    return [float(np.median(r[: max(1, round((n - 1) / 3))])) for r in ratios]


def by_hand(learners: Learners, selection: Selection, exchange: Exchange, labels: Any, k: int, j: int) -> Any:
    """Residuals of learner j's rows under the average of the members without j; None if nobody is left."""
    members = [i for i in np.flatnonzero(labels == k) if i != j]
    if not members:
        return None
    sizes, noise = learners.sizes, selection.noise
    precision = np.minimum(sizes, np.median(sizes)) / np.maximum(noise, np.median(noise))
    weights = precision / np.array(travels(exchange)) ** 2
    weights = np.minimum(weights / np.median(weights), WEIGHT_LIMITS.weight)
    X, y = learners.X[learners.span(j)], learners.scalar_y[learners.span(j)]
    predictions = [selection.models[i].predict(X) for i in members]
    return y - np.average(predictions, axis=0, weights=weights[members])


def test_weights_stand_in_the_row_of_their_cluster() -> None:
    assert membership(np.array([1, 0, 1]), 3, np.array([5.0, 6.0, 7.0])).tolist() == [
        [0, 6, 0],
        [5, 0, 7],
        [0, 0, 0],
    ]


@pytest.mark.parametrize("kind", ["linear", "nearest"])
def test_everybody_is_predicted_by_the_average_of_the_others(
    kind: str,
    learners: Learners,
    evaluate: Callable[..., Exchange],
    rows_by_hand: Callable[..., Any],
    halves_by_hand: Callable[..., Any],
    in_order: Callable[..., Any],
    request: pytest.FixtureRequest,
) -> None:
    selection: Selection = request.getfixturevalue(kind)
    exchange = evaluate(learners, selection)
    losses = AverageLosses.of_all(learners, selection, exchange, ThreadEngine())

    @settings(max_examples=15, deadline=None, derandomize=True)
    @given(labellings)
    def agrees(labels: Any) -> None:
        n_clusters = int(labels.max()) + 1
        residuals = in_order(losses, losses.residuals(labels, n_clusters)[..., 0])
        expected = partial(by_hand, learners, selection, exchange, labels)
        for k in range(n_clusters):
            for j in range(5):
                mine = residuals[k, learners.span(j)]
                explicit = expected(k, j)
                assert np.isnan(mine).all() if explicit is None else np.allclose(mine, explicit)
        rows = rows_by_hand(learners, selection, labels, expected)
        assert np.allclose(losses.on_halves(labels), halves_by_hand(learners, selection, rows))

    agrees()


def test_the_short_cut_for_linear_models_equals_the_table(
    learners: Learners, linear: Selection, evaluate: Callable[..., Exchange]
) -> None:
    exchange = evaluate(learners, linear)
    hidden = replace(linear, models=tuple(Opaque(m) for m in linear.models))
    short, long = (AverageLosses.of_all(learners, s, exchange, ThreadEngine()) for s in (linear, hidden))
    for labels in ([0, 0, 0, 0, 0], [0, 1, 0, 1, 2], [0, 1, 2, 3, 4], [2, 0, 0, 2, 0]):
        one, other = (losses.on_halves(np.array(labels)) for losses in (short, long))
        assert np.allclose(one, other, rtol=1e-9)


def test_one_model_that_is_not_linear_does_not_change_the_linear_ones(
    learners: Learners, linear: Selection
) -> None:
    mixed = [Opaque(linear.models[0]), *linear.models[1:]]
    weights = np.random.default_rng(0).normal(size=(3, 5))
    one, other = (model_averages(m, learners, ThreadEngine()) for m in (linear.models, mixed))
    assert np.allclose(one.predict(weights), other.predict(weights))
    assert np.allclose(one.own(), other.own())


@pytest.mark.parametrize("kind", ["linear", "nearest"])
def test_sums_of_models_and_own_predictions_equal_explicit_ones(
    kind: str, learners: Learners, request: pytest.FixtureRequest
) -> None:
    models = request.getfixturevalue(kind).models
    sums = model_averages(models, learners, ThreadEngine())
    weights = np.array([[1.0, 0, 0, 0, 0], [0.5, 0.5, 0, 0, 0], [2.0, -1, 0, 3, 1]])
    table = np.array([m.predict(learners.X) for m in models])
    assert np.allclose(sums.predict(weights)[..., 0], weights @ table)
    assert np.allclose(sums.own()[:, 0], table[learners.owner, np.arange(len(learners.y))])


def test_the_size_of_blocks_and_the_number_of_threads_change_nothing(
    learners: Learners,
    nearest: Selection,
    evaluate: Callable[..., Exchange],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    labels = np.array([0, 1, 0, 1, 1])
    exchange = evaluate(learners, nearest)
    whole = AverageLosses.of_all(learners, nearest, exchange, ThreadEngine()).on_halves(labels)
    monkeypatch.setattr(averages, "LIMITS", Limits(rows=7))
    pieces = AverageLosses.of_all(learners, nearest, exchange, ThreadEngine(2)).on_halves(labels)
    assert np.allclose(pieces, whole, rtol=1e-12)


def test_weights_are_bounded_so_that_nobody_drowns_the_others() -> None:
    assert bounded_weights(np.array([2.0, 4.0, 8.0])).tolist() == [0.5, 1, 2]
    assert bounded_weights(np.array([1.0, 1.0, 1e300])).tolist() == [1, 1, LARGEST_WEIGHT]
    assert bounded_weights(np.array([3.0])).tolist() == [1]


def test_what_a_learner_states_is_not_believed_beyond_the_median() -> None:
    alike = given_losses(np.ones((5, 5)), np.ones(5))
    sizes, noise = np.array([20, 60, 60, 60, 2**53]), np.array([1.0, 1.0, 1.0, 3.0, 1e-90])
    assert model_weights(sizes, np.ones(5), alike).tolist() == pytest.approx([1 / 3, 1, 1, 1, 1])
    assert model_weights(np.full(5, 60), noise, alike).tolist() == pytest.approx([1, 1, 1, 1 / 3, 1])


def test_a_model_that_suits_nobody_counts_little(
    learners: Learners, linear: Selection, evaluate: Callable[..., Exchange], in_order: Callable[..., Any]
) -> None:
    exchange = evaluate(learners, linear)
    table = exchange.losses.copy()
    table[0] *= 1e6
    losses = AverageLosses.of_all(
        learners, linear, replace(exchange, source=DenseTiles(table)), ThreadEngine()
    )
    span = learners.span(4)
    pooled = in_order(losses, losses.residuals(np.array([0, 0, 1, 1, 1]), 2)[..., 0])[0, span]
    assert np.allclose(
        pooled, learners.scalar_y[span] - linear.models[1].predict(learners.X[span]), atol=1e-4
    )


def given_losses(losses: Any, noise: Any) -> Exchange:
    n = len(losses)
    return Exchange(np.arange(n), DenseTiles(losses), losses.diagonal(), noise, np.zeros(n, dtype=bool))


def test_a_model_travels_as_it_does_on_the_third_of_the_others_that_it_suits_best() -> None:
    losses = np.array(
        [
            [0.1, 2.0, 6.0, 9.0, 9.0, 9.0, 9.0],
            [5.0, 0.1, 5.0, 5.0, 5.0, 5.0, 5.0],
            *np.full((5, 7), 3.0),
        ]
    )
    # Two of the six others: losses 2 and 6 for the first model, whatever it loses on itself.
    assert how_models_travel(given_losses(losses, np.ones(7))).tolist() == [4, 5, 3, 3, 3, 3, 3]
    assert how_models_travel(given_losses(losses, np.full(7, 2.0)))[:2].tolist() == [2, 2.5]
    noisy = np.array([1.0, 1, 1, 9, 9, 9, 9])
    assert how_models_travel(given_losses(losses, noisy))[0] == 1


def test_one_model_among_no_others_travels_as_well_as_noise_allows() -> None:
    assert how_models_travel(given_losses(np.array([[7.0]]), np.ones(1))).tolist() == [1]
    two = np.array([[7.0, 3.0], [4.0, 7.0]])
    assert how_models_travel(given_losses(two, np.ones(2))).tolist() == [3, 4]


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.integers(1, 12), st.integers(1, 14), st.integers(0, 99))
def test_how_models_travel_equals_explicit_loops_for_any_block(n: int, block: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    exchange = given_losses(rng.exponential(size=(n, n)), rng.uniform(0.5, 2, size=n))
    before = exchange.losses.copy()
    travel = how_models_travel(exchange, block)
    assert np.allclose(travel, travels(exchange) if n > 1 else [1.0])
    assert np.array_equal(exchange.losses, before)


def test_the_others_are_still_seen_behind_a_learner_without_noise(
    learners: Learners, linear: Selection, evaluate: Callable[..., Exchange], in_order: Callable[..., Any]
) -> None:
    exchange, everybody = evaluate(learners, linear), np.zeros(5, dtype=int)
    exact = replace(linear, noise=np.array([1e-12, 1.0, 1.0, 1.0, 1.0]))
    losses = AverageLosses.of_all(learners, exact, exchange, ThreadEngine())
    mine = in_order(losses, losses.residuals(everybody, 1)[..., 0])[0, learners.span(0)]
    assert np.allclose(mine, by_hand(learners, exact, exchange, everybody, 0, 0), atol=1e-6)
