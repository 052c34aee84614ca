"""Newcomers of known truths, and of none."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.testing import assert_allclose

from coterie.method.likelihood.counting import Search
from coterie.method.likelihood.features import Features
from coterie.method.likelihood.moments import Rows, add_up
from coterie.method.likelihood.newcomers import place

# Both truths agree in the last slope.
TRUTHS = np.array([[1.0, -1.0, 0.5], [-1.0, 1.0, 0.5]])


def rows_of(lines: Any, n: int, seed: int) -> Rows:
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(len(lines)), n)
    X = rng.standard_normal((len(owner), 3))
    y = (X * np.asarray(lines)[owner]).sum(axis=1) + rng.standard_normal(len(owner))
    return Rows(Features(np.c_[X, np.ones(len(X))], np.array([0, 0, 0, 2])), y, np.arange(0, len(y) + 1, n))


def known() -> Any:
    search = Search(add_up(rows_of(TRUTHS[np.arange(20) % 2], 60, 0)), 5)
    return search.run().best, search.moments.direction


def test_newcomers_join_their_truth_or_none() -> None:
    mixture, direction = known()
    apart = TRUTHS[0] + [0.0, 0.0, 15 / np.sqrt(60)]
    newcomers = rows_of([*TRUTHS[np.arange(100) % 2], apart, [3.0, 3.0, 0.5]], 60, 1)
    found = place(mixture, newcomers.sums(np.ones(len(newcomers.y))), direction)
    assert_allclose(found.sum(axis=1), 1)
    assert (found[-2:, -1] > 0.95).all()
    labels = found[:100].argmax(axis=1)
    assert (labels == 2).mean() <= 0.02
    assert len(set(labels[::2])) == len(set(labels[1::2])) == 1


def test_a_newcomer_of_one_row_is_uncertain() -> None:
    newcomers = rows_of(TRUTHS, 1, 2)
    mixture, direction = known()
    found = place(mixture, newcomers.sums(np.ones(2)), direction)
    assert np.isfinite(found).all()
    assert found.max() < 0.99
