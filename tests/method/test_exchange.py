from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LinearRegression

from coterie import cross_evaluate, select_models
from coterie.datasets import make_linear_learners
from coterie.records import Exchange, Selection

PAPER = ("rf", "knn", "svr", "nn", "gb", "lasso", "lars", "en", "ridge")
DATA = make_linear_learners(n_learners=4, n_truths=2, n_rows=[14, 15, 16, 17], n_features=2, random_state=1)
ROWS = {"X": DATA.X, "y": DATA.y, "groups": DATA.groups}
NAMES = DATA.learner_ids.tolist()


def exchanged(candidates: Any, **options: Any) -> tuple[Selection, Exchange]:
    weight = options.pop("sample_weight", None)
    selection = select_models(**ROWS, candidates=candidates, sample_weight=weight)
    return selection, cross_evaluate(selection, **ROWS, sample_weight=weight, **options)


def by_double_loop(selection: Selection, weight: Any = None, clips: Any = None) -> Any:
    """The mean squared error of everybody's model on everybody's rows, one predict at a time."""
    losses = np.empty((len(NAMES), len(NAMES)))
    for i, model in enumerate(selection.models):
        for j, learner in enumerate(NAMES):
            mine = DATA.groups == learner
            squares = (model.predict(DATA.X[mine]) - DATA.y[mine]) ** 2
            squares = squares if clips is None else np.minimum(squares, clips[j])
            losses[i, j] = np.average(squares, weights=None if weight is None else weight[mine])
    return losses


class Narrow(RegressorMixin, BaseEstimator):
    """Knows its own rows only: elsewhere it answers in a way that is no answer."""

    def __init__(self, how: str = "nan") -> None:
        self.how = how

    def fit(self, X: Any, y: Any) -> Any:
        # Halves predict each other; only rows beyond this are another learner's.
        self.highest_ = X[:, 0].max() + 10
        return self

    def predict(self, X: Any) -> Any:
        beyond = X[:, 0] > self.highest_
        if beyond.any() and self.how == "raise":
            raise RuntimeError("never been there")
        return np.where(beyond, {"nan": np.nan, "inf": np.inf, "huge": 1e200}.get(self.how, 0.0), 0.0)


@pytest.mark.parametrize("name", [*PAPER, "lr"])
def test_losses_are_those_of_the_double_loop_of_predict(name: str) -> None:
    selection, exchange = exchanged([name])
    assert set(selection.names) == {name}
    assert_allclose(exchange.losses, by_double_loop(selection), rtol=1e-9, atol=1e-12)


def test_losses_of_mixed_families_are_those_of_the_double_loop() -> None:
    mixed = dict(zip(NAMES, ("ridge", "knn", "lasso", "rf"), strict=True))
    selection, exchange = exchanged(mixed)
    assert selection.names == ("ridge", "knn", "lasso", "rf")
    assert_allclose(exchange.losses, by_double_loop(selection), rtol=1e-9)


@pytest.mark.parametrize("name", ["lr", "knn"])
def test_weights_count_in_the_losses(name: str) -> None:
    weight = np.random.default_rng(0).uniform(0.1, 5, len(DATA.y))
    selection, exchange = exchanged([name], sample_weight=weight)
    assert_allclose(exchange.losses, by_double_loop(selection, weight), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["lr", "knn"])
def test_robust_losses_are_clipped_at_the_learner_s_bound(name: str) -> None:
    selection, exchange = exchanged([name], robust=True)
    expected = by_double_loop(selection, clips=selection.clips)
    assert_allclose(exchange.losses, expected, rtol=1e-9, atol=1e-12)
    assert np.any(expected < by_double_loop(selection))
    assert_allclose(exchange.errors, expected.diagonal(), atol=1e-12)


@pytest.mark.parametrize("candidates", [["lr"], ["knn"], ["ridge", "rf"]])
def test_the_dissimilarity_follows_the_paper_entry_by_entry(candidates: list[str]) -> None:
    selection, exchange = exchanged(candidates)
    E, e, v = exchange.losses, selection.errors, exchange.dissimilarity
    for i in range(4):
        for j in range(4):
            expected = 0.0 if i == j else abs(E[i, j] - e[j]) + abs(E[j, i] - e[i])
            assert v[i, j] == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert np.array_equal(v, v.T)


def test_the_dissimilarity_is_the_same_in_tiles_of_any_size() -> None:
    _, exchange = exchanged(["lr"])
    for block in (1, 2, 3, 100):
        v = np.full((4, 4), np.nan)
        for rows, columns, tile in exchange.dissimilarity_tiles(block=block):
            v[rows, columns], v[columns, rows] = tile, tile.T
        assert_allclose(v, exchange.dissimilarity, rtol=1e-12)


def test_errors_are_the_losses_at_home() -> None:
    selection, exchange = exchanged(["lr"])
    assert_allclose(exchange.errors, exchange.losses.diagonal())
    assert_allclose(exchange.errors, selection.errors)
    assert np.array_equal(exchange.noise, selection.noise)
    assert not exchange.isolated.any()


def test_learners_come_in_the_order_of_the_rows() -> None:
    selection, straight = exchanged(["lr"])
    turned = cross_evaluate(selection, DATA.X[::-1], DATA.y[::-1], groups=DATA.groups[::-1])
    assert turned.learner_ids.tolist() == NAMES[::-1]
    assert_allclose(turned.losses, straight.losses[::-1, ::-1], rtol=1e-9)


def test_twins_are_not_apart() -> None:
    X, y = DATA.X[:14], DATA.y[:14]
    rows = {"X": np.vstack([X, X]), "y": np.r_[y, y], "groups": np.repeat(["a", "b"], 14)}
    exchange = cross_evaluate(select_models(**rows, candidates=["lr"]), **rows)
    assert_allclose(exchange.dissimilarity, 0, atol=1e-12)


@pytest.mark.parametrize("how", ["nan", "inf", "huge", "raise"])
def test_a_model_without_finite_losses_is_isolated_and_named(how: str) -> None:
    X = np.r_[np.arange(8.0), 100 + np.arange(8.0), 100 + np.arange(8.0)][:, None]
    rows = {"X": X, "y": np.tile(np.arange(8.0), 3), "groups": np.repeat(["near", "far", "further"], 8)}
    candidates = {"near": Narrow(how), "far": LinearRegression(), "further": LinearRegression()}
    selection = select_models(**rows, candidates={k: {"it": c} for k, c in candidates.items()})
    with pytest.warns(UserWarning, match="model of learner 'near' gave losses that are not finite"):
        exchange = cross_evaluate(selection, **rows)
    assert exchange.isolated.tolist() == [True, False, False]


def test_an_overflow_of_linear_losses_is_isolated_too() -> None:
    X = np.r_[1e-80 * np.arange(8.0), 1e80 * np.arange(8.0)][:, None]
    rows = {"X": X, "y": np.tile(np.arange(8.0), 2), "groups": np.repeat(["near", "far"], 8)}
    selection = select_models(**rows, candidates=["lr"])
    with pytest.warns(UserWarning, match="model of learner 'near' gave losses that are not finite"):
        exchange = cross_evaluate(selection, **rows)
    assert exchange.isolated.tolist() == [True, False]


def test_rows_of_a_learner_who_did_not_select_are_refused() -> None:
    selection = select_models(DATA.X[:29], DATA.y[:29], groups=DATA.groups[:29], candidates=["lr"])
    with pytest.raises(ValueError, match="Selection knows nothing of learner 'learner 02'"):
        cross_evaluate(selection, **ROWS)


def test_the_number_of_threads_changes_nothing() -> None:
    _, one = exchanged(["knn"], n_jobs=1)
    _, two = exchanged(["knn"], n_jobs=2)
    assert np.array_equal(one.losses, two.losses)


def test_another_engine_may_run_the_predictions() -> None:
    class Counting:
        """Runs the jobs in turn and counts them."""

        jobs = 0

        def map(self, function: Any, jobs: Any) -> list[Any]:
            results = [function(job) for job in jobs]
            self.jobs += len(results)
            return results

    engine = Counting()
    _, exchange = exchanged(["knn"], engine=engine)
    assert engine.jobs == 4
    assert_allclose(exchange.losses, exchanged(["knn"])[1].losses)
