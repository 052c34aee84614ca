"""The committed numbers come back from their seed, a cell of one replication for each experiment."""

import os
from pathlib import Path

import pytest
import sklearn

from reproductions.harness import find_experiment
from reproductions.harness.files import read_results
from reproductions.harness.runner import replication_seed

FOLDER = Path(__file__).parents[2] / "reproductions"
# Forests, lassos and boosting draw and stop alike only within a release of scikit-learn.
MADE_WITH = "1.9"
CELLS = [
    ("fairness", 41, {"b": [0.01, 0.5]}),
    ("simulation1", 7, {"p": [20], "snr": [8, 16]}),
    ("simulation1", 93, {"p": [5], "snr": [1]}),
    ("simulation2", 60, {"sets": [["gb"]]}),
    # Here most learners choose lasso, and those who choose boosting would be set apart.
    ("simulation2", 6, {"sets": [["rf", "gb", "lasso"]]}),
    ("grid", 19, {"attacked": [0, 1, 49]}),
]
# What names a cell within a replication.
KEYS = ("b", "p", "snr", "size", "d")


def without_data(reason):
    """Skip, or fail where COTERIE_REQUIRE_ALL=1."""
    pytest.fail(reason) if os.environ.get("COTERIE_REQUIRE_ALL") == "1" else pytest.skip(reason)


def check(name, replication, changes):
    if not sklearn.__version__.startswith(MADE_WITH):
        pytest.skip(f"the numbers were made with scikit-learn {MADE_WITH}, this is {sklearn.__version__}")
    results = FOLDER / name / "results.csv"
    if not results.is_file():
        pytest.skip(f"reproductions/{name} is not there")
    experiment = find_experiment(name)
    if experiment.check_data is not None:
        try:
            experiment.check_data()
        except OSError as error:
            without_data(str(error))

    def cell(record):
        return tuple(record[key] for key in KEYS if key in record)

    committed = {
        cell(record): record for record in read_results(results) if record["replication"] == replication
    }
    again = experiment.replicate(replication_seed(0, replication), {**experiment.settings, **changes})
    assert again
    for record in again:
        kept = committed[cell(record)]
        assert dict(record) == pytest.approx({key: kept[key] for key in record}, rel=1e-6)


@pytest.mark.parametrize(("name", "replication", "changes"), CELLS)
def test_a_cell_of_a_replication_is_the_committed_one(name, replication, changes):
    check(name, replication, changes)


@pytest.mark.slow
def test_a_replication_of_the_ct_slices_is_the_committed_one():
    check("ct", 3, {})
