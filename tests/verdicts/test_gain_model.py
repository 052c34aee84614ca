"""What learners may expect, by simulated federations of which the truth is known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie._arrays import Array
from coterie.verdicts.gain_model import (
    NOTHING_MEASURED,
    ExpectedGains,
    chance_of_loss,
    discoveries,
    expect_gains,
    fit_gain_model,
    usual_distance,
)
from coterie.verdicts.verdict import COLLABORATE, STAY_ALONE, judge

MANY = 1e9


def expected_of(ratios: Array, errors: Array, apart: Array, n_rows: Array) -> ExpectedGains:
    return fit_gain_model(ratios, errors, apart, n_rows).expect(ratios, errors, apart, n_rows)


def columns(
    ratios: list[float] | Array, errors: list[float] | Array, apart: float = 1.0, rows: float = MANY
) -> tuple[Array, Array, Array, Array]:
    """Return learners whose predictions are far apart, on so many rows that nobody has any luck."""
    n = len(ratios)
    return np.array(ratios), np.array(errors), np.full(n, apart), np.full(n, rows)


def test_who_has_much_evidence_keeps_its_own_estimate_and_who_has_little_gets_the_mean() -> None:
    rng = np.random.default_rng(0)
    true = rng.normal(0.5, 0.3, 60)
    errors = np.r_[1e-3, 30.0, np.full(58, 0.05)]
    ratios = true + errors * rng.normal(size=60)
    ratios[:2] = -0.7, -9.0
    found = expected_of(*columns(ratios, errors))
    assert found.mean[0] == pytest.approx(-0.7, abs=0.01)
    assert found.mean[1] == pytest.approx(true[2:].mean(), abs=0.15)
    # The interval of the one is that of its rows, that of the other the spread between learners.
    assert found.high[0] - found.low[0] < 0.01
    assert found.high[1] - found.low[1] > 0.5


def test_who_has_fewer_rows_is_expected_to_gain_more_where_predictions_are_further_apart() -> None:
    rng = np.random.default_rng(0)
    n_rows = rng.integers(5, 200, 80).astype(float)
    apart, errors = 5 / n_rows, np.full(80, 0.1)
    # All of the distance is what own models err.
    model = fit_gain_model(apart + errors * rng.normal(size=80), errors, apart, n_rows)
    # Two who measured nothing of use.
    new = np.array([5.0, 200.0])
    few, many = model.expect(np.zeros(2), np.full(2, 50.0), 5 / new, new).mean
    assert few == pytest.approx(1.0, abs=0.25)
    assert many == pytest.approx(0.0, abs=0.1)


def test_where_predictions_are_nearly_the_same_there_is_little_to_gain_or_to_lose() -> None:
    rng = np.random.default_rng(0)
    apart = np.repeat([1.0, 1e-4], 30)
    ratios = np.repeat([0.5, 0.0], 30) + 0.2 * rng.normal(size=60)
    found = expected_of(ratios, np.full(60, 0.2), apart, np.full(60, MANY))
    assert np.abs(found.mean[30:]).max() < 0.02
    assert found.mean[:30].mean() == pytest.approx(0.5, abs=0.1)
    assert set(judge(found)[:30]) == {COLLABORATE}


def test_a_distance_that_few_rows_show_is_believed_by_half() -> None:
    usual = usual_distance(np.array([1.0, 4.0, 0.0]), np.full(3, 100.0), 100.0)
    assert usual.tolist() == [1.0, 2.0, 0.0]
    # Ten times the rows bring predictions ten times nearer, where they are typical.
    assert usual_distance(np.array([0.1]), np.array([1000.0]), 100.0)[0] == pytest.approx(0.1)
    assert usual_distance(np.array([0.7]), np.array([10.0]), 0.0)[0] == 0.7


@pytest.mark.parametrize(("parameters", "others"), [(3, 0.3), (5, 0.1), (20, 0.5)])
def test_the_chance_of_loss_is_that_of_own_models_of_so_many_parameters(
    parameters: int, others: float
) -> None:
    n_rows = 50.0
    rng = np.random.default_rng(0)
    own = parameters / n_rows
    errs = rng.chisquare(parameters, 100_000) / n_rows
    true = np.mean(errs < others * own)
    known = np.array([own * (1 - others)]), np.zeros(1), np.array([own * (1 + others)]), np.array([n_rows])
    assert chance_of_loss(*known)[0] == pytest.approx(true, abs=0.01)


def test_those_who_are_unlike_everybody_are_not_told_what_holds_for_the_others() -> None:
    evidence, fits = columns([0.5] * 12 + [0.05], [0.1] * 12 + [0.3]), np.arange(13) < 12
    expected, _ = expect_gains(*evidence, np.ones(13, dtype=bool), np.zeros(13))
    apart, model = expect_gains(*evidence, fits, np.zeros(13))
    assert judge(expected).tolist() == [COLLABORATE] * 13
    assert judge(apart).tolist() == [COLLABORATE] * 12 + ["no clear difference"]
    # Newcomers that fit are judged by those who fit.
    known = columns([0.5] * 12, [0.1] * 12)
    np.testing.assert_allclose(model.shares, fit_gain_model(*known).shares)
    np.testing.assert_allclose(apart.mean[:12], fit_gain_model(*known).expect(*known).mean)


def test_others_who_err_by_nothing_cost_nothing_and_who_err_by_all_the_distance_do() -> None:
    ratios, zero, rows = np.array([1.0, -1.0, 0.0]), np.zeros(3), np.full(3, 30.0)
    assert chance_of_loss(ratios, zero, np.ones(3), rows)[:2].tolist() == [0.0, 1.0]
    assert 0.4 < chance_of_loss(ratios, zero, np.ones(3), rows)[2] < 0.7
    assert np.isfinite(chance_of_loss(zero, zero, zero, rows)).all()


def test_intervals_hold_what_they_promise() -> None:
    rng = np.random.default_rng(0)
    inside = []
    for _ in range(40):
        true, errors = rng.normal(0.2, 0.2, 20), rng.uniform(0.05, 0.3, 20)
        found = expected_of(*columns(true + errors * rng.normal(size=20), errors))
        inside.append((found.low <= true) & (true <= found.high))
    assert 0.85 < np.mean(inside) < 0.95


@pytest.mark.parametrize("n_learners", [1, 2, 3])
def test_few_learners_are_judged_by_their_own_evidence(n_learners: int) -> None:
    clear = expected_of(*columns([0.6] * n_learners, [0.02] * n_learners))
    assert np.isfinite([clear.mean, clear.low, clear.high]).all()
    assert judge(clear).tolist() == [COLLABORATE] * n_learners
    harmed = expected_of(*columns([-0.6] * n_learners, [0.02] * n_learners))
    assert judge(harmed).tolist() == [STAY_ALONE] * n_learners
    unclear = expected_of(*columns([0.1] * n_learners, [0.5] * n_learners))
    assert set(judge(unclear).tolist()) == {"no clear difference"}


def test_nobody_may_be_there() -> None:
    nobody = expected_of(*columns([], []))
    assert nobody.mean.shape == nobody.chance_of_loss.shape == (0,)
    # Newcomers are then judged by the prior and by what they measured.
    new = NOTHING_MEASURED.expect(*columns([1.0, 1.0], [0.01, 100.0]))
    assert 0.5 < new.mean[0] <= 1.0
    assert abs(new.mean[1]) < 0.1


def test_a_tiny_error_is_believed() -> None:
    found = expected_of(*columns([0.4, 0.1, -0.2, 0.0], [1e-7, 0.1, 0.1, 0.1]))
    assert found.mean[0] == pytest.approx(0.4, abs=1e-5)
    assert np.isfinite(found.chance_of_loss).all()


@given(st.permutations(range(6)))
def test_the_order_of_learners_does_not_matter(order: list[int]) -> None:
    ratios, errors = np.array([0.5, -0.2, 0.1, 0.0, 0.3, 0.9]), np.linspace(0.05, 0.5, 6)
    apart, n_rows = np.linspace(0.1, 1.0, 6), np.array([10.0, 20, 40, 80, 160, 320])
    one, other = (
        expected_of(ratios[o], errors[o], apart[o], n_rows[o]) for o in (np.arange(6), np.array(order))
    )
    for name in ("mean", "spread", "low", "high", "chance_of_loss", "chance_of_no_harm"):
        np.testing.assert_allclose(getattr(other, name), getattr(one, name)[np.array(order)], rtol=1e-7)


def test_what_gains_and_what_loses_are_mirror_images() -> None:
    ratios, *rest = columns([0.5, -0.2, 0.1, 0.3], [0.1, 0.2, 0.05, 0.4])
    one, other = expected_of(ratios, *rest), expected_of(-ratios, *rest)
    np.testing.assert_allclose(other.mean, -one.mean, atol=1e-12)
    # Luck aside, which own models have.
    np.testing.assert_allclose(other.chance_of_loss, one.chance_of_no_harm, atol=0.1)


def test_harm_is_measured_from_its_bound() -> None:
    evidence = columns([-0.2, -0.2], [0.05, 0.05])
    found = fit_gain_model(*evidence).expect(*evidence, harm=np.array([0.0, -0.4]))
    assert found.chance_of_no_harm[0] < 0.1
    assert found.chance_of_no_harm[1] > 0.9


@given(st.lists(st.floats(0, 1), max_size=30), st.floats(0.01, 0.5))
def test_the_mean_chance_of_those_who_are_named_is_within_the_rate(chances: list[float], rate: float) -> None:
    named = discoveries(np.array(chances), rate)
    assert named.shape == (len(chances),)
    if named.any():
        verdicts = np.array(chances)[named]
        assert verdicts.mean() <= rate + 1e-12
        assert verdicts.max() < 0.5
        # Nobody with a smaller chance is passed over.
        assert (np.array(chances)[~named] >= verdicts.max() - 1e-12).all()


def false_rates(
    true: Callable[[np.random.Generator], Array], *, n: int = 200, n_learners: int = 20
) -> tuple[float, float, float]:
    """Return the mean share of false ones among those told to collaborate, and to stay alone; who is told.

    What is told wrongly is counted in simulated federations of learners with true log ratios (L,).
    """
    rng = np.random.default_rng(0)
    rates = []
    for _ in range(n):
        errors, truth = rng.uniform(0.05, 0.3, n_learners), true(rng)
        verdict = judge(expected_of(*columns(truth + errors * rng.normal(size=n_learners), errors, 0.5)))
        helps, harms = verdict == COLLABORATE, verdict == STAY_ALONE
        false = [(helps & (truth <= 0)).sum() / max(helps.sum(), 1)]
        false.append((harms & (truth >= 0)).sum() / max(harms.sum(), 1))
        rates.append((*false, helps.mean()))
    collaborate, stay, verdicts = np.mean(rates, axis=0)
    return float(collaborate), float(stay), float(verdicts)


def test_where_nobody_gains_hardly_anybody_is_told_anything() -> None:
    # Everybody who is told anything here is told so wrongly, so one chance finding makes a rate of one.
    collaborate, stay, verdicts = false_rates(lambda rng: np.zeros(20))
    assert collaborate <= 0.2
    assert stay <= 0.2
    assert verdicts <= 0.1
    # Where others harm a little, nobody is told to collaborate.
    assert false_rates(lambda rng: np.full(20, -0.2))[0] <= 0.02


@pytest.mark.parametrize("spread", [0.05, 0.2, 0.5])
@pytest.mark.parametrize("mean", [-0.1, 0.0, 0.1])
def test_what_is_told_is_seldom_wrong(mean: float, spread: float) -> None:
    collaborate, stay, _ = false_rates(lambda rng: mean + spread * rng.normal(size=20))
    assert collaborate <= 0.14
    assert stay <= 0.14


def test_most_large_gains_are_found() -> None:
    assert false_rates(lambda rng: rng.uniform(0.3, 0.6, 20))[2] > 0.95
