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
    Expected,
    discoveries,
    fit_gain_model,
)
from coterie.verdicts.verdict import COLLABORATE, STAY_ALONE, judge


def expected_of(ratios: Array, errors: Array, n_rows: Array) -> Expected:
    return fit_gain_model(ratios, errors, n_rows).expect(ratios, errors, n_rows)


def columns(ratios: list[float], errors: list[float]) -> tuple[Array, Array, Array]:
    return np.array(ratios), np.array(errors), np.full(len(ratios), 50.0)


def test_who_has_much_evidence_keeps_its_own_estimate_and_who_has_little_gets_the_mean() -> None:
    rng = np.random.default_rng(0)
    true = rng.normal(0.5, 0.3, 60)
    errors = np.r_[1e-3, 30.0, np.full(58, 0.05)]
    ratios = true + errors * rng.normal(size=60)
    ratios[:2] = -0.7, -9.0
    found = expected_of(ratios, errors, np.full(60, 50.0))
    assert found.mean[0] == pytest.approx(-0.7, abs=0.01)
    assert found.mean[1] == pytest.approx(true[2:].mean(), abs=0.15)
    # The interval of the one is that of its rows, that of the other the spread between learners.
    assert found.high[0] - found.low[0] < 0.01
    assert found.high[1] - found.low[1] > 0.5


def test_who_has_fewer_rows_is_expected_to_gain_more_where_that_is_so() -> None:
    rng = np.random.default_rng(0)
    n_rows = rng.integers(5, 200, 80).astype(float)
    errors = np.full(80, 0.1)
    ratios = 5 / n_rows + errors * rng.normal(size=80)
    model = fit_gain_model(ratios, errors, n_rows)
    # Two who measured nothing of use.
    few, many = model.expect(np.zeros(2), np.full(2, 50.0), np.array([5.0, 200.0])).mean
    assert few == pytest.approx(1.0, abs=0.25)
    assert many == pytest.approx(0.0, abs=0.1)


def test_intervals_hold_what_they_promise() -> None:
    rng = np.random.default_rng(0)
    inside = []
    for _ in range(40):
        true, errors = rng.normal(0.2, 0.2, 20), rng.uniform(0.05, 0.3, 20)
        found = expected_of(true + errors * rng.normal(size=20), errors, np.full(20, 50.0))
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
    n_rows = np.array([10.0, 20, 40, 80, 160, 320])
    one, other = (expected_of(ratios[o], errors[o], n_rows[o]) for o in (np.arange(6), np.array(order)))
    for name in ("mean", "spread", "low", "high", "chance_of_loss", "chance_of_no_harm"):
        np.testing.assert_allclose(getattr(other, name), getattr(one, name)[np.array(order)], rtol=1e-7)


def test_what_gains_and_what_loses_are_mirror_images() -> None:
    ratios, errors, n_rows = columns([0.5, -0.2, 0.1, 0.3], [0.1, 0.2, 0.05, 0.4])
    one, other = expected_of(ratios, errors, n_rows), expected_of(-ratios, errors, n_rows)
    np.testing.assert_allclose(other.mean, -one.mean, atol=1e-12)
    np.testing.assert_allclose(other.chance_of_loss, one.chance_of_no_harm, atol=1e-12)


def test_harm_is_measured_from_its_bound() -> None:
    ratios, errors, n_rows = columns([-0.2, -0.2], [0.05, 0.05])
    model = fit_gain_model(ratios, errors, n_rows)
    found = model.expect(ratios, errors, n_rows, harm=np.array([0.0, -0.4]))
    assert found.chance_of_no_harm[0] < 0.1
    assert found.chance_of_no_harm[1] > 0.9


@given(st.lists(st.floats(0, 1), max_size=30), st.floats(0.01, 0.5))
def test_the_mean_chance_of_those_who_are_named_is_within_the_rate(chances: list[float], rate: float) -> None:
    named = discoveries(np.array(chances), rate)
    assert named.shape == (len(chances),)
    if named.any():
        told = np.array(chances)[named]
        assert told.mean() <= rate + 1e-12
        assert told.max() < 0.5
        # Nobody with a smaller chance is passed over.
        assert (np.array(chances)[~named] >= told.max() - 1e-12).all()


def federations(
    true: Callable[[np.random.Generator, Array], Array], *, n: int = 200, n_learners: int = 20
) -> tuple[list[Array], list[Array], list[Array]]:
    """Return verdicts, true log ratios and standard errors of simulated federations."""
    rng = np.random.default_rng(0)
    verdicts, truths, spreads = [], [], []
    for _ in range(n):
        errors = rng.uniform(0.05, 0.3, n_learners)
        n_rows = rng.integers(10, 200, n_learners).astype(float)
        truth = true(rng, errors)
        ratios = truth + errors * rng.normal(size=n_learners)
        verdicts.append(judge(expected_of(ratios, errors, n_rows)))
        truths.append(truth)
        spreads.append(errors)
    return verdicts, truths, spreads


def false_rates(verdicts: list[Array], truths: list[Array]) -> tuple[float, float]:
    """Return the mean share of false ones among those told to collaborate, and to stay alone."""
    rates = []
    for verdict, sign in ((COLLABORATE, 1), (STAY_ALONE, -1)):
        pairs = zip(verdicts, truths, strict=True)
        told = [((v == verdict) & (sign * t <= 0), v == verdict) for v, t in pairs]
        rates.append(float(np.mean([false.sum() / max(all_told.sum(), 1) for false, all_told in told])))
    return rates[0], rates[1]
