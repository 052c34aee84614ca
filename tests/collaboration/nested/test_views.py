from __future__ import annotations

import numpy as np
from sklearn.linear_model import Ridge
from sklearn.metrics import adjusted_rand_score

from coterie.collaboration.nested import views as module
from coterie.collaboration.nested.views import RowsInUnits, line_labels, started

TRUTH = np.arange(6) % 2


def rows_of_two_truths(n=10, seed=0):
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(6), n)
    x = rng.normal(size=len(owner))
    y = np.where(TRUTH[owner], -x, x) + 0.1 * rng.normal(size=len(owner))
    return RowsInUnits(np.column_stack([x, np.ones(len(x))]), y, np.ones(len(x)), owner, 6)


def test_a_line_is_a_ridge_without_penalty_on_the_level():
    rows = rows_of_two_truths()
    some = np.flatnonzero(rows.owner == 0)
    expected = Ridge(module.RIDGE).fit(rows.Z[some, :1], rows.y[some])
    np.testing.assert_allclose(rows.line(some), [expected.coef_[0], expected.intercept_], atol=1e-5)


def test_losses_are_weighted_squares_by_learner():
    rows = RowsInUnits(
        np.ones((3, 1)), np.array([1.0, 2.0, 4.0]), np.array([1.0, 2.0, 3.0]), np.array([0, 0, 2]), 3
    )
    losses = rows.losses(np.array([[0.0], [2.0]]), np.arange(3))
    np.testing.assert_allclose(losses, [[1 + 8, 1], [0, 0], [48, 12]])


def test_lines_find_obvious_coteries_from_a_bad_start():
    rows = rows_of_two_truths()
    start = np.array([0, 1, 0, 1, 1, 1])
    labels, lines = line_labels(rows, np.ones(60, dtype=bool), np.ones(6, dtype=bool), start)
    np.testing.assert_array_equal(labels, TRUTH)
    np.testing.assert_allclose(lines[:, 0], [1, -1], atol=0.1)


def test_who_has_no_rows_has_no_coterie():
    rows = rows_of_two_truths()
    labels, _ = line_labels(rows, rows.owner != 3, np.ones(6, dtype=bool), TRUTH)
    np.testing.assert_array_equal(labels, np.where(np.arange(6) == 3, -1, TRUTH))


def test_rows_that_may_not_be_used_and_learners_who_shape_nothing_move_no_line():
    rows = rows_of_two_truths()
    shaping, used = np.arange(6) < 4, rows.owner != 0
    _, lines = line_labels(rows, used, shaping, TRUTH)
    spoilt = RowsInUnits(rows.Z, np.where(rows.owner >= 4, rows.y + 0.3, rows.y), rows.weights, rows.owner, 6)
    spoilt.y[rows.owner == 0] = 99.0
    labels, again = line_labels(spoilt, used, shaping, TRUTH)
    np.testing.assert_array_equal(lines, again)
    np.testing.assert_array_equal(labels[4:], TRUTH[4:])


def test_starts_are_by_places(monkeypatch):
    places = np.array([0.0, 5.0, 0.1, 5.1, 0.2, 5.2])[:, None]
    assert adjusted_rand_score(started(places, 2), TRUTH) == 1
    np.testing.assert_array_equal(started(places[:2], 3), [0, 1])
    monkeypatch.setattr(module, "MOST_IN_TREE", 4)
    assert adjusted_rand_score(started(places, 2), TRUTH) == 1
