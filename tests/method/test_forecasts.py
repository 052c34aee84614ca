"""Folds in time order: no fold trains on what comes later."""

import pytest
from sklearn.base import clone

from coterie.method.forecasts import Forecasts

THREE = Forecasts(3)


def folds(n: int, splitter: Forecasts = THREE) -> list[tuple[list[int], list[int]]]:
    return [(train.tolist(), validation.tolist()) for train, validation in splitter.split([[0.0]] * n)]


def test_each_block_of_the_later_half_follows_what_it_is_predicted_from() -> None:
    assert folds(7, Forecasts(3)) == [([0, 1, 2, 3], [4]), ([0, 1, 2, 3, 4], [5]), ([*range(6)], [6])]
    assert folds(10, Forecasts(1)) == [([0, 1, 2, 3, 4], [5, 6, 7, 8, 9])]


@pytest.mark.parametrize("n", range(2, 40))
def test_every_row_of_the_later_half_is_held_out_once(n: int) -> None:
    validation = [row for _, part in folds(n) for row in part]
    assert validation == list(range((n + 1) // 2, n))
    assert all(train == list(range(part[0])) for train, part in folds(n))


def test_it_is_copied_like_any_splitter() -> None:
    assert clone(Forecasts(2), safe=False) == Forecasts(2)
