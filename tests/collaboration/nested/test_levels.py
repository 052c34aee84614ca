from dataclasses import replace

import numpy as np

from coterie.collaboration.nested.levels import unexplained_levels
from coterie.rows.learners import gather_learners


def learners_with(levels, spread=1.0, noise=0.2, weights=None, seed=0):
    """Learners on one curve, each at a place of its own, with levels beside it."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(len(levels)), 40)
    X = rng.normal(size=(len(groups), 2))
    X[:, 0] += spread * np.linspace(-2, 2, len(levels))[groups]
    y = X[:, 0] ** 2 + np.asarray(levels)[groups] + noise * rng.normal(size=len(groups))
    return gather_learners(X, y, [f"{g:02d}" for g in groups], sample_weight=weights, caller="test")


def test_levels_beside_a_curve_are_found_though_means_follow_from_the_predictors():
    truth = np.where(np.arange(16) % 2, 1.0, -1.0)
    learners = learners_with(truth)
    found = unexplained_levels(learners)
    assert np.corrcoef(found, truth)[0, 1] > 0.99
    assert np.abs(found - truth).max() < 0.4
    # The means would not have told.
    assert np.corrcoef(learners.mean_by_learner(learners.scalar_y), truth)[0, 1] < 0.8


def test_without_levels_there_is_next_to_nothing():
    assert np.abs(unexplained_levels(learners_with(np.zeros(16)))).max() < 0.1


def test_the_unit_does_not_matter_however_large_or_small():
    learners = learners_with(np.where(np.arange(10) % 2, 1.0, -1.0))
    found = unexplained_levels(learners)
    for exponent in (-400, 400):
        other = unexplained_levels(replace(learners, y=np.ldexp(learners.y, exponent)))
        np.testing.assert_array_equal(other, np.ldexp(found, exponent))
    assert not unexplained_levels(replace(learners, y=np.full(learners.y.shape, 3.0))).any()


def test_weights_that_are_alike_do_not_matter():
    truth = np.where(np.arange(10) % 2, 1.0, -1.0)
    learners = learners_with(truth, weights=np.ones(400))
    found = unexplained_levels(learners)
    np.testing.assert_allclose(found, unexplained_levels(learners_with(truth)), rtol=1e-6)
