from __future__ import annotations

import numpy as np
import pytest

from reproductions.simulation1.data import make_simulation1
from reproductions.simulation1.experiment import EXPERIMENT, SETTINGS, replicate, tabulate
from reproductions.simulation1.variants import HEADS, oracle_labels

# Few trees and linear candidates: the forests take nearly all the time and decide nothing here.
TINY = {
    **SETTINGS,
    "p": [5],
    "snr": [128],
    "paper": {**SETTINGS["paper"], "trees": 3, "penalties": 5},
    "coterie": {"candidates": ["ridge"]},
}


@pytest.fixture(scope="module")
def records():
    return replicate(1, TINY)


def test_a_replication_measures_every_way_in_plain_numbers(records):
    (record,) = records
    assert {f"exact_{variant}" for variant in HEADS} | {f"k_{variant}" for variant in HEADS} | {
        "p",
        "snr",
    } == set(record)
    assert all(isinstance(value, int) for value in record.values())


def test_two_quiet_truths_are_found_in_every_way(records):
    assert all(records[0][f"exact_{variant}"] == 1 for variant in HEADS)
    assert all(records[0][f"k_{variant}"] == 2 for variant in HEADS)


def test_the_same_seed_gives_the_same_records(records):
    assert replicate(1, TINY) == records


def test_the_oracle_assigns_by_the_true_functions():
    quiet, loud = make_simulation1(5, 1e6, random_state=0), make_simulation1(5, 1e-3, random_state=0)
    assert (oracle_labels(quiet) == quiet.truth).all()
    assert (oracle_labels(loud) != loud.truth).any()


def test_the_tables_give_shares_with_standard_errors():
    record = {"p": 5, "snr": 16, **{f"{q}_{variant}": 1 for q in ("exact", "k") for variant in HEADS}}
    records = [record, {**record, "exact_paper": 0}]
    unknown, given, counts = tabulate(records, {**SETTINGS, "p": [5], "snr": [16]})
    assert unknown.rows[0][:5] == ("5", "16", "near 1", "0.50 (0.50)", "1.00 (0.00)")
    assert given.rows[0][2:] == ("1.00 (0.00)",) * 4
    assert all(len(row) == len(table.columns) for table in (unknown, given, counts) for row in table.rows)


def test_the_figures_are_written(records, tmp_path):
    paths = EXPERIMENT.draw(records, TINY, tmp_path)
    assert {path.name for path in paths} == {
        f"{n}.{e}" for n in ("recovery", "spectrum") for e in ("png", "svg")
    }
    assert all(path.stat().st_size > 1000 for path in paths)


def test_quick_settings_change_known_settings_only():
    assert set(EXPERIMENT.quick_settings) <= set(EXPERIMENT.settings)
    assert np.isin(EXPERIMENT.quick_settings["p"], EXPERIMENT.settings["p"]).all()
