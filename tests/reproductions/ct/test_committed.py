"""What the committed numbers of the CT slices must show."""

from pathlib import Path

import pytest

from reproductions.ct.tables import FORMS, GENERATED, REAL, VARIANTS, data_of, p_value
from reproductions.harness.cells import column
from reproductions.harness.files import read_results

FOLDER = Path(__file__).parents[3] / "reproductions" / "ct"
RESULTS = FOLDER / "results.csv"
pytestmark = pytest.mark.skipif(not RESULTS.is_file(), reason="reproductions/ct is not there")


@pytest.fixture(scope="module")
def records():
    return read_results(RESULTS)


def test_at_least_ten_replications_were_run(records):
    assert len(records) >= 10


def test_every_output_says_which_data_it_is_of(records):
    data = data_of(records)
    assert data in (REAL, GENERATED)
    assert data in (FOLDER / "README.md").read_text()
    assert data in (FOLDER / "errors.svg").read_text()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_clusters_beat_one_model_for_all(records, form, variant):
    clustered, without = column(records, f"mse_{form}_{variant}"), column(records, "mse_none")
    assert clustered.mean() < without.mean()
    assert p_value(records, form, variant) < 1e-3
