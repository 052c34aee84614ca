from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ttest_ind

from reproductions.simulation2.experiment import EXPERIMENT, SETTINGS, Boosting, candidate_pool, replicate
from reproductions.simulation2.tables import PUBLISHED, p_value, tabulate

# Nearly all predictors count and boosting is short: the two functions are told apart in a second.
TINY = {
    **SETTINGS,
    "rows": 60,
    "p": 5,
    "test_rows": 20,
    "sets": [["gb"], ["knn", "gb", "ridge"]],
    "boosting": {**SETTINGS["boosting"], "max_iter": 15, "max_bins": 8},
}


@pytest.fixture(scope="module")
def records():
    return replicate(0, TINY)


def test_a_replication_is_a_record_per_set_in_plain_numbers(records):
    assert [record["size"] for record in records] == [1, 3]
    assert all(type(value) in (int, float) for record in records for value in record.values())


def test_two_functions_are_told_apart_with_either_set(records):
    assert all(record["exact_coterie"] == 1 and record["k_coterie"] == 2 for record in records)


def test_learning_together_helps_the_first_learner(records):
    assert all(record["together_coterie"] < record["alone"] for record in records)


def test_a_set_of_one_is_selected_by_everybody(records):
    assert records[0]["selected_gb"] == 1
    assert records[1]["selected_gb"] <= 1


def test_the_same_seed_gives_the_same_records_and_a_set_does_not_hang_on_the_others(records):
    assert replicate(0, {**TINY, "sets": TINY["sets"][1:]}) == records[1:]


def test_the_pool_holds_every_candidate_of_the_papers_sets():
    assert {name for names in SETTINGS["sets"] for name in names} == set(candidate_pool(SETTINGS))
    assert [len(names) for names in SETTINGS["sets"]] == list(PUBLISHED)


def test_boosting_takes_no_weights():
    generator = np.random.default_rng(0)
    X, y = generator.normal(size=(30, 2)), generator.normal(size=30)
    with pytest.raises(TypeError, match="sample_weight"):
        Boosting().fit(X, y, sample_weight=np.ones(30))


def made(alone, with_coterie):
    shares = {f"selected_{name}": 1 / 3 for name in ("gb", "rf", "lasso")}
    found = {"exact_paper": 1, "exact_coterie": 1, "k_paper": 2, "k_coterie": 2}
    return {
        "size": 3,
        **shares,
        **found,
        "alone": alone,
        "together_paper": with_coterie,
        "together_coterie": alone,
    }


def test_the_test_is_the_right_sided_one_of_two_samples():
    records = [made(2.0 + 0.1 * i, 1.0 + 0.2 * i) for i in range(5)]
    alone = [record["alone"] for record in records]
    with_coterie = [record["together_paper"] for record in records]
    expected = ttest_ind(alone, with_coterie, alternative="greater").pvalue
    assert p_value(records, 3, "paper") == pytest.approx(expected)
    assert expected < 0.05
    assert p_value(records, 3, "coterie") == pytest.approx(0.5)
    assert np.isnan(p_value(records[:1], 3, "paper"))


def test_the_tables_put_the_published_beside_ours():
    tables = tabulate([made(2.0, 1.0), made(2.2, 1.1)], {**SETTINGS, "sets": [["rf", "gb", "lasso"]]})
    clusters, selected, errors = tables
    assert clusters.rows[0][:3] == ("3", "0.74", "1.00 (0.00)")
    assert selected.rows[0] == ("3", "(0.56, 0.11, 0.33)", "(0.33, 0.33, 0.33)")
    assert errors.rows[0][1:4] == ("0.1310 (0.0042)", "2.1000 (0.1000)", "0.0950 (0.0053)")
    assert all(len(row) == len(table.columns) for table in tables for row in table.rows)


def test_the_figure_is_written(records, tmp_path):
    paths = EXPERIMENT.draw(records, TINY, tmp_path)
    assert [path.name for path in paths] == ["candidates.png", "candidates.svg"]
    assert all(path.stat().st_size > 1000 for path in paths)
