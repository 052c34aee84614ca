"""Losses beside what probabilities claim: true ones are hardly ever refuted, wrong ones are."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from coterie.loss import SQUARED_ERROR, BrierScore
from coterie.method.claims import beyond_claims, is_beyond


def drawn(n_learners: int, n: int, share: float, n_classes: int = 2, seed: int = 0):
    """Return probabilities (N, C) of all classes, codes drawn from them, and where learners begin."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n_learners * n, n_classes))
    scores[:, -1] += np.log(share / (1 - share))
    chances = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    codes = (rng.random(len(chances))[:, None] > np.cumsum(chances, axis=1)[:, :-1]).sum(axis=1)
    return chances, codes, n * np.arange(n_learners)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_what_is_claimed_is_what_comes_on_average(n_classes: int) -> None:
    loss = BrierScore(n_classes)
    chances, _, _ = drawn(1, 3, 0.3, n_classes)
    columns = loss.columns(chances)
    by_class = np.array([loss.by_row(loss.response(np.full(3, c)) - columns) for c in range(n_classes)])
    mean = np.sum(chances.T * by_class, axis=0)
    moments = [np.sum(chances.T * (by_class - mean) ** power, axis=0) for power in (2, 3)]
    for c in range(n_classes):
        found = loss.claimed(loss.response(np.full(3, c)) - columns)
        for part, expected in zip(found, (mean, *moments), strict=True):
            assert_allclose(part, expected, atol=1e-12)


@pytest.mark.parametrize(("share", "n_classes"), [(0.5, 2), (0.03, 2), (0.5, 4)])
def test_true_probabilities_are_hardly_ever_refuted_and_those_of_the_opposite_are(
    share: float, n_classes: int
) -> None:
    loss = BrierScore(n_classes)
    chances, codes, starts = drawn(4000, 40, share, n_classes)
    residuals = loss.response(codes) - loss.columns(chances)
    deviations = beyond_claims(residuals, None, starts, loss)
    assert np.mean(deviations > 3.1) < 3e-3
    wrong = loss.response(codes) - loss.columns(chances[:, ::-1])
    assert np.mean(beyond_claims(wrong, None, starts, loss) > 3.1) > (0.3 if n_classes == 2 else 0.9)


def test_weights_count_and_dependence_makes_less_sure() -> None:
    loss = BrierScore(2)
    chances, codes, starts = drawn(5, 40, 0.5)
    residuals = loss.response(codes) - loss.columns(chances[:, ::-1])
    plain = beyond_claims(residuals, None, starts, loss)
    assert_allclose(beyond_claims(residuals, np.full(200, 3.0), starts, loss), plain)
    assert (beyond_claims(residuals, None, starts, loss, 4.0) < plain).all()
    kept = np.where(np.arange(200) % 40 < 20, 1.0, 0.0)
    half = np.concatenate([residuals[40 * j : 40 * j + 20] for j in range(5)])
    assert_allclose(
        beyond_claims(residuals, kept, starts, loss), beyond_claims(half, None, starts // 2, loss)
    )


def test_numbers_claim_nothing_and_own_models_must_do_better() -> None:
    assert beyond_claims(np.zeros((3, 1)), None, np.zeros(1, dtype=int), SQUARED_ERROR) is None
    assert is_beyond(None, np.ones(2), np.ones(2), 0.01) is False
    found = is_beyond(np.array([9.0, 9.0, 1.0, np.nan]), np.array([2.0, 0.5, 2.0, 2.0]), np.ones(4), 0.01)
    assert found.tolist() == [True, False, False, False]
