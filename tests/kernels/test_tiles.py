from typing import Any

import numpy as np
import pytest

from coterie.kernels.affine import AffineLosses
from coterie.kernels.tiles import DenseTiles
from coterie.rows.learners import gather_learners


def affine() -> AffineLosses:
    rng = np.random.default_rng(0)
    X, owner = rng.normal(size=(30, 2)), np.repeat(np.arange(5), 6)
    learners = gather_learners(X, rng.normal(size=30), owner, caller="test")
    return AffineLosses(rng.normal(size=(5, 3)), learners)


def tiles() -> list[tuple[Any, Any]]:
    """Both kinds, each with all of its losses."""
    everybody = np.arange(5)
    whole = affine().tile(everybody, everybody)
    return [(DenseTiles(whole), whole), (affine(), whole)]


@pytest.mark.parametrize(("source", "whole"), tiles(), ids=["dense", "affine"])
@pytest.mark.parametrize(
    ("models", "learners"),
    [
        (slice(0, 5), slice(0, 5)),
        (slice(1, 3), slice(2, 5)),
        (slice(4, 5), slice(0, 1)),
        (slice(0, 0), slice(0, 2)),
    ],
)
def test_a_tile_is_a_piece_of_the_whole(source: Any, whole: Any, models: slice, learners: slice) -> None:
    tile = source.tile(models, learners)
    assert tile.shape == whole[models, learners].shape
    assert np.allclose(tile, whole[models, learners], rtol=1e-12)


@pytest.mark.parametrize(("source", "whole"), tiles(), ids=["dense", "affine"])
def test_learners_are_taken_and_taken_again(source: Any, whole: Any) -> None:
    assert source.n_learners == 5
    some = source.take(np.array([3, 0, 4]))
    assert some.n_learners == 3
    assert np.allclose(some.tile(slice(0, 3), slice(0, 3)), whole[np.ix_([3, 0, 4], [3, 0, 4])])
    fewer = some.take(np.array([2, 0]))
    assert fewer.n_learners == 2
    assert np.allclose(fewer.tile(slice(0, 2), slice(0, 2)), whole[np.ix_([4, 3], [4, 3])])
    assert np.allclose(fewer.tile(slice(0, 1), slice(1, 2)), whole[4, 3])
