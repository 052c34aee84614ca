"""One rule says how many rows a learner needs."""

import numpy as np
import pytest

from coterie.rows.threshold import FEWEST_ROWS, enough_rows, rows_needed


@pytest.mark.parametrize(
    ("sizes", "needed"), [([9, 9, 3], 9), ([9, 3, 3], FEWEST_ROWS), ([8, 9], 9), ([1], 4)]
)
def test_2p_plus_5_where_half_of_the_learners_have_it(sizes, needed):
    assert enough_rows(2) == 9
    assert rows_needed(np.array(sizes), 2) == needed


def test_what_was_asked_for_wins():
    assert rows_needed(np.array([3]), 2, 17) == 17
