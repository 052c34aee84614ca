from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from coterie.method.n_clusters.eigengap import eigengap


def test_the_drops_are_those_of_the_similarity_s_eigenvalues(
    block_losses: Callable[..., Any], evidence_of: Callable[..., Any]
) -> None:
    # Blocks of ones of sizes three and two have the eigenvalues 3, 2 and zeros.
    curve = eigengap(evidence_of(block_losses([3, 2], between=1e6)))
    assert curve.rule == "eigengap"
    assert curve.n_clusters.tolist() == [1, 2, 3, 4, 5]
    assert_allclose(curve.values, [1, 2, 0, 0, 0], atol=1e-9)
    assert curve.chosen == 2
    assert curve.spread is None


@pytest.mark.parametrize("sizes", [[1], [6], [3, 3], [4, 4, 4], [5, 4, 3], [2, 2, 2, 2]])
def test_clean_blocks_are_counted(
    sizes: list[int], block_losses: Callable[..., Any], evidence_of: Callable[..., Any]
) -> None:
    assert eigengap(evidence_of(block_losses(sizes))).chosen == len(sizes)


def test_more_clusters_than_allowed_are_not_looked_at(
    block_losses: Callable[..., Any], evidence_of: Callable[..., Any]
) -> None:
    curve = eigengap(evidence_of(block_losses([4, 4, 4]), most=2))
    assert curve.n_clusters.tolist() == [1, 2]
    assert curve.chosen <= 2


def test_the_last_drop_is_to_zero(block_losses: Callable[..., Any], evidence_of: Callable[..., Any]) -> None:
    # As many clusters as learners: everybody for himself has eigenvalues of one, then nothing.
    curve = eigengap(evidence_of(block_losses([1, 1, 1], between=1e6)))
    assert_allclose(curve.values, [0, 0, 1], atol=1e-9)
    assert curve.chosen == 3
    assert np.isfinite(curve.values).all()
