"""The grid's committed results reach what was promised."""

from pathlib import Path

import numpy as np
import pytest

from reproductions.harness.cells import column
from reproductions.harness.files import read_results

RESULTS = Path(__file__).parents[3] / "reproductions" / "grid" / "results.csv"
pytestmark = pytest.mark.skipif(not RESULTS.is_file(), reason="reproductions/grid is not there")


@pytest.fixture(scope="module")
def records():
    return read_results(RESULTS)


def test_every_number_of_attacked_learners_was_run_a_hundred_times(records):
    for d in range(50):
        assert len(column(records, "with_all", d=d)) >= 100


def test_the_curve_of_the_defaults_is_the_oracle_s(records):
    for d in range(50):
        excess = column(records, "sec_coterie", d=d) - column(records, "oracle", d=d)
        assert abs(excess.mean()) <= 0.01, d


def test_the_attacked_are_found_exactly(records):
    for d in range(1, 50):
        assert column(records, "exact_coterie", d=d).all(), d


def test_nobody_is_accused_where_nobody_is_attacked(records):
    assert (column(records, "k_coterie", d=0) == 1).all()


def test_learning_with_all_begins_and_ends_near_the_published_curve(records):
    assert np.mean(column(records, "with_all", d=0)) == pytest.approx(-7.65, abs=0.1)
    assert np.mean(column(records, "with_all", d=49)) == pytest.approx(-5.25, abs=0.1)
