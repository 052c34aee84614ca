from dataclasses import replace

import numpy as np

from coterie.collaboration.nested.effects import MOST_SLOPES
from coterie.collaboration.nested.linear import Moments
from coterie.collaboration.nested.traits import PSEUDO_ROWS, traits_of, unexplained_levels, with_traits
from coterie.kernels.affine import Frame
from coterie.rows.learners import gather_learners


def described(X, y, owner, **options):
    learners = gather_learners(X, y, owner, caller="test", **options)
    return traits_of(learners, Moments.of(learners, Frame(learners)).centred())


def test_a_learner_is_its_level_its_spread_and_how_its_slopes_depart():
    rng = np.random.default_rng(0)
    owner = np.repeat(np.arange(6), 200)
    X = rng.normal(size=(1200, 2))
    own = np.array([2.0, -2.0, 2.0, -2.0, 0.0, 0.0])
    y = 5.0 * owner + 3.0 * X[:, 1] + own[owner] * X[:, 0]
    traits = described(X, y, owner)
    assert traits.shape == (6, 4)
    # In units of the pooled spread of y, levels from their mean.
    unit = np.sqrt(np.mean(9 + own**2))
    np.testing.assert_allclose(traits[:, 0], (5.0 * np.arange(6) - 12.5) / unit, atol=0.2)
    np.testing.assert_allclose(traits[:, 1], np.sqrt(9 + own**2) / unit, rtol=0.15)
    # Less everybody's slope, and drawn towards it as pseudo-rows do.
    np.testing.assert_allclose(traits[:, 2], own / unit * 200 / (200 + PSEUDO_ROWS), atol=0.06)
    np.testing.assert_allclose(traits[:, 3], 0, atol=0.06)


def test_units_do_not_matter_and_weights_do():
    rng = np.random.default_rng(0)
    owner = np.repeat(np.arange(5), 30)
    X = rng.normal(size=(150, 2))
    y = owner + np.where(owner % 2, 1.0, -1.0) * X[:, 0] + 0.1 * rng.normal(size=150)
    traits = described(X, y, owner)
    for factor in (1e-9, 1e9):
        np.testing.assert_allclose(described(X, factor * y, owner), traits, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(described(factor * X, y, owner), traits, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(described(X, y + 1e6, owner), traits, rtol=1e-4, atol=1e-6)
    wild = np.arange(150) % 3 == 0
    weights = np.where(wild, 1e-9, 1.0)
    without = described(X[~wild], y[~wild], owner[~wild])
    with_wild = described(X, np.where(wild, 50 * X[:, 1], y), owner, sample_weight=weights)
    # Pseudo-rows count against rows, of which there are a third more in weights of mean one.
    np.testing.assert_allclose(with_wild, without, atol=0.15)


def test_few_rows_say_little_of_slopes():
    rng = np.random.default_rng(0)
    owner = np.r_[np.zeros(3, int), np.repeat([1, 2, 3], 300)]
    X = rng.normal(size=(903, 1))
    traits = described(X, np.where(owner % 2, 1.0, -1.0) * X[:, 0], owner)
    assert abs(traits[0, 2]) < 0.5 * abs(traits[2, 2])


def test_predictors_that_do_not_vary_and_too_many_of_them():
    rng = np.random.default_rng(0)
    owner = np.repeat(np.arange(4), 10)
    X = rng.normal(size=(40, 3))
    X[:, 1] = 7.0
    X[owner == 2, 2] = 1.0
    assert np.isfinite(described(X, rng.normal(size=40), owner)).all()
    wide = rng.normal(size=(40, MOST_SLOPES + 1))
    assert described(wide, rng.normal(size=40), owner).shape == (4, 2)


def test_rows_get_the_traits_of_their_learner():
    rows = with_traits(np.zeros((3, 1)), np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1, 0, 1]))
    np.testing.assert_array_equal(rows, [[0, 3, 4], [0, 1, 2], [0, 3, 4]])


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
