from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from coterie.kernels.losses import DenseTiles
from coterie.kernels.similarities import ExchangeSimilarity
from coterie.records import Exchange


def exchange(n: int = 7, isolated: int | None = None) -> Exchange:
    rng = np.random.default_rng(0)
    losses = 1 + rng.uniform(size=(n, n))
    apart = np.zeros(n, dtype=bool)
    if isolated is not None:
        losses[isolated] = np.nan
        apart[isolated] = True
    errors = np.where(apart, 1.0, losses.diagonal())
    return Exchange(np.arange(n), DenseTiles(losses), errors, rng.uniform(1, 2, n), apart)


@pytest.mark.parametrize("block", [1, 3, 100])
def test_the_whole_is_the_similarity(block: int) -> None:
    known = exchange()
    term = np.abs(known.losses - known.errors)
    expected = np.exp(-0.5 * (term + term.T))
    lazy = ExchangeSimilarity(known, 0.5, block)
    assert_allclose(np.asarray(lazy), expected)
    assert lazy.shape == (7, 7)
    vectors = np.random.default_rng(1).normal(size=(7, 2))
    assert_allclose(lazy.times(vectors), expected @ vectors)


def test_a_learner_is_wholly_like_itself_wherever_it_stands() -> None:
    tile = ExchangeSimilarity(exchange(), 3.0).tile(np.array([4, 0, 2]), np.array([2, 4]))
    assert tile[0, 1] == tile[2, 0] == 1
    assert (tile[[0, 1, 1, 2], [0, 0, 1, 1]] < 1).all()


def test_some_learners_are_taken_in_the_order_given() -> None:
    known = exchange()
    lazy = ExchangeSimilarity(known, 0.5)
    order = np.array([5, 1, 3])
    assert_allclose(np.asarray(lazy.take(order)), np.asarray(lazy)[np.ix_(order, order)])


def test_whoever_has_no_finite_losses_is_like_nobody_else() -> None:
    S = np.asarray(ExchangeSimilarity(exchange(isolated=2), 1.0))
    assert S[2].tolist() == S[:, 2].tolist() == [0, 0, 1, 0, 0, 0, 0]
    assert np.isfinite(S).all()


def test_it_cannot_be_an_array_without_a_copy() -> None:
    with pytest.raises(ValueError, match="not stored"):
        np.array(ExchangeSimilarity(exchange(), 1.0), copy=False)
