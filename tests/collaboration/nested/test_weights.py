import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from coterie.collaboration.nested.weights import RIDGE, SHRINKAGES, learn_weights, simplex_weights


def grams_of(residuals: np.ndarray, n_folds: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Gram matrices of residuals of shape (L, n, C), the rows dealt out to the folds in turn."""
    n_learners, _, n_columns = residuals.shape
    grams = np.empty((n_learners, n_folds, n_columns, n_columns))
    counts = np.empty((n_learners, n_folds))
    for fold in range(n_folds):
        rows = residuals[:, fold::n_folds]
        grams[:, fold] = np.einsum("lnc,lnd->lcd", rows, rows)
        counts[:, fold] = rows.shape[1]
    return grams, counts


def test_independent_errors_are_weighed_by_precision():
    weights = simplex_weights(np.diag([1.0, 4.0]))
    np.testing.assert_allclose(weights, [0.8, 0.2], atol=0.3 * RIDGE)
    # The ridge adds a share of the mean error to both.
    precisions = 1 / (np.array([1.0, 4.0]) + 2.5 * RIDGE)
    np.testing.assert_allclose(weights, precisions / precisions.sum(), atol=1e-4)


def test_who_adds_nothing_gets_nothing():
    # The second is the first with more noise of the same sign.
    assert simplex_weights(np.array([[1.0, 1.5], [1.5, 9.0]])).tolist() == pytest.approx([1, 0])


def test_twins_share_a_weight_and_no_error_at_all_is_no_failure():
    np.testing.assert_allclose(simplex_weights(np.ones((2, 2))), [0.5, 0.5], atol=1e-6)
    np.testing.assert_allclose(simplex_weights(np.zeros((3, 3))), 1 / 3)


@given(arrays(float, (7, 4), elements=st.floats(-10, 10)))
def test_weights_are_not_negative_sum_to_one_and_lose_no_more_than_any_single_predictor(residuals):
    gram = residuals.T @ residuals
    weights = simplex_weights(gram)
    assert (weights >= 0).all()
    assert weights.sum() == pytest.approx(1)
    # But for what the ridge charges a single predictor: its share of the mean error.
    tolerance = (RIDGE / 4 + 1e-4) * np.trace(gram) + 1e-12
    assert weights @ gram @ weights <= gram.diagonal().min() * (1 + 1e-4) + tolerance


def test_a_corner_on_the_way_is_not_taken_for_the_end():
    rng = np.random.default_rng(0)
    for _ in range(100):
        size = int(rng.integers(2, 9))
        shared = rng.normal(size=(60, 1)) * rng.uniform(0, 3)
        residuals = shared + rng.normal(size=(60, size)) * rng.uniform(0.2, 5, size)
        gram = residuals.T @ residuals
        weights = simplex_weights(gram)
        slopes = (gram / (np.trace(gram) / size) + RIDGE * np.eye(size)) @ weights
        # At the minimum no slope is below that of the predictors in use.
        assert slopes.min() >= weights @ slopes - 1e-3


def test_each_problem_is_solved_as_if_it_were_the_only_one():
    residuals = np.random.default_rng(0).normal(size=(20, 30, 4)) * [1, 2, 3, 1.5]
    grams = np.einsum("lnc,lnd->lcd", residuals, residuals)
    one_by_one = [simplex_weights(gram) for gram in grams]
    np.testing.assert_allclose(simplex_weights(grams), one_by_one, rtol=1e-9, atol=1e-12)


def test_learners_alike_get_the_same_weights():
    rng = np.random.default_rng(0)
    residuals = rng.normal(size=(20, 12, 3)) * [1, 2, 3]
    learnt = learn_weights(*grams_of(residuals))
    assert learnt.shrinkage >= 30
    assert np.abs(learnt.personal - learnt.common).max() < 0.15
    assert learnt.common[0] > learnt.common[1] > learnt.common[2]


def test_learners_who_differ_get_weights_of_their_own():
    rng = np.random.default_rng(0)
    residuals = rng.normal(size=(20, 60, 2))
    residuals[:10, :, 0] *= 0.05
    residuals[10:, :, 1] *= 0.05
    learnt = learn_weights(*grams_of(residuals))
    assert learnt.shrinkage == min(SHRINKAGES)
    assert (learnt.personal[:10, 0] > 0.8).all()
    assert (learnt.personal[10:, 1] > 0.8).all()
    np.testing.assert_allclose(learnt.common, 0.5, atol=0.1)


def test_a_learner_who_is_predicted_well_is_heard_like_any_other():
    rng = np.random.default_rng(0)
    residuals = rng.normal(size=(20, 60, 2))
    residuals[:10, :, 0] *= 0.3
    residuals[10:, :, 1] *= 0.3
    loud = learn_weights(*grams_of(residuals))
    residuals[0] *= 0.01
    quiet = learn_weights(*grams_of(residuals))
    assert quiet.shrinkage == loud.shrinkage == min(SHRINKAGES)
    np.testing.assert_allclose(quiet.personal[0], loud.personal[0], atol=0.05)
    assert quiet.personal[0, 0] > 0.75


def test_weights_of_a_fold_do_not_know_its_rows():
    rng = np.random.default_rng(1)
    residuals = rng.normal(size=(5, 20, 2))
    spoilt = residuals.copy()
    spoilt[:, 0::2] *= [1, 50]
    before, after = learn_weights(*grams_of(residuals)), learn_weights(*grams_of(spoilt))
    # The shrinkage is chosen on all folds; with the same one the first fold's weights are the same.
    assert before.shrinkage == after.shrinkage
    # But for rounding: a fold is left out by a difference of sums.
    np.testing.assert_allclose(before.held_out[0], after.held_out[0], rtol=1e-9)
    assert (np.abs(before.held_out[1] - after.held_out[1]).max(axis=1) > 0.05).all()


def test_one_for_whom_nothing_shared_is_any_good_does_not_speak_for_the_others():
    rng = np.random.default_rng(0)
    residuals = rng.normal(size=(10, 40, 2)) * [0.3, 0.1]
    residuals[0] *= [1, 100]
    learnt = learn_weights(*grams_of(residuals))
    assert learnt.common[1] > 0.8
    assert learnt.personal[0, 0] > 0.99
    # Where they are many, they are heard.
    assert learn_weights(*grams_of(residuals[:3])).common[0] > 0.9


def test_a_learner_without_rows_in_any_fold_has_the_common_weights():
    rng = np.random.default_rng(0)
    grams, counts = grams_of(rng.normal(size=(4, 40, 2)) * [2, 1])
    grams[0], counts[0] = 0, 0
    learnt = learn_weights(grams, counts)
    np.testing.assert_allclose(learnt.personal[0], learnt.common, atol=1e-6)
