"""Mixtures are weighed by log loss, and a learner's own rows move its weights."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from coterie.collaboration.classes.weights import learn_mixtures, mixture_weights


def test_common_weights_make_the_rows_most_probable() -> None:
    rng = np.random.default_rng(0)
    chances, counts = rng.uniform(0.05, 1, size=(400, 3)), rng.uniform(0.5, 2, size=400)

    def lost(free):
        weights = np.exp(np.append(free, 0.0))
        return -counts @ np.log(chances @ (weights / weights.sum()))

    best = np.exp(np.append(minimize(lost, np.zeros(2)).x, 0.0))
    assert_allclose(mixture_weights(chances, counts), best / best.sum(), atol=0.02)


def test_learners_who_differ_have_weights_of_their_own_and_others_do_not() -> None:
    rng = np.random.default_rng(1)
    owner, folds = np.repeat(np.arange(20), 60), np.tile(np.arange(4), 300)
    good, bad = rng.uniform(0.6, 1, 1200), rng.uniform(0.01, 0.4, 1200)
    odd = owner % 2 == 0
    ones = np.ones(1200)
    differ = np.where(odd[:, None], np.column_stack([good, bad]), np.column_stack([bad, good]))
    found = learn_mixtures(differ, ones, ones, owner, folds, 4, 20)
    assert found.shrinkage == 10
    assert found.personal[0, 0] > 0.8
    assert found.personal[1, 1] > 0.8
    alike = rng.uniform(0.3, 0.9, size=(1200, 2))
    same = learn_mixtures(alike, ones, ones, owner, folds, 4, 20)
    assert np.isinf(same.shrinkage)
    assert_allclose(same.personal, np.tile(same.common, (20, 1)))


def test_weights_without_a_fold_have_not_seen_it() -> None:
    rng = np.random.default_rng(2)
    owner, folds = np.repeat(np.arange(5), 40), np.tile(np.arange(4), 50)
    chances, ones = rng.uniform(0.1, 0.9, size=(200, 3)), np.ones(200)
    first = learn_mixtures(chances, ones, ones, owner, folds, 4, 5)
    changed = np.where((folds == 2)[:, None], rng.uniform(0.1, 0.9, size=(200, 3)), chances)
    second = learn_mixtures(changed, ones, ones, owner, folds, 4, 5)
    assert_allclose(first.common_without[2], second.common_without[2])
    assert not np.allclose(first.common_without[1], second.common_without[1])
