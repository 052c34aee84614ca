"""The noise is exact and as the promise asks; an attacker who knows all but one row finds no more."""

from __future__ import annotations

from itertools import combinations_with_replacement
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, chisquare, norm

from coterie.federated import ProtocolError
from coterie.federated.checks import MOST_COLUMNS
from coterie.federated.moments import noise
from coterie.federated.moments.noise import (
    LENGTH,
    UNIT,
    check_promise,
    discrete_gaussian,
    largest_rho,
    log_delta,
    noise_scale,
    noise_variance,
    noisy,
    on_grid,
    summed,
)
from coterie.federated.tables import Promise


def delta_of(scale: float, epsilon: float) -> float:
    """Return the delta of continuous Gaussian noise at sensitivity one, as Balle and Wang (2018) state it."""
    return norm.cdf(0.5 / scale - epsilon * scale) - np.exp(epsilon) * norm.cdf(
        -0.5 / scale - epsilon * scale
    )


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6])
def test_the_accounting_promises_less_than_is_true_and_little_less(epsilon, delta):
    scale = np.sqrt(0.5 / largest_rho(epsilon, delta))
    # The best that is known of Gaussian noise holds, and with a fifth to a quarter less noise it does not.
    assert delta_of(scale, epsilon) <= delta
    assert delta_of(scale / (1.1 if delta < 1e-3 else 1.2), epsilon) > delta


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 30.0, 900.0])
@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-12])
def test_the_search_finds_the_best_order(epsilon, delta):
    rho = largest_rho(epsilon, delta)
    over = np.exp(np.linspace(-25, 40, 400_001))
    proven = over * ((1 + over) * rho - epsilon) - np.log(over) - (1 + over) * np.log1p(1 / over)
    assert log_delta(rho, epsilon) == pytest.approx(proven.min(), abs=1e-6)
    assert log_delta(rho, epsilon) <= np.log(delta)


@settings(max_examples=30, deadline=None)
@given(st.floats(0.01, 100), st.floats(1e-12, 1e-2))
def test_more_privacy_takes_more_noise(epsilon, delta):
    rho = largest_rho(epsilon, delta)
    assert np.isfinite(rho)
    assert largest_rho(2 * epsilon, delta) > rho
    assert largest_rho(epsilon, delta / 2) < rho


def test_a_promise_that_no_noise_keeps_is_refused_in_a_sentence():
    with pytest.raises(ProtocolError, match="larger epsilon or delta"):
        largest_rho(1e-9, 1e-12)


@pytest.mark.parametrize("promise", [Promise(0.0, 1e-6), Promise(1.0, 0.5), Promise(1.0, -1.0)])
def test_what_promises_nothing_is_refused(promise):
    with pytest.raises(ProtocolError, match="must be positive"):
        check_promise(promise)


def test_no_promise_takes_no_noise():
    assert noise_scale(None) == 0.0


@pytest.mark.parametrize("variance", [1, 2, 7, 50])
def test_the_sampler_has_the_probabilities_of_the_discrete_gaussian(variance):
    below = Random(variance).randrange
    n, edge = 20_000, 3 * int(np.sqrt(variance)) + 1
    drawn = np.array([discrete_gaussian(variance, below) for _ in range(n)])
    values = np.arange(-50 * edge, 50 * edge + 1)
    weights = np.exp(-(values**2) / (2 * variance))
    # The tails are one cell.
    middle = np.abs(values) < edge
    wanted = np.append(weights[middle], weights[~middle].sum()) / weights.sum() * n
    seen = np.append([(drawn == value).sum() for value in values[middle]], (np.abs(drawn) >= edge).sum())
    assert chisquare(seen, wanted).pvalue > 1e-3


def test_the_sampler_computes_with_integers_alone():
    def below(limit):
        assert type(limit) is int
        return generator.randrange(limit)

    generator = Random(0)
    drawn = [discrete_gaussian(noise_variance(Promise(1.0, 1e-6)), below) for _ in range(50)]
    assert all(type(value) is int for value in drawn)
    # All bits of a number are drawn, the last ones too.
    assert len({value % 64 for value in drawn}) > 20


def test_a_message_holds_numbers_of_the_grid_whatever_the_moments_are():
    rows = np.random.default_rng(0).normal(size=(50, 4))
    sums = summed(on_grid(rows / np.linalg.norm(rows, axis=1, keepdims=True)))
    for moments in (sums, np.zeros((4, 4))):
        found = noisy([moments], Promise(1.0, 1e-6), Random(0).randrange)
        assert (found * UNIT**2 == np.rint(found * UNIT**2)).all()


def test_the_noise_is_symmetric_and_of_one_size_in_every_direction():
    promise, below = Promise(1.0, 1e-6), Random(0).randrange
    drawn = noisy(np.zeros((2000, 2, 3, 3)), promise, below)
    assert (drawn == np.swapaxes(drawn, -1, -2)).all()
    scale = noise_scale(promise)
    spread = drawn.std(axis=0)
    assert np.allclose(spread[:, range(3), range(3)], scale, rtol=0.06)
    assert np.allclose(spread[:, 0, 1], scale / np.sqrt(2), rtol=0.06)
    # What a line loses is u'Mu: its noise has the spread of M's times u'u.
    u = np.array([1.0, -2.0, 0.5])
    assert np.einsum("q,nhqr,r->nh", u, drawn, u).std() == pytest.approx(scale * (u @ u), rel=0.06)


def test_noise_comes_from_the_system_and_from_nowhere_else(monkeypatch):
    first, second = (noisy(np.zeros((1, 3, 3)), Promise(1.0, 1e-6)) for _ in range(2))
    assert (first != second).all()
    drawn = []
    monkeypatch.setattr(noise, "randbelow", lambda limit: drawn.append(limit) or Random(0).randrange(limit))
    noisy(np.zeros((1, 1, 1)), Promise(1.0, 1e-6))
    assert drawn


@pytest.mark.parametrize("size", [2, 30, MOST_COLUMNS + 2])
def test_one_row_moves_moments_by_no_more_than_the_noise_allows_for(size):
    generator = np.random.default_rng(0)
    rows = generator.normal(size=(8, size))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    # Rounding makes rows longest where all numbers are rounded up.
    rows[0] = (np.floor(UNIT / np.sqrt(size) - 0.51) + 0.51) / UNIT
    whole = on_grid(rows).astype(object)
    for first, second in combinations_with_replacement(whole, 2):
        a, b, c = ((x * y).sum() for x, y in ((first, first), (second, second), (first, second)))
        assert 0 < a <= LENGTH**2
        assert a * a + b * b - 2 * c * c <= 2 * LENGTH**4
    # What is too long, by a fault elsewhere, is nothing.
    assert not on_grid(1.001 * rows[1:]).any()
    # The account is that of two rows at right angles, as long as can be.
    promise = Promise(1.0, 1e-6)
    rho = 2 * LENGTH**4 / (2 * noise_variance(promise))
    assert log_delta(rho, 1.0) <= np.log(1e-6)


def test_sums_are_exact_beyond_what_64_bits_hold(monkeypatch):
    rows = on_grid(np.eye(2)[[0, 0, 0, 1]])
    monkeypatch.setattr(noise, "MOST_ADDED", 2)
    assert summed(rows).tolist() == [[3 * UNIT**2, 0], [0, UNIT**2]]
    # The products of so many rows at a time do not overflow.
    assert 2**21 * LENGTH**2 < 2**63


def found_epsilon(draw, delta: float, n: int = 8_000) -> float:
    """Return the epsilon that an attacker shows, with 99 % confidence, to be the least that holds.

    ``draw(row)`` returns a message about a table whose last row is ``row``; the attacker knows all the other
    rows and which two the last one may be. It projects on the difference and guesses by a threshold.
    """
    one, other = np.eye(2)
    direction = np.outer(one, one) - np.outer(other, other)
    first, second = (np.array([np.sum(draw(row) * direction) for _ in range(n)]) for row in (one, other))
    best = 0.0
    # Thresholds are chosen on one half of the draws and judged on the other, for else luck would be picked.
    for threshold in np.quantile(first[: n // 2], [0.02, 0.05, 0.1, 0.2, 0.5, 0.8]):
        for hits, alarms in (
            ((first > threshold), (second > threshold)),
            ((second < threshold), (first < threshold)),
        ):
            hit, alarm = hits[n // 2 :].sum(), alarms[n // 2 :].sum()
            # Bonferroni over twelve tests with two bounds each.
            level, m = 0.01 / 24, n - n // 2
            low = beta.ppf(level, hit, m - hit + 1) if hit else 0.0
            high = beta.ppf(1 - level, alarm + 1, m - alarm) if alarm < m else 1.0
            if low > delta:
                best = max(best, float(np.log((low - delta) / high)))
    return best


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-2), (3.0, 1e-3)])
def test_an_attacker_finds_no_larger_epsilon_than_was_promised(epsilon, delta, monkeypatch):
    promise, below = Promise(epsilon, delta), Random(0).randrange
    others = summed(on_grid(np.full((9, 2), 0.5)))

    def draw(row):
        return noisy([others + summed(on_grid(row[None]))], promise, below)[0]

    variance = noise_variance(promise)
    kept = found_epsilon(draw, delta)
    assert kept <= epsilon
    # The attack is a good one: it finds much of what is there, and a third of the noise is not enough for it.
    assert kept > 0.4 * epsilon
    monkeypatch.setattr(noise, "noise_variance", lambda _: variance // 9)
    assert found_epsilon(draw, delta) > epsilon
