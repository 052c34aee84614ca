from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from coterie.collaboration.nested import describing as module
from coterie.collaboration.nested.describing import COUNTS, Describer
from coterie.collaboration.nested.line import Ratios
from coterie.collaboration.nested.sums import FoldSums
from coterie.rows.learners import gather_learners


def moments(levels, slopes, n=10, drop=(), seed=0):
    """Moments of learners with given levels and slopes; the rows of some are dropped."""
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(len(levels)), n)
    X = rng.normal(size=(len(owner), 2))
    y = np.asarray(levels)[owner] + np.asarray(slopes)[owner] * X[:, 0] + 0.1 * rng.normal(size=len(owner))
    learners = gather_learners(X, y, owner, caller="test")
    Z = np.column_stack([X, np.ones(len(y))])
    return FoldSums(Z, y, learners, ~np.isin(owner, drop)[None]).within((0,))


LEVELS, SLOPES = np.r_[-np.ones(4), np.ones(4)] * 3, np.tile([1.0, -1.0], 4)


def test_levels_offsets_spreads_and_directions_are_told():
    describer, line = Describer.of(moments(LEVELS, SLOPES), Ratios(10.0, 10.0))
    context = describer.describe(moments(LEVELS, SLOPES))
    np.testing.assert_allclose(context.levels, LEVELS * 10 / 13, atol=0.6)
    np.testing.assert_array_equal(context.own, line.own)
    assert (np.sign(context.numbers[:, 1]) == np.sign(LEVELS)).all()
    # The first direction is that of the first predictor, and positive there.
    assert np.abs(describer.directions[0, 0]) > 0.99
    assert (np.sign(context.numbers[:, 3]) == np.sign(SLOPES)).all()


def test_a_learner_without_rows_is_the_average_one():
    describer, _ = Describer.of(moments(LEVELS, SLOPES), Ratios(10.0, 10.0))
    context = describer.describe(moments(LEVELS, SLOPES, drop=(2,)))
    assert context.levels[2] == pytest.approx(describer.level)
    assert not context.own[2].any()
    np.testing.assert_allclose(
        context.numbers[2], [describer.level, 0, np.sqrt(describer.variance), 0, 0], atol=1e-12
    )
    # The others are described as before.
    whole = describer.describe(moments(LEVELS, SLOPES))
    np.testing.assert_allclose(np.delete(context.numbers, 2, 0), np.delete(whole.numbers, 2, 0))


def test_the_sign_of_directions_is_stable():
    ratios = Ratios(10.0, 10.0)
    sums = moments(LEVELS, SLOPES)
    mirrored = replace(sums, products=-sums.products)
    one, other = (Describer.of(part, ratios)[0].directions for part in (sums, mirrored))
    np.testing.assert_allclose(one, other, atol=1e-8)
    assert (one[np.arange(2), np.abs(one).argmax(axis=1)] > 0).all()


def test_without_slopes_there_are_no_directions():
    describer, _ = Describer.of(moments(LEVELS, SLOPES), Ratios(10.0, 0.0))
    assert describer.directions.shape == (0, 2)
    assert describer.describe(moments(LEVELS, SLOPES)).numbers.shape == (8, 3)


def test_coteries_join_learners_alike():
    describer, _ = Describer.of(moments(LEVELS, np.ones(8)), Ratios(10.0))
    coteries = describer.describe(moments(LEVELS, np.ones(8))).coteries
    assert coteries.shape == (8, sum(2 * count <= 8 for count in COUNTS))
    assert len(set(coteries[:4, 0])) == len(set(coteries[4:, 0])) == 1
    assert coteries[0, 0] != coteries[7, 0]


def test_few_learners_have_no_coteries():
    describer, _ = Describer.of(moments(LEVELS[:3], SLOPES[:3]), Ratios(1.0))
    assert describer.describe(moments(LEVELS[:3], SLOPES[:3])).coteries.shape == (3, 0)


def test_some_learners_stand_for_many(monkeypatch):
    monkeypatch.setattr(module, "MOST_IN_TREE", 4)
    describer, _ = Describer.of(moments(LEVELS, np.ones(8)), Ratios(10.0))
    coteries = describer.describe(moments(LEVELS, np.ones(8))).coteries
    assert len(set(coteries[:4, 0])) == len(set(coteries[4:, 0])) == 1
    assert coteries[0, 0] != coteries[7, 0]
