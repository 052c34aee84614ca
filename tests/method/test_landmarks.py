from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.tree import DecisionTreeRegressor

from coterie.engines import ThreadEngine
from coterie.kernels.losses import loss_matrix
from coterie.method.landmarks import LandmarkTiles, how_many_landmarks, landmark_losses
from coterie.records import Selection
from coterie.rows.learners import Learners

SIZES = [8, 9, 7, 10, 8, 9, 8, 7, 9, 8, 10, 9]


@pytest.fixture(scope="module")
def trees(
    make_learners: Callable[..., Learners], select: Callable[..., Selection]
) -> tuple[Learners, Selection]:
    learners = make_learners(SIZES)
    return learners, select(learners, {"tree": DecisionTreeRegressor(max_depth=2)})


@pytest.mark.parametrize("clipped", [False, True])
def test_what_is_known_are_the_losses_and_nothing_else_is_said(trees: Any, clipped: bool) -> None:
    learners, selection = trees
    clips = selection.clips if clipped else None
    whole = loss_matrix(selection.models, learners, ThreadEngine(), clips)
    tiles, errors = landmark_losses(selection, learners, 4, ThreadEngine(), clips=clips)
    assert len(np.unique(tiles.marks)) == 4
    assert_allclose(errors, whole.diagonal())
    found = tiles.tile(slice(None), slice(None))
    known = np.zeros(found.shape, dtype=bool)
    known[tiles.marks], known[:, tiles.marks] = True, True
    assert_allclose(found[known], whole[known])
    assert np.isnan(found[~known]).all()


def test_some_learners_are_taken_in_the_order_given(trees: Any) -> None:
    learners, selection = trees
    tiles, _ = landmark_losses(selection, learners, 4, ThreadEngine())
    order = np.append(tiles.marks[[2, 0]], [j for j in range(6) if j not in tiles.marks])
    taken = tiles.take(order)
    assert sorted(order[taken.marks]) == sorted(tiles.marks[[0, 2]])
    expected = tiles.take(np.arange(len(SIZES))).tile(order, order)
    known = np.isin(np.arange(len(order)), taken.marks)
    either = known[:, None] | known
    assert_allclose(taken.tile(slice(None), slice(None))[either], expected[either])


def test_landmarks_spread_over_those_who_differ() -> None:
    class Constant:
        def __init__(self, level: float) -> None:
            self.level = level

        def predict(self, X: Any) -> Any:
            return np.full(len(X), self.level)

    # Two learners unlike the other 98, who are all alike.
    n, level = 100, np.r_[np.zeros(98), 9.0, -9.0]
    learners = Learners(
        np.arange(n), np.zeros((2 * n, 1)), np.repeat(level, 2)[:, None], np.arange(0, 2 * n + 1, 2),
        np.arange(2 * n), np.arange(n),
    )  # fmt: skip
    models = tuple(Constant(value) for value in level)
    empty: Any = ((),) * n
    chosen = Selection(
        learners.ids, ("c",) * n, models, np.zeros(n), np.zeros(n), np.full(n, 2), empty, empty, empty, empty,
        empty, empty, np.ones(n), np.ones(n),
    )  # fmt: skip
    for seed in range(5):
        tiles, _ = landmark_losses(chosen, learners, 12, ThreadEngine(), seed=seed)
        assert {98, 99} <= set(tiles.marks.tolist())


@pytest.mark.parametrize(
    ("option", "n_learners", "count"),
    [(None, 5_000, None), ("auto", 5_000, 120), ("auto", 900, None), (50, 5_000, 50), (50, 40, None)],
)
def test_an_option_means_a_number(option: Any, n_learners: int, count: int | None) -> None:
    assert how_many_landmarks(option, n_learners) == count


@pytest.mark.parametrize("option", ["many", 1, 2.5])
def test_an_option_that_means_none_is_refused(option: Any) -> None:
    with pytest.raises(ValueError, match="'landmarks' option"):
        how_many_landmarks(option, 5_000)


def test_the_number_of_learners_is_known() -> None:
    assert LandmarkTiles(np.array([1]), np.ones((1, 3)), np.ones((3, 1))).n_learners == 3
