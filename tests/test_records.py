from dataclasses import FrozenInstanceError, fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.kernels.losses import DenseTiles
from coterie.records import Collaboration, Exchange, Partition, Selection

IDS = np.array(["a", "b", "c"])
LOSSES = np.array([[1.0, 5.0, 9.0], [4.0, 2.0, 8.0], [7.0, 6.0, 3.0]])


class Constant:
    """Predicts the same everywhere."""

    def __init__(self, value: float) -> None:
        self.value = value

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.value)


def selection() -> Selection:
    numbers = np.arange(3.0)
    return Selection(
        learner_ids=IDS,
        names=("lr", "rf", "knn"),
        models=tuple(Constant(k) for k in range(3)),
        errors=numbers,
        held_out_errors=numbers + 10,
        n_rows=np.arange(3) + 20,
        candidate_errors=tuple({"lr": k} for k in numbers),
        candidate_losses=tuple({"lr": np.full(k, float(k))} for k in (1, 2, 3)),
        residuals=tuple(np.full(k, float(k)) for k in (1, 2, 3)),
        folds=tuple(np.arange(k) for k in (1, 2, 3)),
        training=tuple(np.eye(k, dtype=bool) for k in (1, 2, 3)),
        fold_models=(("m0",), ("m1",), ("m2",)),
        noise=numbers + 30,
        clips=numbers + 40,
    )


def exchange(losses: Any = LOSSES) -> Exchange:
    n = len(losses)
    return Exchange(
        np.arange(n) if n != 3 else IDS,
        DenseTiles(losses),
        losses.diagonal().copy(),
        np.arange(1.0, n + 1),
        np.arange(n) == n - 1,
    )


def partition() -> Partition:
    return Partition(
        IDS, np.array([0, 1, 0]), LOSSES, np.array([1.0, 0.5]), np.arange(6.0).reshape(3, 2), scale=2.0
    )


def collaboration() -> Collaboration:
    return Collaboration(
        IDS,
        "average",
        (Constant(1), Constant(3)),
        ("lr", "rf"),
        np.array([[1.0, 0.0], [0.25, 0.75]]),
        np.array([1, 0, 0]),
        np.array([1, 0]),
        (np.zeros(1), np.ones(2), np.full(3, 2.0)),
    )


# What does not run over learners; similarities and losses run over them on both sides.
FIXED = {
    Selection: {"dependent", "in_order", "inflation"},
    Exchange: {"source"},
    Partition: {"similarity", "eigenvalues", "scale", "rule", "curves", "clear", "notes"},
    Collaboration: {"method", "models", "names", "weights", "newcomer_weight_rows", "loss", "plausible"},
}


def same(one: Any, other: Any) -> bool:
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return np.array_equal(one, other) if isinstance(one, np.ndarray) else bool(one == other)


@pytest.mark.parametrize("record", [selection(), exchange(), partition(), collaboration()], ids=type)
def test_taking_learners_takes_every_field_that_runs_over_them(record: Any) -> None:
    positions = np.array([2, 0])
    taken = record.take(positions)
    assert type(taken) is type(record)
    assert taken.learner_ids.tolist() == ["c", "a"]
    for f in fields(record):
        before, after = getattr(record, f.name), getattr(taken, f.name)
        if f.name in ("source", "similarity"):
            continue
        if f.name not in FIXED[type(record)]:
            picked = before[positions] if isinstance(before, np.ndarray) else (before[2], before[0])
            assert same(after, picked), f.name
        else:
            assert same(after, before), f.name


@pytest.mark.parametrize("record", [selection(), exchange(), partition(), collaboration()], ids=type)
def test_records_are_brought_into_the_order_of_others(record: Any) -> None:
    assert record.aligned_to(np.array(["b", "c"])).learner_ids.tolist() == ["b", "c"]
    back = record.take(np.array([1, 2, 0])).aligned_to(IDS)
    for f in fields(record):
        if f.name != "source":
            assert same(getattr(back, f.name), getattr(record, f.name)), f.name
    name = type(record).__name__
    with pytest.raises(ValueError, match=f"The {name} knows nothing of learner 'd': pass the rows of"):
        record.aligned_to(np.array(["a", "d"]))


@pytest.mark.parametrize("record", [selection(), exchange(), partition(), collaboration()], ids=type)
def test_records_cannot_be_changed(record: Any) -> None:
    with pytest.raises(FrozenInstanceError):
        record.learner_ids = IDS


def test_losses_and_similarities_are_taken_on_both_sides() -> None:
    positions = np.array([2, 0])
    assert exchange().take(positions).losses.tolist() == [[3, 7], [9, 1]]
    assert partition().take(positions).similarity.tolist() == [[3, 7], [9, 1]]


def test_the_number_of_clusters_is_that_of_the_labels() -> None:
    assert partition().n_clusters == 2


def by_the_paper(losses: Any, errors: Any) -> Any:
    n = len(losses)
    v = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            if i != j:
                v[i, j] = abs(losses[i, j] - errors[j]) + abs(losses[j, i] - errors[i])
    return v


def test_the_dissimilarity_of_a_small_case_is_the_papers() -> None:
    v = exchange().dissimilarity
    # v_ab = |5 - 2| + |4 - 1|, v_ac = |9 - 3| + |7 - 1|, v_bc = |8 - 3| + |6 - 2|
    assert v.tolist() == [[0, 6, 12], [6, 0, 9], [12, 9, 0]]
    assert exchange().losses.tolist() == LOSSES.tolist()


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(1, 9), st.integers(1, 12), st.integers(0, 99))
def test_tiles_of_any_size_make_up_the_papers_dissimilarity(n: int, block: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    losses = rng.exponential(size=(n, n))
    record = exchange(losses)
    v = np.full((n, n), np.nan)
    for rows, columns, tile in record.dissimilarity_tiles(block=block):
        assert rows.start <= columns.start
        assert tile.shape == v[rows, columns].shape
        assert max(tile.shape) <= block
        assert np.isnan(v[rows, columns]).all()
        v[rows, columns] = tile
        v[columns, rows] = tile.T
    expected = by_the_paper(losses, record.errors)
    assert np.allclose(v, expected, rtol=1e-12, atol=1e-14)
    assert (v.diagonal() == 0).all()
    assert np.allclose(record.dissimilarity, v, rtol=1e-12, atol=1e-14)


def test_fitted_errors_that_are_not_the_losses_diagonal_count() -> None:
    record = Exchange(IDS, DenseTiles(LOSSES), np.zeros(3), np.ones(3), np.zeros(3, dtype=bool))
    assert record.dissimilarity.tolist() == [[0, 9, 16], [9, 0, 14], [16, 14, 0]]


def test_rows_are_predicted_each_in_its_own_way() -> None:
    # Way 0 is the first model; way 1 is a quarter of the first and three quarters of the second.
    assert collaboration().predict(np.zeros((4, 1)), np.array([0, 1, 1, 0])).tolist() == [1, 2.5, 2.5, 1]


def test_models_without_weight_are_not_asked() -> None:
    class Fails:
        def predict(self, X: Any) -> Any:
            raise AssertionError

    record = Collaboration(
        IDS,
        "local",
        (Constant(2), Fails()),
        ("lr", "rf"),
        np.eye(2),
        np.zeros(3, dtype=int),
        np.array([0]),
        (np.zeros(1),) * 3,
    )
    assert record.predict(np.zeros((2, 1)), np.array([0, 0])).tolist() == [2, 2]
