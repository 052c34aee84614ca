import numpy as np
from sklearn.model_selection import KFold

from coterie import select_models
from coterie.collaboration.nested.folds import (
    Folds,
    block_folds,
    forecast_folds,
    joined_folds,
    random_folds,
    selected_folds,
)
from coterie.rows.learners import gather_learners


def test_every_row_is_held_out_once_and_folds_are_of_one_size(staged):
    learners = staged(sizes=(21, 20, 20, 20)).learners
    folds = random_folds(learners, 4, 0)
    assert len(folds) == 4
    np.testing.assert_array_equal(folds.training.sum(axis=0), 3)
    for j in range(4):
        counts = np.bincount(folds.held_out[learners.span(j)], minlength=4)
        assert counts.max() - counts.min() <= 1


def test_a_learner_s_folds_depend_on_its_id_alone(staged):
    learners = staged().learners
    some = learners.take(np.array([5, 2]))
    folds, fewer = random_folds(learners, 3, 7), random_folds(some, 3, 7)
    np.testing.assert_array_equal(fewer.held_out[some.span(0)], folds.held_out[learners.span(5)])
    assert (random_folds(learners, 3, 8).held_out != folds.held_out).any()


def test_a_splitter_s_folds_are_taken_over(staged):
    learners = staged().learners
    selection = select_models(learners, candidates=["lr"], splitter=KFold(3)).aligned_to(learners.ids)
    folds = selected_folds(selection)
    assert len(folds) == 3
    np.testing.assert_array_equal(folds.held_out[:20], [0] * 7 + [1] * 7 + [2] * 6)
    np.testing.assert_array_equal(folds.training, folds.held_out != np.arange(3)[:, None])


def test_blocks_are_runs_of_rows_of_one_size(staged):
    learners = staged(sizes=(21, 20, 20, 20)).learners
    folds = block_folds(learners, 4)
    np.testing.assert_array_equal(folds.training, folds.held_out != np.arange(4)[:, None])
    for j in range(4):
        mine = folds.held_out[learners.span(j)]
        assert (np.diff(mine) >= 0).all()
        counts = np.bincount(mine, minlength=4)
        assert counts.max() - counts.min() <= 1


def test_learners_with_few_rows_are_forecast_as_the_others_are():
    owner = np.repeat(np.arange(4), (7, 1, 4, 10))
    learners = gather_learners(np.zeros((22, 1)), np.zeros(22), owner, caller="test")
    folds = forecast_folds(learners, 2)
    assert folds.held_out.tolist() == [*[-1] * 3, 0, 0, 1, 1, 0, -1, -1, 0, 1, *[-1] * 5, 0, 0, 1, 1, 1]
    np.testing.assert_array_equal(folds.training, folds.held_out < np.arange(2)[:, None])
    others = Folds(np.zeros(2, dtype=int), np.zeros((2, 2), dtype=bool), forecasts=True)
    joined = joined_folds(others, learners, 0, in_order=False)
    np.testing.assert_array_equal(joined.held_out[2:], folds.held_out)
