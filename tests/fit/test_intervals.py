"""Intervals of fitted models: every form, every kind of learner, saved and loaded."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from coterie import CoterieRegressor, load, save
from coterie.datasets import make_linear_learners

DATA = make_linear_learners(10, n_truths=2, n_rows=80, n_features=3, random_state=0)
HALF = np.tile(np.repeat([True, False], 40), 10)
NUMBER = np.unique(DATA.groups, return_inverse=True)[1]
PLACE = np.tile(np.arange(80), 10)
LATE = {"learner 08": 20, "learner 09": 1}
FORMS: dict[str, dict[str, Any]] = {
    "auto": {},
    "averages": {"refine": "average"},
    "pooled": {"collaboration": "pooled"},
    "average": {"collaboration": "average"},
    "local": {"collaboration": "local"},
    "global": {"collaboration": "global"},
    "standardised": {"standardize": "learner"},
    "in blocks": {"order": "auto", "nested_folds": 2},
}


def rows_of(mask: Any) -> tuple[Any, Any, Any]:
    return DATA.X[mask], DATA.y[mask], DATA.groups[mask]


def fitted(sample_weight: Any = None, tiny: int = 5, **options: Any) -> CoterieRegressor:
    """Fit seven learners, and one with few rows; two newcomers are admitted, one with a single row."""
    known = HALF & (NUMBER < 8) & ((NUMBER != 7) | (tiny > PLACE))
    weights = {} if sample_weight is None else {"sample_weight": sample_weight[known]}
    model = CoterieRegressor(candidates="linear", n_bootstrap=0, **options)
    model.fit(*rows_of(known), **weights)
    few = np.select([NUMBER == 8, NUMBER == 9], list(LATE.values()))
    model.admit(*rows_of(few > PLACE))
    return model


def inside(model: CoterieRegressor, coverage: float = 0.9) -> Any:
    X, y, groups = rows_of(~HALF)
    ends = model.predict_interval(X, groups, coverage)
    return (ends[:, 0] <= y) & (y <= ends[:, 1])


@pytest.mark.parametrize("form", FORMS)
def test_every_learner_has_finite_intervals_around_its_prediction(form: str, tmp_path: Path) -> None:
    model = fitted(**FORMS[form])
    X, _, groups = rows_of(~HALF)
    predicted = model.predict(X, groups)
    before = predicted[:, None]
    for coverage in (0.5, 0.9, 0.999):
        ends = model.predict_interval(X, groups, coverage)
        assert ends.shape == (len(X), 2)
        assert np.isfinite(ends).all()
        assert (ends[:, 0] <= before.min(axis=1)).all()
        assert (ends[:, 1] >= before.max(axis=1)).all()
        before = ends
    with pytest.warns(UserWarning, match="not seen in fit"):
        unseen = model.predict_interval(X, np.full(len(X), "who"))
    assert np.mean((unseen[:, 0] <= DATA.y[~HALF]) & (DATA.y[~HALF] <= unseen[:, 1])) > 0.85
    assert inside(model)[NUMBER[~HALF] < 7].mean() > 0.8
    for rows in (True, False):
        save(model, tmp_path / "model.coterie", rows=rows)
        again = load(tmp_path / "model.coterie")
        assert (again.predict_interval(X, groups, 0.999) == ends).all()


def test_the_coverage_is_what_was_asked_for() -> None:
    model = fitted()
    for coverage in (0.5, 0.8, 0.95):
        assert abs(inside(model, coverage)[NUMBER[~HALF] < 7].mean() - coverage) < 0.08


def test_tiny_admitted_and_one_row_learners_are_covered() -> None:
    found = inside(fitted())
    for number in (7, 8, 9):
        assert found[NUMBER[~HALF] == number].mean() > 0.6


def test_weights_and_wide_learners() -> None:
    equal = fitted(sample_weight=np.ones(len(DATA.y)))
    X, _, groups = rows_of(~HALF)
    assert_allclose(equal.predict_interval(X, groups), fitted().predict_interval(X, groups), rtol=1e-6)
    uneven = fitted(sample_weight=np.where(PLACE % 2, 1.9, 0.1))
    assert inside(uneven)[NUMBER[~HALF] < 7].mean() > 0.75


def test_moving_the_response_moves_the_intervals() -> None:
    X, y, groups = rows_of(HALF)
    rows = DATA.X[~HALF], DATA.groups[~HALF]
    plain = CoterieRegressor(candidates="linear", n_bootstrap=0).fit(X, y, groups).predict_interval(*rows)
    moved = CoterieRegressor(candidates="linear", n_bootstrap=0).fit(X, 8 * y + 64, groups)
    assert_allclose(moved.predict_interval(*rows), 8 * plain + 64, rtol=1e-5, atol=1e-5)


def test_the_order_of_learners_does_not_matter() -> None:
    X, y, groups = rows_of(HALF)
    other = np.concatenate([np.flatnonzero(groups == name) for name in np.unique(groups)[::-1]])
    rows = DATA.X[~HALF], DATA.groups[~HALF]
    model = CoterieRegressor(candidates="linear", n_bootstrap=0)
    first = model.fit(X, y, groups).predict_interval(*rows)
    assert_allclose(model.fit(X[other], y[other], groups[other]).predict_interval(*rows), first)


@pytest.mark.parametrize("form", ["auto", "pooled"])
@pytest.mark.parametrize("leaving", ["learner 09", "learner 07", "learner 00"])
def test_who_is_left_keeps_intervals(form: str, leaving: str) -> None:
    model = fitted(**FORMS[form])
    X, _, groups = rows_of(~HALF & (np.array(leaving) != DATA.groups))
    before = model.predict_interval(X, groups)
    after = model.remove([leaving]).predict_interval(X, groups)
    assert np.isfinite(after).all()
    if leaving == "learner 09":
        assert_allclose(after, before)
    assert np.ptp(after, axis=1).mean() == pytest.approx(np.ptp(before, axis=1).mean(), rel=0.5)


def test_constant_huge_and_single_learners() -> None:
    X, y, groups = rows_of(HALF)
    constant = np.where(groups == "learner 00", 7.0, y)
    for response in (constant, 1e60 * y, 1e-60 * y, np.zeros(len(y))):
        model = CoterieRegressor(candidates="linear", n_bootstrap=0).fit(X, response, groups)
        ends = model.predict_interval(X, groups, 0.999)
        assert np.isfinite(ends).all()
    assert np.ptp(ends, axis=1).max() < 1e-9
    alone = CoterieRegressor(candidates="lr").fit(X[:40], y[:40], groups=[0] * 40)
    assert np.isfinite(alone.predict_interval(X[:5], coverage=0.999)).all()


def test_trees_tell_where_responses_scatter(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X, groups = rng.random((1_200, 2)), np.repeat(np.arange(12), 100)
    y = X[:, 0] + (0.1 + X[:, 1]) * rng.standard_normal(1_200)
    model = CoterieRegressor(candidates="linear", n_bootstrap=0).fit(X, y, groups)
    assert model.record_.intervals is not None
    assert model.record_.intervals.spread.power > 0
    ends = model.predict_interval([[0.5, 0.05], [0.5, 0.95]], [0, 0])
    assert np.ptp(ends[1]) > 3 * np.ptp(ends[0])
    save(model, tmp_path / "model.coterie", rows=False)
    again = load(tmp_path / "model.coterie").predict_interval([[0.5, 0.05], [0.5, 0.95]], [0, 0])
    assert (again == ends).all()
