"""The grid under attack, on a small linear table."""

import numpy as np
import pytest

from coterie import cross_evaluate, select_models
from coterie.records import Partition
from reproductions.grid import experiment as grid
from reproductions.grid.splitting import split_into_learners
from reproductions.grid.tables import draw, tabulate


def partition(labels):
    labels = np.array(labels)
    n = len(labels)
    return Partition(np.arange(n), labels, np.eye(n), np.ones(1), np.ones((n, 1)), 1.0, "given", {}, True, ())


def test_the_attacked_are_found_and_the_curve_is_the_oracle_s(small_grid):
    records = grid.replicate(3, small_grid)
    assert [record["d"] for record in records] == [0, 1, 4, 7]
    for record in records:
        assert record["exact_coterie"]
        assert record["sec_coterie"] == record["oracle"]
        assert record["k_coterie"] == (1 if record["d"] == 0 else 2)
    assert records[0]["with_all"] == records[0]["oracle"]
    assert records[-1]["oracle"] == records[-1]["alone"]
    assert np.all(np.diff([record["with_all"] for record in records]) > 0)


def test_the_same_seed_gives_the_same_records(small_grid):
    assert grid.replicate(3, small_grid) == grid.replicate(3, small_grid)


def test_select_and_exchange_of_either_response_serve_every_number_of_attacked(small_grid):
    table = grid.load_grid_stability()
    split = split_into_learners(table.X, table.y, 8, 40, random_state=0)
    how = {"candidates": ["lr", "rf"], "random_state": 0}
    attacked, intact = (select_models(split.X, y, split.groups, **how) for y in (-split.y, split.y))
    both = grid._side_by_side(attacked, intact)
    positions = np.r_[0:3, 8 + 3 : 8 + 8]
    joined, exchange = both.take(positions), grid._exchanged(both, split).take(positions)
    y = grid._negated(split, 3 * 40)
    direct = select_models(split.X, y, split.groups, **how)
    met = cross_evaluate(direct, split.X, y, split.groups)
    np.testing.assert_allclose(exchange.losses, met.losses)
    np.testing.assert_allclose(exchange.dissimilarity, met.dissimilarity, atol=1e-12)
    assert joined.learner_ids.tolist()[3:] == direct.learner_ids.tolist()[3:]
    assert joined.names == direct.names
    np.testing.assert_allclose(joined.errors, direct.errors)
    np.testing.assert_allclose(joined.noise, direct.noise)
    np.testing.assert_allclose(joined.clips, direct.clips)
    for ours, theirs in zip(joined.models, direct.models, strict=True):
        np.testing.assert_allclose(ours.predict(split.X_rest), theirs.predict(split.X_rest))


@pytest.mark.parametrize(
    ("labels", "n_attacked", "precision", "recall", "exact"),
    [
        ([0, 0, 0, 0], 0, 1.0, 1.0, True),
        ([1, 0, 0, 0], 0, 0.0, 1.0, False),
        ([1, 1, 0, 0], 2, 1.0, 1.0, True),
        ([1, 2, 0, 0], 2, 1.0, 1.0, True),
        ([1, 0, 0, 0], 2, 1.0, 0.5, False),
        ([1, 1, 1, 0], 2, 2 / 3, 1.0, False),
        ([0, 0, 0, 0], 2, 1.0, 0.0, False),
    ],
)
def test_those_outside_the_last_one_s_cluster_are_accused(labels, n_attacked, precision, recall, exact):
    found = grid._found(partition(labels), n_attacked, "x")
    assert found["precision_x"] == pytest.approx(precision)
    assert found["recall_x"] == recall
    assert found["exact_x"] is exact


def test_tables_and_figures_of_a_small_run(small_grid, tmp_path):
    records = [{"replication": 0, **record} for record in grid.replicate(3, small_grid)]
    errors, *found = tabulate(records, small_grid)
    assert [row[0] for row in errors.rows] == ["0", "1"]
    assert errors.rows[0][1] == "-7.65"
    assert found[1].rows == (
        ("0", "", "100 %", "1.000", "1.000", "1.00"),
        ("1", "all", "100 %", "1.000", "1.000", "2.00"),
    )
    paths = draw(records, small_grid, tmp_path)
    assert [path.name for path in paths] == ["attack.png", "attack.svg", "found.png", "found.svg"]
    assert all(path.stat().st_size > 1000 for path in paths)
