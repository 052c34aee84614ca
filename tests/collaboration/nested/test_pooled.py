"""The dictionary: what is predicted out of fold knows nothing of the row."""

from dataclasses import replace

import numpy as np
import pytest

from coterie.collaboration.nested import pooled
from coterie.collaboration.nested.folds import random_folds
from coterie.collaboration.nested.members import BESIDE_LINE, TREES_OF_ALL, TREES_OF_COTERIE, WITH_ID
from coterie.collaboration.nested.pooled import fit_dictionary
from coterie.collaboration.nested.stacking import response_variances, row_scales
from coterie.collaboration.nested.views import PooledTable
from coterie.engines import Steps, ThreadEngine


def dictionary_of(learners, labels, *, trees="full", n_folds=3):
    folds = random_folds(learners, n_folds, 0)

    def no_labels(fold):
        raise AssertionError("lines find the coteries")

    table = PooledTable.of(learners, np.ones(len(learners), dtype=bool), labels, folds, no_labels)
    scales = row_scales(table, response_variances(table))
    own = np.zeros(len(learners.y))
    steps = Steps("Collaborate", 4)
    return table, fit_dictionary(table, own, scales, trees, ThreadEngine(), 0, steps)


@pytest.fixture(scope="module")
def fitted(staged):
    data = staged(sizes=(30,) * 6, level=1.0)
    return data.learners, dictionary_of(data.learners, np.arange(6) % 2)


def test_each_member_predicts_every_row_out_of_fold(fitted):
    _, (table, dictionary) = fitted
    assert dictionary.out_of_fold.shape == (len(table.rows.y), len(dictionary.members))
    assert np.isfinite(dictionary.out_of_fold).all()
    best = np.mean((table.rows.y[:, None] - dictionary.out_of_fold) ** 2, axis=0).min()
    assert best < 0.5 * table.rows.y.var()


def test_what_is_predicted_out_of_fold_does_not_know_the_row(fitted):
    learners, (table, dictionary) = fitted
    held = table.folds.held_out == 0
    y = learners.y.copy()
    # Within the range of the response, so that the common units stay what they are.
    y[held] = np.random.default_rng(1).permutation(y[held])
    _, again = dictionary_of(replace(learners, y=y), np.arange(6) % 2)
    names = [member.name for member in dictionary.members]
    lines = [names.index(name) for name in names if "line" in name and not name.startswith("trees")]
    assert lines
    # Ratios of lines are chosen once, on all rows, so that lines move a little.
    moved = np.abs(again.out_of_fold[:, lines[0]] - dictionary.out_of_fold[:, lines[0]])[held]
    assert moved.max() < 0.2
    assert np.abs(again.out_of_fold[:, lines[0]] - dictionary.out_of_fold[:, lines[0]])[~held].max() > 0.2


def test_trees_without_weight_on_the_first_fold_are_not_fitted_again(staged, monkeypatch):
    data = staged(sizes=(30,) * 6)
    monkeypatch.setattr(pooled, "LEAST_WEIGHT", 2.0)
    _, least = dictionary_of(data.learners, np.arange(6) % 2)
    kept = [member.name for member in least.members if member.trees]
    # Everybody's and a coterie's own predictions are made of these.
    assert kept == [TREES_OF_ALL, TREES_OF_COTERIE]
    monkeypatch.setattr(pooled, "LEAST_WEIGHT", 0.0)
    _, all_of_them = dictionary_of(data.learners, np.arange(6) % 2)
    assert {WITH_ID, BESIDE_LINE} < {member.name for member in all_of_them.members}
    assert all_of_them.n_fits > least.n_fits


def test_more_rows_bear_more_rounds(staged, monkeypatch):
    data = staged(sizes=(40,) * 6, noise=1.0)
    seen = []
    plain = pooled.grow_to_stay
    monkeypatch.setattr(pooled, "grow_to_stay", lambda job: seen.append(job.rounds) or plain(job))
    found = []
    best = pooled.best_rounds
    monkeypatch.setattr(
        pooled, "best_rounds", lambda curves: found.append((len(curves), best(curves))) or best(curves)
    )
    _, dictionary = dictionary_of(data.learners, np.arange(6) % 2, n_folds=3)
    of_all_folds = [rounds for n, rounds in found if n == 3]
    boosted = [m for m in dictionary.members if m.trees and not m.cut_at_random]
    grown = [
        rounds
        for rounds, member in zip(seen, (m for m in dictionary.members if m.trees), strict=True)
        if not member.cut_at_random
    ]
    # A fold trains on two thirds of the rows.
    assert grown == [int(np.ceil(1.5 * rounds)) for rounds in of_all_folds[-len(boosted) :]]


def test_without_trees_there_are_lines_only(staged):
    data = staged()
    table, dictionary = dictionary_of(data.learners, np.arange(8) % 2, trees="none")
    assert dictionary.models == (None, None)
    assert dictionary.tree_shares.tolist() == [0, 0]
    assert dictionary.n_fits == 0
    np.testing.assert_array_less(np.mean((table.rows.y - dictionary.plain[:, 1]) ** 2), 0.3)
