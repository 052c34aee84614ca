import numpy as np
import pytest

from reproductions.grid.splitting import split_into_learners


def test_every_row_is_dealt_once_with_its_own_response() -> None:
    rows = np.arange(23.0)
    split = split_into_learners(rows[:, None], 10 * rows, n_learners=4, rows_per_learner=5)
    assert np.array_equal(split.y, 10 * split.X[:, 0])
    assert np.array_equal(split.y_rest, 10 * split.X_rest[:, 0])
    everything = np.concatenate([split.X[:, 0], split.X_rest[:, 0]])
    assert sorted(everything) == rows.tolist()
    assert everything.tolist() != rows.tolist()
    assert split.groups.tolist() == [f"learner 0{i}" for i in range(4) for _ in range(5)]


def test_no_rest_is_an_empty_rest() -> None:
    split = split_into_learners(np.zeros((6, 2)), np.zeros(6), 3, 2)
    assert split.X_rest.shape == (0, 2)
    assert split.y_rest.shape == (0,)


def test_the_seed_decides() -> None:
    X, y = np.arange(100.0)[:, None], np.zeros(100)
    first, again, other = (split_into_learners(X, y, 5, 10, random_state=s).X for s in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_defaults_are_those_of_the_grid_experiment() -> None:
    split = split_into_learners(np.zeros((10_000, 12)), np.zeros(10_000))
    names, sizes = np.unique(split.groups, return_counts=True)
    assert (len(names), set(sizes.tolist()), len(split.y_rest)) == (50, {160}, 2000)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            (np.zeros((9, 2)), np.zeros(9), 5, 2),
            r"needs 5 x 2 = 10 rows but X has 9; ask for fewer",
        ),
        ((np.zeros((9, 2)), np.zeros(8), 2, 2), r"Got \(9, 2\) and \(8,\)\."),
        ((np.zeros(9), np.zeros(9), 2, 2), r"Got \(9,\) and \(9,\)\."),
        ((np.zeros((9, 2)), np.zeros(9), 0, 2), r"'n_learners' argument .* at least 1. Got 0\."),
        ((np.zeros((9, 2)), np.zeros(9), 2, 0), r"'rows_per_learner' argument .* Got 0\."),
    ],
)
def test_errors_are_a_sentence(arguments: tuple, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        split_into_learners(*arguments)
