from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.rows.learners import Learners, gather_learners, stack_learners

quickly = settings(max_examples=50, deadline=None, derandomize=True)


def gather(groups: Any, weights: Any = None, X: Any = None, y: Any = None) -> Learners:
    """Rows 0, 1, 2, ... with the responses 0, 10, 20, ..."""
    n = len(groups)
    X = np.column_stack([np.arange(n), np.arange(n) ** 2]) if X is None else X
    y = 10.0 * np.arange(n) if y is None else y
    return gather_learners(X, y, groups, sample_weight=weights, caller="fit")


def test_learners_are_sorted_and_the_rows_of_each_lie_together() -> None:
    learners = gather(["b", "a", "b", "c", "a"])
    assert learners.ids.tolist() == ["a", "b", "c"]
    assert learners.rows.tolist() == [1, 4, 0, 2, 3]
    assert learners.X[:, 0].tolist() == [1, 4, 0, 2, 3]
    assert learners.scalar_y.tolist() == [10, 40, 0, 20, 30]
    assert learners.offsets.tolist() == [0, 2, 4, 5]
    assert learners.sizes.tolist() == [2, 2, 1]
    assert learners.owner.tolist() == [0, 0, 1, 1, 2]
    assert learners.appearance.tolist() == [1, 0, 2]
    assert learners.ids[learners.appearance].tolist() == ["b", "a", "c"]
    assert learners.span(1) == slice(2, 4)
    assert (len(learners), learners.n_features, learners.weights) == (3, 2, None)


def test_ids_are_sorted_by_their_text_so_that_numbers_and_their_texts_agree() -> None:
    numbers, texts = gather([10, 9, 1, 10]), gather(["10", "9", "1", "10"])
    assert numbers.ids.tolist() == [1, 10, 9]
    assert texts.ids.tolist() == ["1", "10", "9"]
    assert np.array_equal(numbers.rows, texts.rows)
    assert np.array_equal(numbers.appearance, texts.appearance)


def test_one_and_its_text_are_two_learners_side_by_side() -> None:
    learners = gather(np.array(["1", 1, "1", 2], dtype=object))
    assert learners.ids.tolist() == [1, "1", 2]
    assert learners.rows.tolist() == [1, 0, 2, 3]
    assert learners.appearance.tolist() == [1, 0, 2]


def test_no_groups_are_one_learner() -> None:
    learners = gather_learners([[1.0], [2.0]], [3, 4], caller="fit")
    assert (len(learners), learners.offsets.tolist(), learners.rows.tolist()) == (1, [0, 2], [0, 1])


def test_groups_may_be_a_column_of_x() -> None:
    table = pl.DataFrame({"a": [1.0, 2.0, 3.0], "site": ["v", "u", "v"]})
    learners = gather_learners(table, [1, 2, 3], "site", caller="fit")
    assert learners.ids.tolist() == ["u", "v"]
    assert learners.X.tolist() == [[2], [1], [3]]


def test_gathered_rows_pass_through() -> None:
    learners = gather(["a", "b"])
    assert gather_learners(learners, caller="fit") is learners


@quickly
@given(st.data())
def test_mixing_the_rows_of_different_learners_changes_nothing_but_their_places(data: Any) -> None:
    groups = data.draw(st.lists(st.sampled_from("dbca"), min_size=1, max_size=12))
    mixed = data.draw(st.permutations(groups))
    # The k-th row of a learner is the k-th row of the same learner in the mixed table.
    places = {name: iter(np.flatnonzero(np.array(groups) == name)) for name in groups}
    order = np.array([next(places[name]) for name in mixed])
    rng = np.random.default_rng(0)
    X, y, w = rng.normal(size=(len(groups), 2)), rng.normal(size=len(groups)), rng.uniform(size=len(groups))
    one, other = gather(groups, w, X, y), gather(mixed, w[order], X[order], y[order])
    for name in ("ids", "X", "y", "offsets", "weights"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert np.array_equal(order[other.rows], one.rows)
    for learners, table in ((one, groups), (other, mixed)):
        assert learners.ids[learners.appearance].tolist() == list(dict.fromkeys(table))


@quickly
@given(st.data())
def test_taking_learners_is_gathering_their_rows_only(data: Any) -> None:
    groups = data.draw(st.lists(st.sampled_from("dbca"), min_size=1, max_size=12))
    learners = gather(groups, np.arange(1.0, 1 + len(groups)))
    everybody = range(len(learners))
    positions = np.array(data.draw(st.lists(st.sampled_from(everybody), min_size=1, unique=True)), dtype=int)
    taken = learners.take(positions)
    assert taken.ids.tolist() == learners.ids[positions].tolist()
    for place, position in enumerate(positions):
        for name in ("X", "y", "rows", "weights"):
            mine = getattr(taken, name)[taken.span(place)]
            assert np.array_equal(mine, getattr(learners, name)[learners.span(position)])
    appeared = [i for i in dict.fromkeys(groups) if i in taken.ids]
    assert taken.ids[taken.appearance].tolist() == appeared


def test_rows_may_be_rearranged_inside_their_learners() -> None:
    learners = gather(["a", "b", "a", "b", "a"], [1, 1, 2, 3, 9])
    other = learners.rearranged(np.array([2, 0, 1, 4, 3]))
    assert other.rows.tolist() == [4, 0, 2, 3, 1]
    assert other.scalar_y.tolist() == [40, 0, 20, 30, 10]
    assert other.X[:, 0].tolist() == [4, 0, 2, 3, 1]
    assert other.weights is not None
    assert np.allclose(other.weights, [9 / 4, 1 / 4, 2 / 4, 3 / 2, 1 / 2])
    assert (other.offsets is learners.offsets, other.ids is learners.ids) == (True, True)
    assert gather(["a", "b"]).rearranged(np.array([0, 1])).weights is None


def test_only_some_rows_keep_everybody_and_normalise_their_weights_again() -> None:
    learners = gather(["a", "b", "a", "b", "a"], [1, 1, 2, 3, 9])
    mask = np.array([True, True, False, False, True])
    some = learners.only(mask)
    assert some.ids.tolist() == ["a", "b"]
    assert some.offsets.tolist() == [0, 2, 3]
    assert some.rows.tolist() == [0, 2, 3]
    assert some.scalar_y.tolist() == [0, 20, 30]
    assert some.weights is not None
    assert np.allclose(some.weights, [2 / 3, 4 / 3, 1])
    assert gather(["a", "b", "a", "b", "a"]).only(mask).weights is None


def test_weights_have_mean_one_inside_each_learner() -> None:
    learners = gather(["b", "a", "b"], [1, 5, 3])
    assert learners.weights is not None
    assert learners.weights.tolist() == [1, 0.5, 1.5]


def test_rows_of_weight_zero_are_left_out_before_they_are_looked_at() -> None:
    X, y = np.arange(8.0).reshape(4, 2), np.arange(4.0)
    X[1, 0], y[2] = np.nan, np.inf
    learners = gather(["b", "a", "c", "a"], [2, 0, 0, 1], X, y)
    assert learners.ids.tolist() == ["a", "b"]
    assert learners.rows.tolist() == [3, 0]
    assert learners.X.tolist() == [[6, 7], [0, 1]]
    assert learners.weights is not None
    assert learners.weights.tolist() == [1, 1]


def test_means_by_learner_run_along_the_last_axis() -> None:
    learners = gather(["b", "a", "b"])
    assert learners.mean_by_learner(learners.scalar_y).tolist() == [10, 10]
    assert learners.mean_by_learner(np.array([[1.0, 2, 4], [0, 0, 6]])).tolist() == [[1, 3], [0, 3]]


@quickly
@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0.1, 10), st.integers(-9, 9)), min_size=1))
def test_weighted_means_by_learner_are_those_of_numpy(rows: list[tuple[str, float, int]]) -> None:
    groups, weights, values = zip(*rows, strict=True)
    learners = gather(list(groups), np.array(weights), y=np.array(values))
    means = learners.mean_by_learner(learners.scalar_y)
    for name, mean in zip(learners.ids, means, strict=True):
        mine = np.array(groups) == name
        expected = np.average(np.array(values)[mine], weights=np.array(weights)[mine])
        assert mean == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("weights", [None, [1, 2, 3, 4, 5, 6]])
def test_standardized_learners_have_mean_zero_and_spread_one(weights: Any) -> None:
    X = np.array([[1.0, 1e6], [2, 1e6 + 1], [4, 1e6 - 5], [1e-9, 3], [5e-9, 1], [3e-9, 7]])
    learners = gather(["a"] * 3 + ["b"] * 3, weights, X, np.array([1.0, 2, 9, 1e5, 2e5, 0]))
    inside, units = learners.standardized()
    for values in (*inside.X.T, inside.scalar_y):
        assert np.allclose(inside.mean_by_learner(values), 0, atol=1e-9)
        assert np.allclose(inside.mean_by_learner(values**2), 1)
    assert np.allclose(units.backward_y(inside.y, inside.owner), learners.y)
    assert np.allclose(units.forward_X(learners.X, learners.owner), inside.X)
    assert inside.ids is learners.ids


@pytest.mark.parametrize("constant", [0.0, 0.1, -1e8, 1 / 3])
def test_constant_columns_and_responses_become_zero_and_stay_constant(constant: float) -> None:
    X = np.column_stack([np.full(7, constant), np.arange(7)])
    learners = gather(["a"] * 7, None, X, np.full(7, constant))
    inside, units = learners.standardized()
    scale = max(abs(constant), 1)
    assert np.allclose(inside.X[:, 0], 0, atol=1e-12 * scale)
    assert np.allclose(inside.y, 0, atol=1e-12 * scale)
    assert units.spread_x[0, 0] == units.spread_y[0] == 1
    assert np.allclose(units.backward_y(inside.y, inside.owner), constant)


def test_a_single_row_becomes_zero() -> None:
    inside, _ = gather(["a", "b", "b"]).standardized()
    assert inside.X[0].tolist() == [0, 0]
    assert inside.y[0] == 0
    assert inside.X[1:, 0].tolist() == [-1, 1]


def test_standardizations_are_joined_learner_after_learner() -> None:
    (_, one), (_, other) = gather(["a", "a"]).standardized(), gather(["b", "b", "c"]).standardized()
    joined = one.joined(other)
    assert joined.centre_x.shape == (3, 2)
    assert joined.centre_y[:, 0].tolist() == [*one.centre_y[:, 0], *other.centre_y[:, 0]]
    assert joined.backward_y(np.zeros((1, 1)), np.array([2])).tolist() == [[20]]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            {"groups": ["a", "b"]},
            r"'groups' argument of fit must have one entry per row of X \(3\)\. Got 2\.",
        ),
        ({"groups": ["a", "b", None]}, "1 entry is missing"),
        ({"y": [1, np.nan, 2]}, "Input y of fit contains NaN in the rows of learner 'b'. Drop the rows"),
        ({"y": [1, 2, -np.inf]}, "Input y of fit contains infinity in the rows of learner 'a'"),
        ({"X": [[1.0], [2.0], [np.nan]]}, "Input X of fit contains NaN in column 0 of learner 'a'"),
        (
            {"X": pd.DataFrame({"u": [1.0, 2.0, 3.0], "v": [1.0, np.inf, 2.0]})},
            "Input X of fit contains infinity in column 'v' of learner 'b'",
        ),
        ({"y": None}, "fit requires y to be passed"),
        ({"sample_weight": [1, 2]}, "The 'sample_weight' argument of fit must have one entry per row"),
    ],
)
def test_what_does_not_fit_together_is_refused(arguments: dict[str, Any], sentence: str) -> None:
    good = {"X": [[1.0], [2.0], [3.0]], "y": [1, 2, 3], "groups": ["a", "b", "a"]}
    with pytest.raises(ValueError, match=sentence):
        gather_learners(**(good | arguments), caller="fit")


def test_a_learner_that_is_a_date_is_named_by_its_date() -> None:
    days = np.array(["2020-01-02", "2021-01-02"], dtype="M8[ns]")
    with pytest.raises(ValueError, match="2021"):
        gather(days, y=np.array([1, np.nan]))


def test_dates_are_learners() -> None:
    learners = gather(np.array(["2021-01-02", "2020-01-02", "2021-01-02"], dtype="M8[ns]"))
    assert [str(i)[:4] for i in learners.ids] == ["2020", "2021"]
    assert learners.rows.tolist() == [1, 0, 2]


# stack_learners


def test_datasets_are_stacked_in_their_order() -> None:
    X, y, groups = stack_learners({"north": ([[0, 1], [2, 3]], [0, 1]), "east": ([[4, 5]], [2])})
    assert X.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert y.tolist() == [0, 1, 2]
    assert groups.tolist() == ["north", "north", "east"]


def test_tables_are_stacked_when_their_columns_agree() -> None:
    X, _, groups = stack_learners(
        {1: (pd.DataFrame({"a": [1], "b": [2]}), [0]), 2: (pl.DataFrame({"a": [3], "b": [4]}), [0])}
    )
    assert X.tolist() == [[1, 2], [3, 4]]
    assert groups.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("datasets", "sentence"),
    [
        ({}, "stack_learners needs at least one learner"),
        ({"a": ([[1.0]], [1]), "b": ([[1.0, 2.0]], [1])}, r"learner 'b' differ .* \(2 against 1\)"),
        (
            {"a": (pd.DataFrame({"u": [1], "v": [2]}), [1]), "b": (pd.DataFrame({"v": [1], "u": [2]}), [1])},
            r"learner 'b' differ .*\['v', 'u'\] against \['u', 'v'\]",
        ),
        ({"a": (pd.DataFrame({"u": [1]}), [1]), "b": ([[1.0]], [1])}, r"\(1 against \['u'\]\)"),
        ({"a": ([[1.0], [2.0]], [1])}, r"The 'y' argument of stack_learners .* row of X \(2\)\. Got 1"),
        ({"a": (np.empty((0, 2)), [])}, r"0 sample\(s\)"),
    ],
)
def test_datasets_that_do_not_fit_together_are_refused(datasets: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        stack_learners(datasets)


def test_stacked_learners_of_several_types_stay_apart() -> None:
    X, y, groups = stack_learners({1: ([[1.0]], [1]), "1": ([[2.0]], [2])})
    assert len(gather_learners(X, y, groups, caller="fit")) == 2


def test_stacked_learners_may_be_pairs() -> None:
    X, y, groups = stack_learners({("north", 1): ([[1.0]], [1]), ("north", 2): ([[2.0]], [2])})
    assert len(gather_learners(X, y, groups, caller="fit")) == 2


@pytest.mark.parametrize("size", [1e141, 1e200, -1e300])
def test_a_response_whose_squares_are_no_numbers_is_refused(size):
    with pytest.raises(ValueError, match="in other units"):
        gather_learners(np.ones((4, 1)), np.array([1.0, 2.0, 3.0, size]), caller="fit")


def test_a_response_whose_squares_vanish_is_refused_and_a_constant_one_is_not() -> None:
    X, y, groups = np.ones((6, 1)), np.arange(6.0), [0, 0, 0, 1, 1, 1]
    with pytest.raises(ValueError, match=r"varies by 5e-80 only.* in other units"):
        gather_learners(X, y * 1e-80, groups, caller="fit")
    assert len(gather_learners(X, 0 * y, groups, caller="fit")) == 2
    assert len(gather_learners(X, y * 1e-60, groups, caller="fit")) == 2


def test_a_response_far_from_a_few_others_is_refused_by_name() -> None:
    # Among nine values nobody can say what is far; among more the row is set aside.
    X, y, groups = np.ones((9, 1)), np.arange(9.0), np.repeat(["a", "b", "c"], 3)
    y[4] = 9.96921e36
    with pytest.raises(
        ValueError, match=r"has 9\.96921e\+36 in the rows of learner 'b'.* code for a missing"
    ):
        gather_learners(X, y, groups, caller="fit")
    # Other units are not: a million times as large is fitted, and so is who varies among constants.
    for unit in (np.where(groups == "b", 1e6, 1.0), np.where(groups == "b", 1.0, 0.0)):
        assert len(gather_learners(X, np.arange(9.0) * unit, groups, caller="fit")) == 3
