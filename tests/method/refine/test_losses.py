from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression

from coterie.method.refine.losses import LocalLosses, LocalRows, halves_of, whole_losses
from coterie.records import Selection
from coterie.rows.learners import Learners

LABELS = np.array([0, 1, 0, 3, 1])


class Planned(LocalLosses):
    """Clusters whose residuals are drawn once; nobody is left in a cluster of one, or in an empty one."""

    def __init__(self, learners: Learners, selection: Selection) -> None:
        super().__init__(learners, selection)
        self.calls = 0

    def residuals(self, labels: Any, n_clusters: int) -> Any:
        self.calls += 1
        residuals = np.empty((n_clusters, *self.learners.y.shape))
        for k in range(n_clusters):
            for j in range(len(labels)):
                mine = self.learners.span(j)
                planned = plan(labels, k, j)
                first = self.learners.rows[mine].min()
                rows = self.learners.rows[mine] - first
                residuals[k, mine, 0] = np.nan if planned is None else planned[rows]
        return residuals


def plan(labels: Any, k: int, j: int) -> Any:
    """Residuals of learner j's rows, in their order, or None where nobody is left."""
    if not (np.delete(labels, j) == k).any():
        return None
    return np.random.default_rng([5, k, j]).normal(size=50)


@pytest.fixture(params=[False, True], ids=["plain", "weighted"])
def learners(request: pytest.FixtureRequest, make_learners: Callable[..., Learners]) -> Learners:
    return make_learners(weighted=request.param)


@pytest.fixture
def selection(learners: Learners, select: Callable[..., Selection]) -> Selection:
    return select(learners, [LinearRegression()])


@pytest.fixture
def losses(learners: Learners, selection: Selection) -> Planned:
    return Planned(learners, selection)


@pytest.fixture
def planned_rows(
    learners: Learners, selection: Selection, rows_by_hand: Callable[..., Any]
) -> Callable[..., Any]:
    def rows(labels: Any, chosen: Selection = selection) -> Any:
        def residuals_of(k: int, j: int) -> Any:
            planned = plan(labels, k, j)
            return None if planned is None else planned[: learners.sizes[j]]

        return rows_by_hand(learners, chosen, labels, residuals_of)

    return rows


def test_halves_are_the_folds_when_there_are_two() -> None:
    assert halves_of(np.array([0, 1, 1, 0])).tolist() == [0, 1, 1, 0]


def test_earlier_folds_make_the_first_half() -> None:
    assert halves_of(np.array([4, 0, 1, 2, 3])).tolist() == [1, 0, 0, 0, 1]
    assert halves_of(np.array([3, 0, 1, 2])).tolist() == [1, 0, 0, 1]
    assert halves_of(np.array([-1, 0, 1])).tolist() == [0, 0, 1]


def test_one_fold_is_cut_in_two_by_turns() -> None:
    assert halves_of(np.array([0, 0, 0])).tolist() == [0, 1, 0]
    assert halves_of(np.array([-1, 0, -1, -1])).tolist() == [0, 1, 0, 1]


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 5), min_size=2, max_size=20))
def test_there_are_rows_in_both_halves(folds: list[int]) -> None:
    _, dense = np.unique(folds, return_inverse=True)
    assert set(halves_of(dense)) == {0, 1}


def test_means_over_halves_equal_explicit_loops(
    learners: Learners,
    selection: Selection,
    losses: Planned,
    planned_rows: Callable[..., Any],
    halves_by_hand: Callable[..., Any],
) -> None:
    for labels in (LABELS, np.zeros(5, dtype=int), np.arange(5), np.array([2, 2, 0, 0, 2])):
        halves = losses.on_halves(labels)
        assert halves.shape == (labels.max() + 1, 5, 2)
        assert np.allclose(halves, halves_by_hand(learners, selection, planned_rows(labels)))
    for j, folds in enumerate(selection.folds):
        second = halves_of(folds)
        assert losses.half_sizes[j].tolist() == [(second == 0).sum(), (second == 1).sum()]


def test_empty_clusters_are_infinite_and_no_others(losses: Planned) -> None:
    halves = losses.on_halves(LABELS)
    assert np.isinf(halves[2]).all()
    assert np.isfinite(halves[[0, 1, 3]]).all()


def test_a_learner_alone_is_predicted_by_its_own_honest_residuals(
    learners: Learners, selection: Selection, losses: Planned
) -> None:
    whole = whole_losses(losses, LABELS)
    weights = None if learners.weights is None else learners.weights[learners.span(3)]
    own = np.average(np.minimum(selection.residuals[3][:, 0] ** 2, selection.clips[3]), weights=weights)
    assert whole[3, 3] == pytest.approx(own)


def test_a_row_that_was_never_held_out_counts_by_the_noise_level(
    learners: Learners,
    selection: Selection,
    planned_rows: Callable[..., Any],
    halves_by_hand: Callable[..., Any],
) -> None:
    gap, filled = list(selection.residuals), list(selection.residuals)
    gap[3], filled[3] = gap[3].copy(), filled[3].copy()
    gap[3][0], filled[3][0] = np.nan, np.sqrt(selection.noise[3])
    halves = Planned(learners, replace(selection, residuals=tuple(gap))).on_halves(LABELS)
    rows = planned_rows(LABELS, replace(selection, residuals=tuple(filled)))
    assert np.allclose(halves, halves_by_hand(learners, selection, rows))


def test_means_over_all_rows_put_the_halves_together(
    learners: Learners, losses: Planned, planned_rows: Callable[..., Any]
) -> None:
    whole, rows = whole_losses(losses, LABELS), planned_rows(LABELS)
    for j in range(5):
        assert np.allclose(whole[:, j], rows[:, learners.span(j)].mean(axis=1))
    assert np.isinf(whole[2]).all()


@pytest.mark.parametrize("lonely", [0, 2, 4])
def test_an_empty_half_counts_for_nothing(
    learners: Learners, selection: Selection, losses: Planned, lonely: int
) -> None:
    # A learner all of whose rows are in the later folds, wherever in the order it stands.
    folds = list(selection.folds)
    folds[lonely] = np.full(len(folds[lonely]), 1)
    again = Planned(learners, replace(selection, folds=tuple(folds)))
    assert again.half_sizes[lonely].tolist() == [0, learners.sizes[lonely]]
    halves = again.on_halves(LABELS)
    assert (halves[:, lonely, 0] == 0).all()
    assert np.allclose(whole_losses(again, LABELS), whole_losses(losses, LABELS))


def test_paired_comparisons_equal_explicit_loops(
    learners: Learners, selection: Selection, losses: Planned, planned_rows: Callable[..., Any]
) -> None:
    other = np.array([0, 0, 1, 1, 0])
    rng = np.random.default_rng(0)
    picks, other_picks = rng.choice([0, 1], size=(5, 2)), rng.integers(2, size=(5, 2))
    mean, error = losses.paired_t(LABELS, picks, other, other_picks)
    one, two = planned_rows(LABELS), planned_rows(other)
    for j in range(5):
        first = learners.offsets[j]
        difference = [
            one[picks[j, h], first + i] - two[other_picks[j, h], first + i]
            for i, h in enumerate(halves_of(selection.folds[j]))
        ]
        assert mean[j] == pytest.approx(np.mean(difference))
        assert error[j] == pytest.approx(np.std(difference, ddof=1) / np.sqrt(len(difference)))


def test_dependent_rows_widen_the_standard_error(
    learners: Learners, selection: Selection, losses: Planned
) -> None:
    picks, other = np.zeros((5, 2), dtype=int), np.ones((5, 2), dtype=int)
    dependent = Planned(learners, replace(selection, inflation=4.0))
    mean, error = losses.paired_t(LABELS, picks, LABELS, other)
    same, wider = dependent.paired_t(LABELS, picks, LABELS, other)
    np.testing.assert_array_equal(same, mean)
    np.testing.assert_allclose(wider, 2 * error)


def test_a_way_compared_with_itself_has_no_excess(losses: Planned) -> None:
    picks = np.repeat(LABELS[:, None], 2, axis=1)
    mean, error = losses.paired_t(LABELS, picks, LABELS, picks)
    assert (mean == 0).all()
    assert (error == 0).all()


def test_one_row_has_no_standard_error_to_divide_by(learners: Learners, selection: Selection) -> None:
    single = learners.only(np.isin(np.arange(len(learners.y)), learners.offsets[:-1]))
    cut = replace(
        selection,
        residuals=tuple(r[:1] for r in selection.residuals),
        folds=tuple(f[:1] for f in selection.folds),
    )
    picks = np.zeros((5, 2), dtype=int)
    mean, error = Planned(single, cut).paired_t(LABELS, picks, LABELS, picks + 1)
    assert np.isfinite(mean).all()
    assert (error == 0).all()


def test_a_labelling_is_worked_out_once_while_it_is_remembered(losses: Planned) -> None:
    first = losses.on_halves(LABELS).copy()
    losses.on_halves(LABELS.copy())
    whole_losses(losses, LABELS)
    assert losses.calls == 1
    for k in range(8):
        losses.on_halves((LABELS + k) % 5)
    assert np.array_equal(losses.on_halves(LABELS), first)


def test_noise_is_that_of_the_selection(losses: Planned) -> None:
    assert losses.noise is losses.selection.noise


def test_without_rows_nothing_is_added_to_a_search() -> None:
    nothing = LocalRows()
    assert nothing.suggest(2, 0) == []
    assert np.isnan(nothing.one_truth_test(0)).all()
    assert nothing.reassign(LABELS) is LABELS
