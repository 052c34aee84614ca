from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from coterie import CoterieRegressor, cluster_learners
from coterie.datasets import make_linear_learners
from coterie.engines import ThreadEngine
from coterie.method.n_clusters.evidence import Evidence
from coterie.method.n_clusters.held_out import (
    RULE,
    best_refined,
    held_out,
    one_is_as_good,
    second_is_better,
)
from coterie.method.refine.losses import LocalRows
from coterie.method.refine.pooled import PooledLosses
from coterie.method.refine.refits import pooled_losses
from coterie.method.spectral import tidy_labels
from coterie.records import Exchange, Selection
from coterie.rows.learners import Learners

Rows = tuple[Learners, Selection, Exchange, Any]
SIZES = np.array([[6, 4], [5, 5], [4, 6], [5, 5], [5, 5], [5, 5]])


class Scripted:
    """Answers what clusters lose by a script: from the number of clusters to losses (K, L, 2)."""

    bounded = False
    noise = np.full(6, 2.0)
    half_sizes = SIZES

    def __init__(self, script: Callable[[int], Any], excess: Any = 0.0, error: Any = 1.0) -> None:
        self.script, self.excess, self.error = script, excess, error
        self.calls: list[int] = []

    def on_halves(self, labels: Any) -> Any:
        k = int(labels.max()) + 1
        self.calls.append(k)
        return np.broadcast_to(self.script(k), (k, 6, 2)).astype(float)

    def paired_t(self, *_: Any) -> tuple[Any, Any]:
        return np.broadcast_to(self.excess, 6), np.broadcast_to(self.error, 6)


@pytest.fixture
def blocks(block_losses: Callable[..., Any], evidence_of: Callable[..., Any]) -> Evidence:
    """Six learners that can be told apart into any number of clusters."""
    losses = 1.0 + np.abs(np.subtract.outer(np.arange(6.0), np.arange(6.0))) ** 2
    evidence: Evidence = evidence_of(losses, most=6, scale=0.1)
    assert [int(evidence.labels(k).max()) + 1 for k in range(1, 7)] == [1, 2, 3, 4, 5, 6]
    return evidence


def steps(*values: float) -> Callable[[int], Any]:
    """Give every learner the same loss, by the number of clusters."""
    return lambda k: values[min(k, len(values)) - 1]


def test_values_are_the_mean_loss_in_units_of_noise(blocks: Evidence) -> None:
    answer = held_out(blocks, Scripted(steps(8, 4, 2, 2, 2, 2)), refine=False)
    assert answer.curve.rule == "held-out"
    assert_allclose(answer.curve.values[:3], [4, 2, 1])
    assert answer.curve.chosen == 3


def test_each_half_is_predicted_by_the_cluster_that_is_best_on_the_other_half(blocks: Evidence) -> None:
    # Of two clusters the first is best on the first half and the second on the second; swapped, both lose.
    halves = np.array([[1.0, 7.0], [9.0, 3.0]])[:, None, :]
    answer = held_out(blocks, Scripted(lambda k: halves if k == 2 else 100.0), refine=False)
    # The first half goes to the second cluster (9), the second half to the first (7), weighted by rows.
    expected = (SIZES @ [9.0, 7.0]) / SIZES.sum(axis=1) / 2
    assert_allclose(answer.curve.values[1], expected.mean())


def test_the_smallest_number_within_two_standard_errors_of_the_best_is_chosen(blocks: Evidence) -> None:
    # Differences to the best have the standard error 1.095 / sqrt(6) / 2 = 0.2236 in units of noise. The
    # Student quantile of five degrees of freedom for two standard errors is 2.65: the bound is at 1.19.
    spread = np.array([-1.0, 1, -1, 1, -1, 1])[:, None]
    for shift, chosen in ((1.15, 1), (1.25, 2)):
        script = [10 + shift + spread, 10.0, 20, 20, 20, 20]
        answer = held_out(blocks, Scripted(lambda k, s=script: s[k - 1]), refine=False)
        assert answer.curve.chosen == chosen, shift


@pytest.mark.slow
@pytest.mark.parametrize("n_learners", [2, 3, 4, 6])
def test_few_learners_of_one_truth_are_one_cluster(n_learners: int) -> None:
    several = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        X, owner = rng.normal(size=(30 * n_learners, 2)), np.repeat(np.arange(n_learners), 30)
        y = X @ rng.normal(size=2) + rng.normal(size=len(owner))
        model = CoterieRegressor("ridge", n_bootstrap=0, collaboration="local").fit(X, y, groups=owner)
        several += model.n_clusters_ > 1
    assert several <= 5


def test_zeros_among_the_responses_are_no_second_truth() -> None:
    several = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, owner = rng.normal(size=(600, 3)), np.repeat(np.arange(15), 40)
        y = np.where(rng.random(600) < 0.8, 0, rng.exponential(5, 600))
        model = CoterieRegressor("ridge", n_bootstrap=0, collaboration="local").fit(X, y, groups=owner)
        several += model.n_clusters_ > 1
    assert several <= 1


def test_a_gain_of_nothing_is_no_reason(blocks: Evidence) -> None:
    losses = Scripted(steps(1.0, 0.999, 1, 1, 1, 1))
    assert held_out(blocks, losses, refine=False).curve.chosen == 1


def test_suggestions_are_refined_beside_the_start(three_truths: Rows, monkeypatch: Any) -> None:
    learners, selection, exchange, truth = three_truths
    chosen, known = selection.aligned_to(learners.ids), exchange.aligned_to(learners.ids)
    losses, local = pooled_losses(learners, chosen, known, ThreadEngine())
    evidence = Evidence(known, 1.0, 6, seed=0)
    # A start from which nobody would move: two clusters are empty.
    monkeypatch.setattr(Evidence, "labels", lambda self, k: np.zeros(12, dtype=np.int64))
    assert np.array_equal(tidy_labels(best_refined(evidence, losses, 3, local)), truth)
    assert not np.array_equal(tidy_labels(best_refined(evidence, losses, 3)), truth)


def test_one_learner_who_is_significantly_worse_forbids_the_smaller_number(blocks: Evidence) -> None:
    # However bad one learner is, the mean is never more than one of its standard errors away. But over its
    # rows he is: t with 9 degrees of freedom exceeds 5.602 with a probability of one per mille over six.
    alone = np.array([0, 0, 0, 0, 60.0, 0])[:, None]
    for t, chosen in ((5.5, 1), (5.7, 2)):
        losses = Scripted(lambda k: [10 + alone, 10.0, 20, 20, 20, 20][k - 1], excess=t * alone[:, 0] / 60)
        assert held_out(blocks, losses, refine=False).curve.chosen == chosen, t
        # Where learners are known by what they say, one of them may lie.
        losses.bounded = True
        assert held_out(blocks, losses, refine=False).curve.chosen == 1


def test_two_learners_who_are_worse_forbid_it_where_voices_are_bounded(blocks: Evidence) -> None:
    alone = np.array([0, 0, 60.0, 0, 60.0, 0])[:, None]
    losses = Scripted(lambda k: [10 + alone, 10.0, 20, 20, 20, 20][k - 1], excess=alone[:, 0])
    losses.bounded = True
    assert held_out(blocks, losses, refine=False).curve.chosen == 2


def test_the_search_ends_when_more_clusters_have_not_paid_for_a_while(
    evidence_of: Callable[..., Any],
) -> None:
    losses = 1.0 + np.abs(np.subtract.outer(np.arange(6.0), np.arange(6.0))) ** 2

    # More clusters are a little worse each, but not surely.
    def alike(k: int) -> Any:
        return 10.0 + 0.01 * k * (1 + np.array([-9.0, 9, -9, 9, -9, 9]))[:, None]

    answer = held_out(evidence_of(losses, most=6, scale=0.1), Scripted(alike), refine=False)
    assert answer.curve.n_clusters.tolist() == list(range(1, RULE.patience + 2))
    assert answer.curve.chosen == 1


def test_excess_says_how_well_clusters_explain_the_learners(blocks: Evidence) -> None:
    ratios = np.array([0.7, 0.9, 0.7, 0.9, 0.7, 0.9])
    answer = held_out(blocks, Scripted(lambda k: 2 * ratios[:, None] * k), refine=False)
    assert answer.curve.chosen == 1
    assert answer.excess == pytest.approx((0.8 - 1) / (ratios.std(ddof=1) / np.sqrt(6)))


def test_labels_are_kept_for_every_number_looked_at(blocks: Evidence) -> None:
    answer = held_out(blocks, Scripted(steps(8, 4, 2, 2, 2, 2)), refine=False)
    assert sorted(answer.labels) == answer.curve.n_clusters.tolist()
    assert all(len(set(labels.tolist())) == k for k, labels in answer.labels.items())


def test_refining_from_three_starts_finds_the_truth(three_truths: Rows) -> None:
    learners, selection, exchange, truth = three_truths
    chosen, known = selection.aligned_to(learners.ids), exchange.aligned_to(learners.ids)
    losses, local = pooled_losses(learners, chosen, known, ThreadEngine())
    # A scale that is far too small blinds the first start; the others see.
    evidence = Evidence(known, 1e-9, 6, seed=0)
    labels = best_refined(evidence, losses, 3, local)
    assert np.array_equal(tidy_labels(labels), truth)


@pytest.mark.parametrize("refine", ["pooled", "average", None])
def test_three_truths_are_found(three_truths: Rows, refine: str | None) -> None:
    learners, selection, exchange, truth = three_truths
    partition = cluster_learners(
        exchange, learners, selection=selection, n_clusters="held-out", refine=refine
    )
    assert partition.rule == "held-out"
    assert partition.clear
    assert partition.notes == ()
    assert np.array_equal(partition.labels, truth)


@pytest.mark.parametrize("refine", ["pooled", "average"])
@pytest.mark.parametrize("noise", [0.375, 6.0])
def test_one_truth_is_one_cluster(refine: str, noise: float) -> None:
    data = make_linear_learners(20, 1, n_rows=40, noise_variance=noise, random_state=0)
    model = CoterieRegressor(["lr"], refine=refine).fit(data.X, data.y, groups=data.groups)
    assert model.n_clusters_ == 1
    assert model.partition_.clear


@pytest.mark.parametrize("attacked", [0, 17])
def test_one_attacked_learner_among_thirty_is_found(attacked: int) -> None:
    data = make_linear_learners(30, 1, random_state=0)
    y = np.where(data.groups == data.learner_ids[attacked], -data.y, data.y)
    model = CoterieRegressor(["lr"]).fit(data.X, y, groups=data.groups)
    assert np.flatnonzero(model.learner_labels_ == 1).tolist() == [attacked]


@pytest.mark.parametrize("seed", range(3))
def test_a_continuum_of_truths_is_answered_with_no_clear_coteries(seed: int) -> None:
    rng = np.random.default_rng(seed)
    own = rng.standard_normal(5) + 0.5 * rng.standard_normal((30, 5))
    data = make_linear_learners(30, coefficients=own, noise_variance=1.0, random_state=seed)
    model = CoterieRegressor(["lr"]).fit(data.X, data.y, groups=data.groups)
    assert not model.partition_.clear
    assert model.partition_.notes[0].startswith("No clear coteries")
    assert model.gains_["gain"].shape == (30,)


def test_one_model_of_a_second_form_may_be_as_good_as_several_clusters() -> None:
    class Fixed:
        """Every cluster loses the same on every learner."""

        bounded = False
        noise = np.ones(4)
        half_sizes = np.full((4, 2), 10)

        def __init__(self, loss: float) -> None:
            self.loss = loss

        def on_halves(self, labels: np.ndarray) -> np.ndarray:
            return np.full((int(labels.max()) + 1, 4, 2), self.loss)

    split = np.array([0, 0, 1, 1])
    assert not one_is_as_good(Fixed(1.0), Fixed(1.1), split)
    assert one_is_as_good(Fixed(1.0), Fixed(0.9), split)
    assert one_is_as_good(Fixed(1.0), Fixed(1.0), split)
    assert not one_is_as_good(Fixed(1.0), Fixed(0.9), np.zeros(4, dtype=int))


def test_a_second_form_wins_by_a_sure_gain_or_with_fewer_clusters() -> None:
    class Fixed:
        """Every cluster loses the same on a learner."""

        bounded = False
        noise = np.ones(12)
        half_sizes = np.full((12, 2), 10)

        def __init__(self, losses: Any) -> None:
            self.losses = np.broadcast_to(losses, 12)

        def on_halves(self, labels: np.ndarray) -> np.ndarray:
            return np.broadcast_to(self.losses[:, None], (int(labels.max()) + 1, 12, 2))

    one, split = np.zeros(12, dtype=int), np.arange(12) % 2
    luck = np.where(np.arange(12) < 7, 0.1, -0.1)
    cheap = Fixed(1.0)
    assert second_is_better(cheap, one, Fixed(0.9), split)
    assert not second_is_better(cheap, one, Fixed(1.0), split)
    # A gain that could be luck does not count, unless it comes with fewer clusters.
    assert not second_is_better(cheap, split, Fixed(1.0 - luck), split)
    assert second_is_better(cheap, split, Fixed(1.0 - luck), one)
    assert not second_is_better(cheap, split, Fixed(1.0 + luck), one)


def test_where_one_truth_was_ruled_out_a_second_form_must_surely_beat_one_cluster() -> None:
    # Two clusters of the cheaper form lose more than one: they were kept because one was ruled out.
    cheap = Scripted(lambda k: [2.0, 2.2][k - 1])
    split, one = np.array([0, 0, 1, 1, 1, 1]), np.zeros(6, dtype=int)
    assert second_is_better(cheap, split, Scripted(lambda _: 2.1), one)
    for loss, better in ((2.1, False), (2.0, False), (1.8, True)):
        assert second_is_better(cheap, split, Scripted(lambda _, x=loss: x), one, ruled_out=True) is better


def test_clusters_are_not_tried_beyond_a_number_that_is_surely_worse(blocks: Evidence) -> None:
    worse = Scripted(lambda k: [1.0, 0.9, 2.0, 2.0, 2.0, 2.0][k - 1] * 2)
    held_out(blocks, worse, refine=False)
    assert max(worse.calls) == 3


class NothingBeyondChance(Scripted):
    """Scripted losses with which everybody stays in its cluster."""

    def on_halves(self, labels: Any) -> Any:
        elsewhere = labels != np.arange(int(labels.max()) + 1)[:, None]
        return super().on_halves(labels) + 1.0 * elsewhere[:, :, None]


def ruling_out_one(deviations: float, gain: float) -> LocalRows:
    return LocalRows(one_truth_test=lambda seed: (deviations, gain))


def test_where_one_truth_could_not_look_like_this_two_are_the_least(blocks: Evidence) -> None:
    losses = NothingBeyondChance(steps(4.0, 4.1, 4.2, 4.3, 4.4, 4.5))
    assert held_out(blocks, losses).curve.chosen == 1
    assert held_out(blocks, losses, ruling_out_one(5.0, 0.1)).curve.chosen == 2
    # A thousandth of the noise is nothing, however surely it is seen.
    for one_truth_z, chosen in (((2.5, 0.02), 2), ((2.5, 5e-3), 2), ((50.0, 1e-4), 1)):
        assert held_out(blocks, losses, ruling_out_one(*one_truth_z)).curve.chosen == chosen
    # Not where a draw of one truth explains as much, nor where nobody is moved.
    assert held_out(blocks, losses, ruling_out_one(0.0, 0.0)).curve.chosen == 1
    assert held_out(blocks, losses, ruling_out_one(5.0, 0.1), refine=False).curve.chosen == 1


def test_truths_that_half_of_the_rows_cannot_tell_apart_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    # Twenty learners of fifty rows, eight predictors, a signal of a fifth of the noise.
    labels = np.repeat([0, 1], 10)
    data = make_linear_learners(20, 2, 50, n_features=8, noise_variance=40.0, labels=labels, random_state=1)
    model = CoterieRegressor(candidates="ridge", collaboration="pooled")
    assert model.fit(data.X, data.y, groups=data.groups).n_clusters_ == 2
    monkeypatch.setattr(PooledLosses, "one_truth_test", lambda self, seed: (0.0, 0.0))
    assert model.fit(data.X, data.y, groups=data.groups).n_clusters_ == 1


def test_a_second_cluster_without_members_is_no_second_cluster(blocks: Evidence) -> None:
    # Everybody prefers the first cluster: refining leaves the second without members.
    losses = Scripted(lambda k: np.arange(4.0, 4.0 + k)[:, None, None])
    answer = held_out(blocks, losses, ruling_out_one(50.0, 0.5))
    assert answer.curve.chosen == 1
    assert answer.curve.one_truth_z is None or answer.labels[answer.curve.chosen].any()


def test_a_note_and_the_bootstrap_know_that_one_was_ruled_out() -> None:
    labels = np.repeat([0, 1], 10)
    data = make_linear_learners(20, 2, 50, n_features=8, noise_variance=40.0, labels=labels, random_state=1)
    model = CoterieRegressor(candidates="ridge", collaboration="pooled")
    model.fit(data.X, data.y, groups=data.groups)
    assert model.partition_.curves["held-out"].one_truth_z > 4
    assert any("one truth" in note for note in model.partition_.notes)
    assert 1 not in model.stability_.n_clusters
