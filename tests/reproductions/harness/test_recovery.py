from __future__ import annotations

import numpy as np
import pytest

from reproductions.harness.recovery import is_exact


@pytest.mark.parametrize(
    ("labels", "truth", "exact"),
    [
        ([0, 0, 1, 1], [0, 0, 1, 1], True),
        ([1, 1, 0, 0], [0, 0, 1, 1], True),
        ([0, 0, 0, 1], [0, 0, 1, 1], False),
        ([0, 0, 1, 2], [0, 0, 1, 1], False),
        ([0, 0, 0, 0], [0, 0, 1, 1], False),
        ([0, 1, 2, 2], [0, 0, 1, 1], False),
    ],
)
def test_exact_is_the_same_partition_under_any_names(labels, truth, exact):
    assert is_exact(np.array(labels), np.array(truth)) is exact
