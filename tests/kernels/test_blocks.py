from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.svm import SVR

from coterie.kernels import losses as blocks
from coterie.kernels.losses import learner_blocks, model_losses, predict_rows
from coterie.rows.learners import Learners, gather_learners

FLEXIBLE = [
    RandomForestRegressor(5, random_state=0),
    KNeighborsRegressor(3),
    SVR(),
    MLPRegressor(hidden_layer_sizes=(4,), solver="lbfgs", max_iter=2000, alpha=1.0, random_state=0),
]


class Answers:
    """Predicts by a function."""

    def __init__(self, answer: Callable[[Any], Any]) -> None:
        self.predict = answer


def raises(X: Any) -> Any:
    raise RuntimeError("no")


def of_sizes(sizes: list[int]) -> Learners:
    owner = np.repeat(np.arange(len(sizes)), sizes)
    return gather_learners(np.arange(len(owner))[:, None], np.zeros(len(owner)), owner, caller="test")


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=10), st.integers(1, 40))
def test_blocks_cover_every_learner_once_and_are_as_large_as_they_may(sizes: list[int], most: int) -> None:
    learners = of_sizes(sizes)
    cuts = list(learner_blocks(learners, most))
    assert [j for start, stop in cuts for j in range(start, stop)] == list(range(len(learners)))
    for start, stop in cuts:
        rows = learners.sizes[start:stop].sum()
        assert rows <= most or stop - start == 1
        assert stop == len(learners) or rows + learners.sizes[stop] > most


def test_a_learner_larger_than_the_block_is_a_block_of_its_own() -> None:
    assert list(learner_blocks(of_sizes([2, 9, 2, 2]), 4)) == [(0, 1), (1, 2), (2, 4)]
    assert list(learner_blocks(of_sizes([9]), 4)) == [(0, 1)]
    assert list(learner_blocks(of_sizes([2, 2, 2]))) == [(0, 3)]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("model", FLEXIBLE, ids=lambda m: type(m).__name__)
def test_losses_equal_the_double_loop(
    model: Any,
    weighted: bool,
    make_learners: Callable[..., Learners],
    double_loop: Callable[..., Any],
) -> None:
    learners = make_learners(weighted=weighted)
    span = learners.span(1)
    model.fit(learners.X[span], learners.scalar_y[span])
    assert np.allclose(model_losses(model, learners), double_loop([model], learners)[0], rtol=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
def test_squares_are_clipped_by_the_bound_of_the_learner_on_whose_rows_they_are(
    weighted: bool, make_learners: Callable[..., Learners], double_loop: Callable[..., Any]
) -> None:
    learners = make_learners(weighted=weighted)
    zero = Answers(lambda X: np.zeros(len(X)))
    clips = np.array([0.0, 0.5, 1.0, 2.0, np.inf])
    losses = model_losses(zero, learners, clips)
    assert np.allclose(losses, double_loop([zero], learners, clips)[0])
    assert losses[0] == 0
    assert losses[4] == pytest.approx(model_losses(zero, learners)[4])


@pytest.mark.parametrize("most", [1, 10, 20, 30])
def test_the_size_of_blocks_changes_nothing(
    most: int, make_learners: Callable[..., Learners], monkeypatch: pytest.MonkeyPatch
) -> None:
    learners = make_learners(weighted=True)
    model = LinearRegression().fit(learners.X, learners.scalar_y)
    clips = np.full(len(learners), 3.0)
    whole = model_losses(model, learners), model_losses(model, learners, clips)
    monkeypatch.setattr(blocks, "learner_blocks", lambda rows: learner_blocks(rows, most))
    assert np.allclose(model_losses(model, learners), whole[0], rtol=1e-12)
    assert np.allclose(model_losses(model, learners, clips), whole[1], rtol=1e-12)


@pytest.mark.parametrize(
    "answer",
    [
        raises,
        lambda X: np.full(len(X), np.nan),
        lambda X: np.full(len(X), np.inf),
        lambda X: np.full(len(X), 1e200),
        lambda X: np.zeros(len(X) - 1),
        lambda X: np.zeros((len(X), 2)),
        lambda X: 3.0,
        lambda X: None,
        lambda X: ["text"] * len(X),
    ],
    ids=["raises", "NaN", "infinity", "overflow", "too few", "two columns", "scalar", "None", "text"],
)
def test_a_model_that_fails_has_losses_that_are_not_finite(
    answer: Any, make_learners: Callable[..., Learners]
) -> None:
    losses = model_losses(Answers(answer), make_learners())
    assert losses.shape == (5,)
    assert not np.isfinite(losses).any()


@pytest.mark.parametrize(
    "answer",
    [
        raises,
        lambda X: np.full(len(X), np.nan),
        lambda X: np.full(len(X), np.inf),
    ],
    ids=["raises", "NaN", "infinity"],
)
def test_a_bound_does_not_hide_a_failure(answer: Any, make_learners: Callable[..., Learners]) -> None:
    losses = model_losses(Answers(answer), make_learners(), np.ones(5))
    assert not np.isfinite(losses).any()


def test_a_failure_on_one_learners_rows_is_a_loss_that_is_not_finite_there(
    make_learners: Callable[..., Learners],
) -> None:
    learners = make_learners()
    there = learners.X[learners.span(2)][0, 0]
    model = Answers(lambda X: np.where(X[:, 0] == there, np.nan, 0.0))
    assert np.isfinite(model_losses(model, learners)).tolist() == [True, True, False, True, True]


def test_predictions_are_one_column_however_a_model_answers() -> None:
    X = np.array([[1], [2]])
    assert predict_rows(Answers(lambda X: X), X).tolist() == [[1], [2]]
    assert predict_rows(Answers(lambda X: X[:, 0]), X).tolist() == [[1], [2]]
