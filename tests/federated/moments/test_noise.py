"""The noise is as little as the promise allows, and an attacker who knows all but one row finds no more."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, norm

from coterie.federated import ProtocolError
from coterie.federated.moments import noise
from coterie.federated.moments.noise import check_promise, gaussian_scale, noise_scale, noisy
from coterie.federated.tables import Promise


def delta_of(scale: float, epsilon: float) -> float:
    """Return the delta of the Gaussian mechanism with sensitivity one, as Balle and Wang state it."""
    return norm.cdf(0.5 / scale - epsilon * scale) - np.exp(epsilon) * norm.cdf(
        -0.5 / scale - epsilon * scale
    )


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6])
def test_the_noise_is_the_smallest_that_keeps_the_promise(epsilon, delta):
    scale = gaussian_scale(epsilon, delta, 1.0)
    assert delta_of(scale, epsilon) <= delta
    assert delta_of(0.99 * scale, epsilon) > delta
    if epsilon <= 1:
        # The classical bound, which holds up to epsilon one, asks for more.
        assert scale <= np.sqrt(2 * np.log(1.25 / delta)) / epsilon
    assert gaussian_scale(epsilon, delta, 3.0) == pytest.approx(3 * scale)


@settings(max_examples=30, deadline=None)
@given(st.floats(0.01, 100), st.floats(1e-12, 1e-2))
def test_more_privacy_takes_more_noise(epsilon, delta):
    scale = gaussian_scale(epsilon, delta, 1.0)
    assert np.isfinite(scale)
    assert gaussian_scale(2 * epsilon, delta, 1.0) < scale
    assert gaussian_scale(epsilon, delta / 2, 1.0) > scale


def test_a_promise_that_no_noise_keeps_is_refused_in_a_sentence():
    with pytest.raises(ProtocolError, match="larger epsilon or delta"):
        gaussian_scale(1e-9, 1e-12, 1.0)


@pytest.mark.parametrize("promise", [Promise(0.0, 1e-6), Promise(1.0, 0.5), Promise(1.0, -1.0)])
def test_what_promises_nothing_is_refused(promise):
    with pytest.raises(ProtocolError, match="must be positive"):
        check_promise(promise)


def test_no_promise_takes_no_noise():
    assert noise_scale(None) == 0.0


def test_the_noise_is_symmetric_and_of_one_size_in_every_direction():
    promise, generator = Promise(1.0, 1e-6), np.random.default_rng(0)
    drawn = np.array([noisy(np.zeros((2, 3, 3)), promise, generator) for _ in range(4000)])
    assert (drawn == np.swapaxes(drawn, -1, -2)).all()
    scale = noise_scale(promise)
    spread = drawn.std(axis=0)
    assert np.allclose(spread[:, range(3), range(3)], scale, rtol=0.06)
    assert np.allclose(spread[:, 0, 1], scale / np.sqrt(2), rtol=0.06)
    # What a line loses is u'Mu: its noise has the spread of M's times u'u.
    u = np.array([1.0, -2.0, 0.5])
    assert np.einsum("q,nhqr,r->nh", u, drawn, u).std() == pytest.approx(scale * (u @ u), rel=0.06)


def test_one_row_moves_moments_by_no_more_than_the_sensitivity():
    generator = np.random.default_rng(0)
    rows = generator.normal(size=(2, 2000, 4))
    rows /= np.maximum(np.linalg.norm(rows, axis=2, keepdims=True), 1.0)
    moved = np.linalg.norm(
        np.einsum("nq,nr->nqr", *rows[[0, 0]]) - np.einsum("nq,nr->nqr", *rows[[1, 1]]), axis=(1, 2)
    )
    assert moved.max() <= noise.SENSITIVITY
    # Two rows at right angles reach it.
    axes = np.eye(2)
    apart = np.outer(axes[0], axes[0]) - np.outer(axes[1], axes[1])
    assert np.linalg.norm(apart) == pytest.approx(noise.SENSITIVITY)


def found_epsilon(draw, delta: float, n: int = 40_000) -> float:
    """Return the epsilon that an attacker shows, with 99 % confidence, to be the least that holds.

    ``draw(row)`` returns a message about a table whose last row is ``row``; the attacker knows all the other
    rows and which two the last one may be. It projects on the difference and guesses by a threshold.
    """
    one, other = np.eye(3)[1], np.eye(3)[2]
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
    promise = Promise(epsilon, delta)
    others = np.full((9, 3), 0.5)
    base = others.T @ others
    generator = np.random.default_rng(0)

    def draw(row):
        return noisy(base + np.outer(row, row), promise, generator)

    scale = noise_scale(promise)
    monkeypatch.setattr(noise, "noise_scale", lambda _: scale)
    kept = found_epsilon(draw, delta)
    assert kept <= epsilon
    # The attack is a good one: it finds most of what is there, and half of the noise is not enough for it.
    assert kept > 0.5 * epsilon
    monkeypatch.setattr(noise, "noise_scale", lambda _: scale / 2)
    assert found_epsilon(draw, delta) > epsilon
