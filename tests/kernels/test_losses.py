from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.svm import SVR

from coterie._seeds import seed_estimator
from coterie.candidates import PRESETS, make_candidates
from coterie.engines import ThreadEngine
from coterie.kernels import losses as blocks
from coterie.kernels.affine import AffineLosses
from coterie.kernels.losses import (
    DenseTiles,
    learner_blocks,
    loss_matrix,
    model_losses,
    own_errors,
    predict_rows,
)
from coterie.method.fitting import quiet_fits
from coterie.rows.learners import Learners, gather_learners


class Fails:
    def predict(self, X: Any) -> Any:
        raise RuntimeError("no")


def fitted(name: str, learners: Learners) -> list[Any]:
    """One model per learner."""
    models = []
    with quiet_fits():
        for j in range(len(learners)):
            span = learners.span(j)
            model = seed_estimator(clone(make_candidates(name)[name]), 0)
            models.append(model.fit(learners.X[span], learners.scalar_y[span]))
    return models


@pytest.mark.parametrize("name", PRESETS["paper"])
def test_the_losses_of_each_of_the_papers_candidates_equal_the_double_loop(
    name: str, make_learners: Callable[..., Learners], double_loop: Callable[..., Any]
) -> None:
    learners = make_learners((12, 9, 15))
    models = fitted(name, learners)
    losses = loss_matrix(models, learners, ThreadEngine())
    assert np.allclose(losses, double_loop(models, learners), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("clipped", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_mixed_families_equal_the_double_loop_in_the_order_of_the_models(
    weighted: bool,
    clipped: bool,
    n_jobs: int,
    make_learners: Callable[..., Learners],
    double_loop: Callable[..., Any],
) -> None:
    learners = make_learners((12, 9, 15), weighted=weighted)
    models = [fitted(name, learners)[j] for j, name in enumerate(("knn", "lasso", "svr"))]
    models += [LinearRegression().fit(learners.X, learners.scalar_y), *fitted("en", learners)]
    clips = np.array([0.1, 1.0, np.inf]) if clipped else None
    losses = loss_matrix(models, learners, ThreadEngine(n_jobs), clips)
    assert losses.shape == (7, 3)
    assert np.allclose(losses, double_loop(models, learners, clips), rtol=1e-9)


def test_a_model_that_fails_does_not_touch_the_others(
    make_learners: Callable[..., Learners], double_loop: Callable[..., Any]
) -> None:
    learners = make_learners((12, 9))
    good = fitted("lr", learners)
    losses = loss_matrix([good[0], Fails(), good[1]], learners, ThreadEngine())
    assert np.isnan(losses[1]).all()
    assert np.allclose(losses[[0, 2]], double_loop(good, learners))


def test_a_linear_model_with_an_infinite_coefficient_is_not_finite_anywhere(
    make_learners: Callable[..., Learners],
) -> None:
    learners = make_learners((12, 9))
    model = LinearRegression().fit(learners.X, learners.scalar_y)
    model.intercept_ = np.inf
    assert not np.isfinite(loss_matrix([model], learners, ThreadEngine())).any()


def test_no_models_have_no_losses(make_learners: Callable[..., Learners]) -> None:
    assert loss_matrix([], make_learners((3, 3)), ThreadEngine()).shape == (0, 2)


@pytest.mark.parametrize("weighted", [False, True])
def test_own_errors_are_the_diagonal_of_the_losses(
    weighted: bool, make_learners: Callable[..., Learners], double_loop: Callable[..., Any]
) -> None:
    learners = make_learners((12, 9, 15), weighted=weighted)
    models = [fitted(name, learners)[j] for j, name in enumerate(("knn", "lasso", "lr"))]
    assert np.allclose(own_errors(models, learners), np.diag(double_loop(models, learners)), rtol=1e-9)
    models[1] = Fails()
    assert np.isnan(own_errors(models, learners)[1])


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


def affine() -> AffineLosses:
    rng = np.random.default_rng(0)
    X, owner = rng.normal(size=(30, 2)), np.repeat(np.arange(5), 6)
    learners = gather_learners(X, rng.normal(size=30), owner, caller="test")
    return AffineLosses(rng.normal(size=(5, 3)), learners)


def tiles() -> list[tuple[Any, Any]]:
    """Both kinds, each with all of its losses."""
    everybody = np.arange(5)
    whole = affine().tile(everybody, everybody)
    return [(DenseTiles(whole), whole), (affine(), whole)]


@pytest.mark.parametrize(("source", "whole"), tiles(), ids=["dense", "affine"])
@pytest.mark.parametrize(
    ("models", "learners"),
    [
        (slice(0, 5), slice(0, 5)),
        (slice(1, 3), slice(2, 5)),
        (slice(4, 5), slice(0, 1)),
        (slice(0, 0), slice(0, 2)),
    ],
)
def test_a_tile_is_a_piece_of_the_whole(source: Any, whole: Any, models: slice, learners: slice) -> None:
    tile = source.tile(models, learners)
    assert tile.shape == whole[models, learners].shape
    assert np.allclose(tile, whole[models, learners], rtol=1e-12)


@pytest.mark.parametrize(("source", "whole"), tiles(), ids=["dense", "affine"])
def test_learners_are_taken_and_taken_again(source: Any, whole: Any) -> None:
    assert source.n_learners == 5
    some = source.take(np.array([3, 0, 4]))
    assert some.n_learners == 3
    assert np.allclose(some.tile(slice(0, 3), slice(0, 3)), whole[np.ix_([3, 0, 4], [3, 0, 4])])
    fewer = some.take(np.array([2, 0]))
    assert fewer.n_learners == 2
    assert np.allclose(fewer.tile(slice(0, 2), slice(0, 2)), whole[np.ix_([4, 3], [4, 3])])
    assert np.allclose(fewer.tile(slice(0, 1), slice(1, 2)), whole[4, 3])
