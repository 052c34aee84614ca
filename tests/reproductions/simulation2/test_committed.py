"""What the committed numbers of Simulation 2 must show."""

from pathlib import Path

import pytest

from reproductions.harness.cells import column
from reproductions.harness.files import read_results
from reproductions.simulation2.tables import p_value

RESULTS = Path(__file__).parents[3] / "reproductions" / "simulation2" / "results.csv"
pytestmark = pytest.mark.skipif(not RESULTS.is_file(), reason="reproductions/simulation2 is not there")
SIZES = (1, 3, 5, 7, 9)


@pytest.fixture(scope="module")
def records():
    return read_results(RESULTS)


@pytest.mark.parametrize("size", SIZES)
def test_the_clusters_are_found_with_every_set(records, size):
    assert len(column(records, "alone", size=size)) >= 100
    assert column(records, "exact_coterie", size=size).mean() >= 0.95


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("variant", "level"), [("paper", 1e-2), ("coterie", 1e-3)])
def test_learning_together_beats_learning_alone_with_every_set(records, size, variant, level):
    with_coterie = column(records, f"together_{variant}", size=size).mean()
    assert with_coterie < column(records, "alone", size=size).mean()
    assert p_value(records, size, variant) < level


def test_boosting_alone_is_all_that_a_set_of_one_can_select(records):
    assert (column(records, "selected_gb", size=1) == 1).all()
