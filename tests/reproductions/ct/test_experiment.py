from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ttest_rel

from reproductions.ct import experiment as ct
from reproductions.ct.data import GroupedTable
from reproductions.ct.experiment import EXPERIMENT, SETTINGS, nearest_clusters, replicate
from reproductions.ct.tables import GENERATED, REAL, data_of, p_value, tabulate
from reproductions.download.transfer import DatasetUnavailable

TINY = {
    **SETTINGS,
    "data": "generated",
    "standin": {"n_patients": 16, "n_rows": 960, "n_features": 16, "random_state": 0},
    "training_learners": 11,
    "forest": {"n_estimators": 5, "max_features": "sqrt", "min_samples_leaf": 5},
}


@pytest.fixture(scope="module")
def records():
    return replicate(0, TINY)


def test_a_replication_is_one_record_that_says_what_its_data_are(records):
    (record,) = records
    assert record["data"] == GENERATED
    assert all(type(value) in (int, float, str) for value in record.values())


def test_clusters_predict_unseen_patients_better_than_one_model_for_all(records):
    assert records[0]["mse_pooled_coterie"] < records[0]["mse_none"]
    assert records[0]["k_coterie"] > 1


def test_the_same_seed_gives_the_same_record(records):
    assert replicate(0, TINY) == records


def test_the_split_keeps_patients_whole_and_halves_the_test_patients():
    slices = ct._generated(**TINY["standin"])
    training, placing, scoring = ct._split(slices, TINY, np.random.default_rng(0))
    assert len(np.unique(training.patients)) == 11
    assert set(placing.patients) == set(scoring.patients)
    assert not set(placing.patients) & set(training.patients)
    assert len(training.y) + len(placing.y) + len(scoring.y) == 960
    for patient in np.unique(placing.patients):
        first, second = (np.sum(part.patients == patient) for part in (placing, scoring))
        assert 0 <= second - first <= 1


def test_slices_can_be_thinned_out():
    slices = ct._generated(**TINY["standin"])
    parts = ct._split(slices, {**TINY, "slices": 10}, np.random.default_rng(0))
    counts = np.bincount(np.concatenate([part.patients for part in parts]))
    assert (counts == 10).all()


def test_newcomers_join_the_cluster_with_the_largest_sum_of_similarities():
    # One near member against three that are a little further away.
    v = np.array([[1.0, 1.5, 1.5, 1.5], [1.0, 9.0, 9.0, 9.0]])
    labels = np.array([0, 1, 1, 1])
    assert nearest_clusters(v, labels, 1.0).tolist() == [1, 0]
    # Similarities that vanish beside one still differ from each other.
    assert nearest_clusters(1e4 * v, labels, 1.0).tolist() == [0, 0]


def test_averages_weigh_the_members_of_the_cluster_by_their_rows():
    table = np.array([[1.0, 1.0], [4.0, 4.0], [9.0, 9.0]])
    averaged = ct._averaged_predictions(table, np.array([1, 2, 5]), np.array([0, 0, 1]), np.array([0, 1]))
    assert averaged.tolist() == [3.0, 9.0]


def test_the_real_file_is_taken_where_it_can_be_had(monkeypatch):
    table = GroupedTable(np.zeros((4, 2)), np.arange(4.0), ("a", "b"), None, np.array([0, 0, 1, 1]))
    ct._real.cache_clear()
    monkeypatch.setattr(ct, "load_ct_slices", lambda: table)
    slices, data = ct._table({**TINY, "data": "auto"})
    assert data == REAL
    assert slices.y.tolist() == [0, 1, 2, 3]
    assert ct._table(TINY)[1] == GENERATED
    ct._real.cache_clear()


def test_the_generated_table_stands_in_and_says_so(monkeypatch, caplog):
    def missing():
        raise DatasetUnavailable("there is no network")

    ct._real.cache_clear()
    monkeypatch.setattr(ct, "load_ct_slices", missing)
    assert ct._table({**TINY, "data": "auto"})[1] == GENERATED
    assert "generated table stands in: there is no network" in caplog.text
    ct._real.cache_clear()


def made(none, pooled, data=GENERATED):
    forms = {
        f"mse_{form}_{variant}": pooled for form in ("pooled", "unpooled") for variant in ("paper", "coterie")
    }
    return {"data": data, "mse_none": none, "k_paper": 3, "k_coterie": 4, **forms}


def test_the_test_is_the_right_sided_paired_one():
    records = [made(10.0 + i, 9.0 + i + 0.1 * i**2) for i in range(4)]
    none = [record["mse_none"] for record in records]
    pooled = [record["mse_pooled_paper"] for record in records]
    expected = ttest_rel(none, pooled, alternative="greater").pvalue
    assert p_value(records, "pooled", "paper") == pytest.approx(expected)
    assert np.isnan(p_value(records[:1], "pooled", "paper"))


def test_the_table_names_its_data_in_title_columns_and_notes():
    (table,) = tabulate([made(10.0, 9.0), made(11.0, 9.5)], TINY)
    assert GENERATED in table.title
    assert all(GENERATED in head for head in table.columns[2:])
    assert "not the CT slices" in table.notes[0]
    assert table.rows[0][:3] == ("clusters, pooled", "94.09 (4.18)", "9.25 (0.25)")
    assert table.rows[3][1:] == ("2 (6 times), 3 (94 times)", "3 (2 times)", "4 (2 times)")
    (real,) = tabulate([made(10.0, 9.0, REAL), made(11.0, 9.5, REAL)], TINY)
    assert GENERATED not in real.title
    assert len(real.notes) == 1


def test_records_of_different_data_are_not_mixed():
    with pytest.raises(ValueError, match="--force"):
        data_of([made(1.0, 1.0), made(1.0, 1.0, REAL)])


def test_the_figure_names_its_data(records, tmp_path):
    paths = EXPERIMENT.draw(records, TINY, tmp_path)
    assert [path.name for path in paths] == ["errors.png", "errors.svg"]
    assert GENERATED in paths[1].read_text()


def test_earlier_replications_on_other_data_forbid_going_on():
    settings = {**ct.SETTINGS, **ct.QUICK_SETTINGS, "data": "generated"}
    ct.check_earlier([{"data": GENERATED}], settings)
    with pytest.raises(ValueError, match="ran on other data"):
        ct.check_earlier([{"data": REAL}], settings)
