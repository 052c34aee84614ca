"""Fairness without the sensitive variable, on few learners."""

from dataclasses import replace

import numpy as np
import pytest

from reproductions.fairness import experiment as fairness
from reproductions.fairness.data import make_fairness
from reproductions.fairness.tables import PUBLISHED, draw, tabulate

SMALL = {
    **fairness.SETTINGS,
    "b": [0.01, 6],
    "learners": 24,
    "training_learners": 16,
    "rows": 30,
    "candidates": ["lr"],
}


@pytest.fixture(scope="module")
def records():
    return [{"replication": 0, **record} for record in fairness.replicate(1, SMALL)]


def test_nothing_to_find_gives_one_cluster_and_the_model_for_all(records):
    small = records[0]
    assert small["k_coterie"] == 1
    assert small["mse_coterie"] == pytest.approx(small["mse_fairness"])


def test_clusters_win_back_most_of_what_the_missing_variable_costs(records):
    large = records[1]
    assert large["mse_coterie"] < 0.25 * large["mse_fairness"]
    assert large["mse_oracle"] < 1.5 < large["mse_coterie"]


def test_the_same_seed_gives_the_same_records():
    assert fairness.replicate(5, SMALL) == fairness.replicate(5, SMALL)


def test_test_learners_are_placed_and_scored_on_different_rows():
    drawn = make_fairness(1.0, 24, 30, random_state=0)
    training, placing, scoring = fairness._split(drawn, SMALL)
    assert len(np.unique(training.groups)) == 16
    assert len(training.y) == 16 * 30
    assert len(placing.y) == len(scoring.y) == 8 * 15
    assert set(placing.groups) == set(scoring.groups)
    assert not set(placing.groups) & set(training.groups)
    assert not set(placing.y.tolist()) & set(scoring.y.tolist())


def test_only_the_oracle_sees_the_sensitive_variable(monkeypatch):
    """Other sensitive values than those that made the rows change the oracle's error and nothing else."""
    settings = {**SMALL, "b": [3]}
    honest = fairness.replicate(2, settings)[0]

    def altered(*args, **kwargs):
        drawn = make_fairness(*args, **kwargs)
        return replace(drawn, sensitive=drawn.sensitive[::-1].copy())

    monkeypatch.setattr(fairness, "make_fairness", altered)
    blind = fairness.replicate(2, settings)[0]
    assert [name for name in honest if honest[name] != blind[name]] == ["mse_oracle"]


def test_tables_put_the_published_numbers_first(records):
    ratios, errors, counts, others = tabulate(records, SMALL)
    assert [row[1] for row in ratios.rows] == ["1.00", "0.24"]
    assert errors.rows[1][1] == "12.030 (0.600)"
    assert counts.rows[1][1] == "2.81 (0.39)"
    assert others.rows[0][1] == "1.030 (0.005)"


def test_every_weight_has_its_published_numbers():
    assert list(PUBLISHED) == fairness.SETTINGS["b"]


def test_the_figure_is_drawn_from_a_single_replication(records, tmp_path):
    assert [path.name for path in draw(records, SMALL, tmp_path)] == ["ratio.png", "ratio.svg"]
