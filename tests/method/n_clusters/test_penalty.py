from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from coterie.method.n_clusters.penalty import penalty


@pytest.mark.parametrize(
    ("n_rows", "n"), [(None, 100.0), ([50, 60, 70, 60, 60], 60.0), ([1, 1, 1, 1, 1], 3.0)]
)
def test_the_penalty_is_log_n_over_n_for_each_cluster(
    n_rows: Any, n: float, block_losses: Callable[..., Any], evidence_of: Callable[..., Any]
) -> None:
    # Two blocks that do not touch are two points at right angles: nothing is left within them. One cluster
    # has both: 3 * 2 / 5 times their squared distance, which is two.
    known = {"n_rows": None if n_rows is None else np.array(n_rows)}
    curve = penalty(evidence_of(block_losses([3, 2], between=1e6), **known))
    assert curve.rule == "penalty"
    price = np.log(n) / n
    assert_allclose(curve.values[:2], [2.4 / 5 + price, 2 * price], atol=1e-9)
    assert curve.chosen == (2 if price < 2.4 / 5 else 1)


@pytest.mark.parametrize("sizes", [[5, 3], [6, 6]])
def test_two_clean_blocks_are_counted(
    sizes: list[int], block_losses: Callable[..., Any], evidence_of: Callable[..., Any]
) -> None:
    assert (
        penalty(evidence_of(block_losses(sizes, 3.0, jitter=0.2), n_rows=np.full(sum(sizes), 60))).chosen == 2
    )


@pytest.mark.parametrize("sizes", [[1], [2], [1, 1], [7]])
def test_the_curve_is_finite_where_there_is_little_to_see(
    sizes: list[int], block_losses: Callable[..., Any], evidence_of: Callable[..., Any]
) -> None:
    curve = penalty(evidence_of(block_losses(sizes)))
    assert np.isfinite(curve.values).all()
    assert 1 <= curve.chosen <= sum(sizes)
    assert curve.chosen == int(np.argmin(curve.values)) + 1
