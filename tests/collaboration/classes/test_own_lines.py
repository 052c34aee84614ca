"""Offsets and slopes of one's own in log-odds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit, logit

from coterie.collaboration.classes.own_lines import OwnClassRows, OwnLines, chances_of, log_odds_of
from coterie.collaboration.nested.effects import OFFSET_RATIOS, SLOPE_RATIOS


def rows(offset: float, slope: float, n: int = 4000) -> tuple[Any, Any, Any]:
    """Rows whose log-odds depart from a shared model by an offset and a slope."""
    rng = np.random.default_rng(0)
    X = rng.normal(3.0, 2.0, size=(n, 2))
    base = rng.normal(size=(n, 1, 1))
    odds = base[:, 0, 0] + offset + slope * (X[:, 0] - 3)
    return X, (rng.random(n) < expit(odds)).astype(float)[:, None], base


@pytest.mark.parametrize(("offset", "slope"), [(0.0, 0.0), (1.0, 0.0), (-0.5, 0.4)])
def test_lines_are_found(offset: float, slope: float) -> None:
    X, Y, base = rows(offset, slope)
    own = OwnClassRows.of(X, Y, None, X.std(axis=0)).lines(base, np.array([[1.0, 1.0]]))
    assert_allclose(own.lines[0, 0], [slope, 0, offset - 3 * slope], atol=0.2)
    assert_allclose(own.added(X, base)[:, 0, 0], base[:, 0, 0] + offset + slope * (X[:, 0] - 3), atol=0.6)


def test_the_likelihood_knows_what_there_is() -> None:
    cases = (0.0, 0.0, (True, True)), (1.0, 0.0, (False, True)), (0.0, 0.5, (True, False))
    for offset, slope, spot in cases:
        X, Y, base = rows(offset, slope)
        found = OwnClassRows.of(X, Y, None, X.std(axis=0)).likelihoods(base)
        assert found.shape == (1, len(OFFSET_RATIOS), len(SLOPE_RATIOS))
        best = np.unravel_index(found[0].argmax(), found[0].shape)
        nearly_none = OFFSET_RATIOS[best[0]] <= 0.01, SLOPE_RATIOS[best[1]] <= 0.001
        assert nearly_none == spot


def test_nothing_is_added_where_nothing_is_one_s_own() -> None:
    X, Y, base = rows(1.0, 0.5, n=50)
    own = OwnClassRows.of(X, Y, None, X.std(axis=0)).lines(base, np.zeros((1, 2)))
    assert not own.lines.any()
    assert_allclose(own.added(X, base), base)


def test_a_row_of_weight_two_is_two_rows() -> None:
    X, Y, base = rows(0.5, 0.2, n=60)
    twice = np.r_[np.arange(60), np.arange(30)]
    weights = np.where(np.arange(60) < 30, 2.0, 1.0)
    ratios, units = np.array([[0.5, 0.1]]), np.ones(2)
    one, other = (
        OwnClassRows.of(X, Y, weights, units),
        OwnClassRows.of(X[twice], Y[twice], None, units),
    )
    # The middle of the predictors differs, so compare what does not depend on it.
    flat = np.array([[0.5, 0.0]])
    assert_allclose(one.lines(base, flat).lines, other.lines(base[twice], flat).lines, atol=1e-9)
    assert one.lines(base, ratios).lines.shape == (1, 1, 3)


def test_lines_stay_within_their_limits_and_probabilities_sum_to_one() -> None:
    own = OwnLines(np.array([[[10.0, 0.0], [0.0, 0.0], [0.0, 1.0]]]), np.tile([-1.0, 1.0], (1, 3, 1)))
    moved = own.added(np.array([[5.0]]), np.zeros((1, 1, 3)))
    assert moved.tolist() == [[[1.0, 0.0, 1.0]]]
    assert_allclose(chances_of(moved).sum(axis=-1), 1)
    assert np.isfinite(log_odds_of(np.array([0.0, 0.3, 1.0]))).all()
    assert_allclose(log_odds_of(np.array([0.3])), logit(0.3))
