"""Do neighbouring rows depend on each other?"""

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from scipy.signal import lfilter

from coterie.method.order import (
    SerialScore,
    in_sorted_order,
    rows_depend,
    serial_score,
    variance_inflation,
)


def score_of(residuals: Any, X: Any, y: Any) -> SerialScore:
    """Score residuals of one column."""
    return serial_score(residuals[:, None], X, y[:, None])


def is_sorted(X: Any, y: Any) -> bool:
    """Tell it of a response of one column."""
    return in_sorted_order(X, y[:, None])


def inflation_of(residuals: Any, folds: Any) -> float:
    """Return the inflation of residuals of one column."""
    return variance_inflation([r[:, None] for r in residuals], folds)


def series(correlation: float, n_learners: int, n: int, seed: int = 0) -> np.ndarray:
    shocks = np.random.default_rng(seed).standard_normal((n_learners, n))
    return lfilter([1.0], [1.0, -correlation], shocks, axis=1)


def scores(rows: np.ndarray, seed: int = 1) -> list[SerialScore]:
    rng = np.random.default_rng(seed)
    return [score_of(r, rng.normal(size=(len(r), 3)), rng.normal(size=len(r))) for r in rows]


@pytest.mark.parametrize("values", [[1.0, 5.0, 2.0, 7.0, 3.0, 9.0], [1.0, 1.0, 2.0, 7.0, 7.0, 9.0]])
def test_mean_and_variance_are_those_over_all_orders(values: list[float]) -> None:
    # A response and a predictor that are sorted in no direction.
    x = np.array([0.0, 3.0, 1.0, 2.5, 0.5, 1.5])
    found = [score_of(np.array(order), x[:, None], x) for order in permutations(values)]
    assert np.mean([score.deviation for score in found]) == pytest.approx(0, abs=1e-12)
    variance = np.mean([score.deviation**2 for score in found])
    assert variance == pytest.approx(found[0].variance)


@pytest.mark.parametrize("correlation", [0.5, 0.7, 0.8, 0.95])
def test_rows_in_time_order_are_found_and_shuffled_ones_are_not(correlation: float) -> None:
    rows = series(correlation, 30, 80)
    assert rows_depend(scores(rows))
    shuffled = np.random.default_rng(2).permuted(rows, axis=1)
    assert not rows_depend(scores(shuffled))


def test_short_learners_count_together() -> None:
    rows = series(0.7, 60, 10)
    assert rows_depend(scores(rows))
    assert not rows_depend(scores(rows[:2]))


def test_much_data_do_not_make_a_trifle_count() -> None:
    assert not rows_depend(scores(series(0.03, 10, 20_000)))
    assert rows_depend(scores(series(0.1, 10, 20_000)))


def false_alarms(n_learners: int, n: int, draws: int) -> float:
    rng = np.random.default_rng(0)
    alarms = []
    for _ in range(draws):
        rows = rng.standard_t(1.5, size=(n_learners, n)) * np.geomspace(0.1, 10, n_learners)[:, None]
        X = rng.normal(size=(n, 2))
        alarms.append(rows_depend(score_of(row, X, X[:, 0]) for row in rows))
    return float(np.mean(alarms))


@pytest.mark.parametrize(("n_learners", "n"), [(1, 12), (8, 5)])
def test_independent_rows_raise_no_alarm(n_learners: int, n: int) -> None:
    assert false_alarms(n_learners, n, 300) == 0


@pytest.mark.slow
@pytest.mark.parametrize(("n_learners", "n"), [(1, 20), (1, 80), (5, 5), (30, 4), (30, 60)])
def test_false_alarms_are_at_most_one_in_a_thousand(n_learners: int, n: int) -> None:
    # Ten alarms are the mean of one in a thousand; eighteen would be its upper 99 per cent.
    assert false_alarms(n_learners, n, 10_000) <= 1.8e-3


@pytest.mark.parametrize("falling", [False, True])
def test_sorted_rows_do_not_count(falling: bool) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.normal(size=60)
    residuals = series(0.9, 1, 60)[0]
    assert score_of(residuals, X, y).n_rows == 60
    step = -1 if falling else 1
    for by in (y, X[:, 1], np.round(X[:, 1], 1)):
        order = np.argsort(by, kind="stable")[::step]
        assert is_sorted(X[order], y[order])
        assert score_of(residuals, X[order], y[order]).n_rows == 0


def test_a_column_that_rises_in_even_steps_is_time() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(36, 2)), np.sort(rng.normal(size=36))
    days = np.cumsum(np.tile([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], 3)).astype(float)
    for clock in (np.arange(36.0), -np.arange(36.0), days, 2000 + np.arange(36) / 12):
        # Whatever else rises or falls with time.
        assert not is_sorted(np.column_stack([X, clock, clock**2]), y)
    gaps = np.delete(np.arange(40.0), [7, 8, 20, 31])
    assert not is_sorted(np.column_stack([X, gaps]), y)
    assert is_sorted(np.column_stack([X, np.sort(X[:, 0])]), rng.normal(size=36))


def test_residuals_that_are_rounding_say_nothing() -> None:
    X = np.random.default_rng(0).normal(size=(50, 2))
    y = 1e6 + X.sum(axis=1)
    assert score_of(np.sort(X[:, 0]) * 1e-10, X, y) == SerialScore()
    assert score_of(np.zeros(50), X, y) == SerialScore()
    assert not rows_depend([SerialScore()])


@pytest.mark.parametrize("correlation", [0.0, 0.6])
def test_inflation_is_that_of_the_mean(correlation: float) -> None:
    rows, folds = series(correlation, 20, 1000), [np.repeat([0, 1], 500)] * 20
    exact = (1 + correlation) / (1 - correlation)
    assert inflation_of(list(rows), folds) == pytest.approx(exact, rel=0.12)


def test_a_fold_s_own_level_is_no_dependence() -> None:
    rows, folds = series(0.0, 20, 200), [np.repeat([0, 1], 100)] * 20
    shifted = rows + np.where(np.arange(200) < 100, 5.0, -5.0)
    assert inflation_of(list(shifted), folds) == pytest.approx(1, abs=0.1)


def test_rows_that_were_not_held_out_do_not_matter() -> None:
    rows = series(0.5, 5, 300)
    rows[:, :20] = np.nan
    folds = [np.r_[np.full(20, -1), np.zeros(280, int)]] * 5
    assert 2 < inflation_of(list(rows), folds) < 4
    assert inflation_of([np.full(8, np.nan)], [np.full(8, -1)]) == 1.0
    assert inflation_of([np.zeros(8)], [np.zeros(8, int)]) == 1.0
