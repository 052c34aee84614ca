"""Sets of labels from scores that are known."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from coterie.loss import BrierScore
from coterie.rows.learners import gather_learners
from coterie.verdicts.label_sets import LabelSets, measure_label_sets, missed_chances
from coterie.verdicts.spread import Residuals


def measured(scores: list[Any], clusters: Any = None, shared: Any = None) -> LabelSets:
    """Return sets of learners whose rows are all of the second of two classes, missed by some scores."""
    sizes = [len(part) for part in scores]
    ids = np.array([f"s{j:03}" for j in range(len(sizes))])
    n = sum(sizes)
    learners = gather_learners(
        np.zeros((n, 1)), np.ones(n), np.repeat(ids, sizes), loss=BrierScore(2), caller="test"
    )
    parts = [np.reshape(part, (-1, 1)) for part in scores]
    others = parts if shared is None else [np.reshape(part, (-1, 1)) for part in shared]
    clusters = np.zeros(len(sizes), dtype=int) if clusters is None else np.asarray(clusters)
    return measure_label_sets(learners, clusters, parts, others)


def test_a_score_is_what_the_class_that_came_was_not_given() -> None:
    two = missed_chances(np.array([[1.0], [0.0]]), np.array([[0.3], [-0.3]]), BrierScore(2))
    assert_allclose(two, [0.3, 0.3])
    y = np.eye(3)[[2, 0]]
    three = missed_chances(y, y - [[0.2, 0.2, 0.6], [0.1, 0.0, 0.0]], BrierScore(3))
    # Probabilities are shown so that they sum to one.
    assert_allclose(three, [0.4, 0.0])


@pytest.mark.parametrize("coverage", [0.5, 0.9])
def test_new_scores_lie_inside_as_often_as_is_said(coverage: float) -> None:
    rng = np.random.default_rng(0)
    powers = np.linspace(0.5, 2, 40)
    sets = measured([rng.uniform(size=60) ** power for power in powers])
    inside = sets.limits(coverage)[:-1] ** (1 / powers)
    assert abs(inside.mean() - coverage) < 0.03
    assert np.abs(inside - coverage).max() < 0.2


def test_coteries_differ_where_their_scores_do() -> None:
    rng = np.random.default_rng(0)
    clusters = np.repeat([0, 1], 10)
    limits = measured([rng.uniform(size=40) ** (1 + 3 * k) for k in clusters], clusters).limits(0.9)
    assert limits[:10].min() > limits[10:20].max()


def test_a_newcomer_without_scores_is_no_surer_than_one_that_is_not_known() -> None:
    rng = np.random.default_rng(0)
    own = [0.5 * rng.uniform(size=40) for _ in range(20)]
    sets = measured(own, shared=[2 * part for part in own])
    rows = Residuals(
        np.full(30, 0.8), np.zeros(30, dtype=int), np.array([0, 0]), np.zeros((30, 1)), np.ones(30)
    )
    limits = sets.joined(np.array(["new", "one row"]), np.array([0, -1]), rows).limits(0.9)
    assert_allclose(limits[:20], sets.limits(0.9)[:20])
    assert limits[20] >= limits[:20].max()
    assert limits[21] == limits[22] > 0.8


def test_the_most_probable_class_is_always_inside_and_rounding_shuts_nobody_out() -> None:
    sets = measured([np.full(20, 0.6), np.full(20, 0.6)])
    chances = np.array([[0.6, 0.4 - 1e-12], [0.3, 0.7], [0.5, 0.5]])
    assert sets.around(chances, np.array([0, 1, -1]), 0.9).tolist() == [
        [True, True],
        [False, True],
        [True, True],
    ]
    sure = measured([np.full(20, 0.1)]).around(np.array([[0.2, 0.8], [0.5, 0.5]]), np.array([0, 0]), 0.9)
    assert sure.tolist() == [[False, True], [True, False]]


def test_no_row_that_was_held_out() -> None:
    with pytest.raises(ValueError, match="no row that was held out"):
        measured([np.full(4, np.nan)])
