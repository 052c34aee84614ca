from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from coterie import CoterieRegressor, cluster_learners, cross_evaluate, select_models
from coterie.datasets import make_linear_learners
from coterie.engines import ThreadEngine
from coterie.method.refine.averages import AverageLosses
from coterie.method.refine.losses import LocalLosses
from coterie.method.refine.moves import labelling_score, refine_labels
from coterie.method.refine.refits import pooled_losses
from coterie.rows.learners import gather_learners

DATA = make_linear_learners(n_learners=6, n_truths=2, n_rows=30, n_features=2, random_state=1)
TRUTH = DATA.truth.astype(np.int64)


class Scripted:
    """Answers from a function of the labelling: losses of shape (K, L)."""

    bounded = False

    def __init__(self, answer: Callable[[Any], Any], error: float = 0.0) -> None:
        self.answer, self.error = answer, error
        self.calls: list[list[int]] = []

    @property
    def noise(self) -> Any:
        return np.ones(len(self.calls[-1]) if self.calls else 3)

    @property
    def half_sizes(self) -> Any:
        return np.array([[2, 1]] * 3)

    def on_halves(self, labels: Any) -> Any:
        self.calls.append(labels.tolist())
        return np.repeat(np.asarray(self.answer(labels), dtype=float)[..., None], 2, axis=-1)

    def paired_t(self, labels: Any, picks: Any, other_labels: Any, other_picks: Any) -> tuple[Any, Any]:
        everybody = np.arange(len(labels))
        table = np.asarray(self.answer(labels), dtype=float)
        excess = table[picks[:, 0], everybody] - table[other_picks[:, 0], everybody]
        return excess, np.full(len(labels), self.error)


def losses_of(form: str) -> LocalLosses:
    learners = gather_learners(DATA.X, DATA.y, DATA.groups, caller="test")
    selection = select_models(learners, candidates=["lr"]).aligned_to(learners.ids)
    exchange = cross_evaluate(selection, learners).aligned_to(learners.ids)
    if form == "pooled":
        return pooled_losses(learners, selection, exchange, ThreadEngine())[0]
    return AverageLosses.of_all(learners, selection, exchange, ThreadEngine())


@pytest.mark.parametrize("form", ["pooled", "average"])
@pytest.mark.parametrize("misplaced", range(6))
def test_a_misplaced_learner_is_moved_back(form: str, misplaced: int) -> None:
    labels = TRUTH.copy()
    labels[misplaced] = 1 - labels[misplaced]
    refined, _ = refine_labels(losses_of(form), labels)
    assert np.array_equal(refined, TRUTH)


@pytest.mark.parametrize("form", ["pooled", "average"])
def test_a_right_partition_is_kept(form: str) -> None:
    losses = losses_of(form)
    refined, score = refine_labels(losses, TRUTH)
    assert np.array_equal(refined, TRUTH)
    assert score == pytest.approx(labelling_score(losses, TRUTH))


@pytest.mark.parametrize("form", ["pooled", "average"])
def test_learners_of_one_truth_put_into_three_clusters_predict_no_worse_than_before(form: str) -> None:
    losses = losses_of(form)
    start = np.array([0, 0, 1, 1, 2, 2])
    refined, score = refine_labels(losses, start)
    assert score <= labelling_score(losses, start)
    assert np.isfinite(score)
    assert set(refined.tolist()) <= {0, 1, 2}


def test_the_score_is_the_mean_loss_with_one_s_own_cluster_in_units_of_noise() -> None:
    table = [[1.0, 9.0, 3.0], [9.0, 2.0, 9.0]]
    assert labelling_score(Scripted(lambda _: table), np.array([0, 1, 0])) == pytest.approx((1 + 2 + 3) / 3)


def test_everybody_moves_to_the_nearest_cluster() -> None:
    losses = Scripted(lambda _: [[1.0, 5.0, 1.0], [5.0, 1.0, 5.0]])
    refined, score = refine_labels(losses, np.array([1, 0, 0]))
    assert refined.tolist() == [0, 1, 0]
    assert score == 1.0


def test_a_labelling_seen_before_ends_the_search_and_the_best_one_is_kept() -> None:
    # The second learner always wants to be where it is not; where it starts it loses less.
    def restless(labels: Any) -> Any:
        here = labels[1]
        table = np.array([[1.0, 0.0, 9.0], [9.0, 0.0, 1.0]])
        table[here, 1], table[1 - here, 1] = (4.0, 3.0) if here == 0 else (8.0, 2.0)
        return table

    losses = Scripted(restless)
    refined, score = refine_labels(losses, np.array([0, 0, 1]))
    assert refined.tolist() == [0, 0, 1]
    assert score == pytest.approx((1 + 4 + 1) / 3)
    assert len(losses.calls) == 2


def test_the_rounds_are_limited() -> None:
    # Every labelling looks a little better than the last, and there are always others to see.
    def endless(labels: Any) -> Any:
        step = int(labels @ [1, 2, 4])
        table = np.full((2, 3), 10.0 - step)
        following = [(step + 1) >> bit & 1 for bit in range(3)]
        table[following, range(3)] -= 1.0
        return table

    losses = Scripted(endless)
    refine_labels(losses, np.array([0, 0, 0]), rounds=3)
    assert len(losses.calls) == 3
    assert losses.calls == [[0, 0, 0], [1, 0, 0], [0, 1, 0]]


def test_without_refining_the_labels_are_the_paper_s() -> None:
    rows = {"X": DATA.X, "y": DATA.y, "groups": DATA.groups}
    selection = select_models(**rows, candidates=["lr"])
    exchange = cross_evaluate(selection, **rows)
    for k in (2, 3):
        from_rows = cluster_learners(exchange, **rows, selection=selection, n_clusters=k, refine=None)
        from_losses = cluster_learners(exchange, n_clusters=k)
        assert np.array_equal(from_rows.labels, from_losses.labels)


def test_refining_repairs_what_the_spectrum_gets_wrong() -> None:
    # A scale far too small makes all learners look alike; starts from moments tell them apart.
    data = make_linear_learners(n_learners=8, n_truths=2, n_rows=40, n_features=3, random_state=2)
    fits = {
        refine: CoterieRegressor(["lr"], n_clusters=2, scale=1e-300, refine=refine)
        .fit(data.X, data.y, groups=data.groups)
        .learner_labels_
        for refine in (None, "pooled")
    }
    assert not np.array_equal(fits[None], data.truth)
    assert np.array_equal(fits["pooled"], data.truth)
