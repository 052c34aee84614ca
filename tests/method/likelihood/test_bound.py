"""The bound against sums that can be done by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from coterie.method.likelihood.bound import (
    Forms,
    Moments,
    Noise,
    State,
    centres,
    charge,
    gamma_prior,
    improve,
    squared_residuals,
    without_own,
)
from coterie.method.likelihood.features import LEVEL, LINEAR

TAU, OWN, CLUSTER, COMMON = 2.0, np.array([0.5, 0.0]), np.array([0.3, 0.7]), np.array([1.5, 1.0])


@pytest.fixture(scope="module")
def rows() -> tuple[Any, Any]:
    """Three learners of four rows: a slope and a level."""
    rng = np.random.default_rng(0)
    return np.dstack([rng.standard_normal((3, 4)), np.ones((3, 4))]), rng.standard_normal((3, 4))


def moments_of(Z: Any, y: Any) -> Moments:
    back = Z.swapaxes(1, 2)
    cross = (back @ y[..., None])[..., 0]
    return Moments(back @ Z, cross, (y**2).sum(axis=1), np.full(len(y), 4.0), np.array([LINEAR, LEVEL]))


def test_integrating_own_departures_gives_the_marginal_likelihood(rows: tuple[Any, Any]) -> None:
    Z, y = rows
    rest = without_own(moments_of(Z, y), np.full(3, TAU), OWN)
    line = np.array([0.4, -0.2])
    for j in range(3):
        covariance = Z[j] @ np.diag(OWN) @ Z[j].T + np.eye(4) / TAU
        exact = multivariate_normal(Z[j] @ line, covariance).logpdf(y[j])
        plain = 2 * np.log(TAU / (2 * np.pi)) - 0.5 * TAU * y[j] @ y[j] + rest.gained[j]
        assert_allclose(plain + rest.cross[j] @ line - 0.5 * line @ rest.gram[j] @ line, exact)


def test_with_known_labels_the_evidence_is_exact(rows: tuple[Any, Any]) -> None:
    Z, y = rows
    labels = np.array([0, 1, 0])
    R = np.eye(2)[labels]
    rest = without_own(moments_of(Z, y), np.full(3, TAU), OWN)
    P, c = np.einsum("jk,jde->kde", R, rest.gram), R.T @ rest.cross
    found = centres(P, c, CLUSTER, COMMON)
    stacked = np.concatenate(Z)
    own = np.repeat(np.arange(3), 4)
    same = own[:, None] == own
    together = np.repeat(labels, 4)[:, None] == np.repeat(labels, 4)
    covariance = stacked @ np.diag(1 / COMMON) @ stacked.T + np.eye(12) / TAU
    covariance += together * (stacked @ np.diag(CLUSTER) @ stacked.T) + same * (
        stacked @ np.diag(OWN) @ stacked.T
    )
    exact = multivariate_normal(np.zeros(12), covariance).logpdf(y.ravel())
    plain = 6 * np.log(TAU / (2 * np.pi)) - 0.5 * TAU * (y**2).sum() + rest.gained.sum()
    assert_allclose(plain + found.evidence, exact)
    # The mean of b + d_k by generalised least squares.
    prior = stacked @ np.diag(1 / COMMON) + (np.repeat(labels, 4) == 1)[:, None] * (
        stacked @ np.diag(CLUSTER)
    )
    assert_allclose(found.means[1], prior.T @ np.linalg.solve(covariance, y.ravel()))
    known = prior.T @ np.linalg.solve(covariance, prior)
    assert_allclose(found.covariances[1], np.diag(1 / COMMON + CLUSTER) - known, atol=1e-12)


def test_expected_squares_are_those_of_drawn_lines(rows: tuple[Any, Any]) -> None:
    Z, y = rows
    moments, tau = moments_of(Z, y), np.full(3, TAU)
    rest = without_own(moments, tau, OWN)
    R = np.ones((3, 1))
    centre = centres(rest.gram.sum(axis=0)[None], rest.cross.sum(axis=0)[None], np.zeros(2), COMMON)
    expected = squared_residuals(moments, rest, tau, OWN, R, centre)
    rng = np.random.default_rng(1)
    lines = rng.multivariate_normal(centre.means[0], centre.covariances[0], 40_000)
    for j in range(3):
        S = np.linalg.inv(TAU * moments.gram[j][:1, :1] + 1 / OWN[0])[0, 0]
        away = moments.cross[j][0] - lines @ moments.gram[j][0]
        slopes = lines[:, 0] + TAU * S * away + np.sqrt(S) * rng.standard_normal(len(lines))
        residuals = y[j] - slopes[:, None] * Z[j][:, 0] - lines[:, 1:]
        assert_allclose((residuals**2).sum(axis=1).mean(), expected[j], rtol=0.02)


def test_the_bound_rises_while_labels_and_lines_are_learnt(rows: Any) -> None:
    moments = moments_of(*rows)
    R = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    start = State(R, CLUSTER, OWN, COMMON, np.full(3, TAU))
    bounds = [improve(moments, start, Forms(learn=False), rounds=n).bound for n in range(1, 6)]
    assert (np.diff(bounds) >= -1e-9).all()


def test_a_learnt_variance_costs_more_the_more_effects_it_has() -> None:
    assert charge(np.zeros(5)) == 0
    assert 0 < charge(np.ones(2)) < charge(np.ones(20)) < 3


def test_equal_noise_has_a_narrow_prior_and_uneven_noise_a_wide_one() -> None:
    even = gamma_prior(np.full(20, 2.0), np.full(20, np.log(2.0)) - 0.001)
    uneven = gamma_prior(np.geomspace(0.1, 40, 20), np.log(np.geomspace(0.1, 40, 20)))
    assert even[0] > 50 > 3 > uneven[0]
    assert_allclose(even[0] / even[1], 2.0)


def test_a_quiet_learner_has_a_higher_precision() -> None:
    Z = np.ones((4, 30, 1))
    noise = Noise(
        Moments(Z[:, :1], Z[:, 0], np.full(4, 30.0), np.full(4, 30.0), np.array([LEVEL])), np.ones(4)
    )
    noise.update(np.array([3.0, 30.0, 30.0, 60.0]))
    assert noise.tau[0] > noise.tau[1] == noise.tau[2] > noise.tau[3]
