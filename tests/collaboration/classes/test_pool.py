"""Pools of logarithms: who is right gets the weight, few rows leave weights equal, folds are not seen."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from coterie.collaboration.classes.pool import (
    cross_fitted_pool,
    from_logarithms,
    logarithms,
    pool_weights,
)


def answers(n: int, n_classes: int = 2, seed: int = 0):
    """Return probabilities (3, n, K) by the truth, by half of its log-odds and by none, and the classes."""
    rng = np.random.default_rng(seed)
    scores = 2 * rng.normal(size=(n, n_classes))
    probabilities = np.array([from_logarithms(share * scores) for share in (1.0, 0.5, 0.0)])
    codes = (rng.random(n)[:, None] > np.cumsum(probabilities[0], axis=1)[:, :-1]).sum(axis=1)
    return probabilities, codes


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_truth_gets_the_weight_if_rows_are_many_and_equal_ones_if_few(n_classes: int) -> None:
    probabilities, codes = answers(20_000, n_classes)
    logs = logarithms(probabilities)
    found = pool_weights(logs, codes, np.ones(20_000))
    assert_allclose(found.sum(), 1)
    assert found[0] > 0.8
    few = pool_weights(logs[:, :10], codes[:10], np.ones(10))
    assert_allclose(few, 1 / 3, atol=0.1)


def test_rows_count_by_their_weights() -> None:
    probabilities, codes = answers(400)
    logs = logarithms(probabilities)
    twice = pool_weights(np.concatenate([logs, logs], axis=1), np.r_[codes, codes], np.ones(800))
    assert_allclose(pool_weights(logs, codes, np.full(400, 2.0)), twice, atol=1e-4)


def test_answers_without_a_fold_do_not_see_it_and_who_is_silent_changes_nothing() -> None:
    probabilities, codes = answers(600)
    probabilities[2, :50] = np.nan
    folds = np.arange(600) % 3
    folds[-5:] = -1
    weights, found = cross_fitted_pool(probabilities, codes, np.ones(600), folds, 3)
    assert_allclose(weights.sum(), 1)
    assert np.isnan(found[-5:]).all()
    assert_allclose(found[:-5].sum(axis=1), 1)
    turned = np.where(folds == 0, 1 - codes, codes)
    assert_allclose(
        cross_fitted_pool(probabilities, turned, np.ones(600), folds, 3)[1][folds == 0], found[folds == 0]
    )
