"""Logistic lines from which learners depart by shrunken effects."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit

from coterie.collaboration.classes.lines import (
    ClassRows,
    effects_of,
    fit_lines,
    log_odds,
    probabilities,
)
from coterie.collaboration.nested.line import Ratios
from coterie.models.logistic import QuickLogistic


def rows(
    n_learners: int = 30, n: int = 60, offset: float = 1.0, slope: float = 0.0, n_columns: int = 1
) -> Any:
    rng = np.random.default_rng(0)
    owner = np.repeat(np.arange(n_learners), n)
    Z = np.column_stack([rng.normal(size=(len(owner), 2)), np.ones(len(owner))])
    truth = np.array([1.0, -0.5, -0.3]) + np.column_stack(
        [slope * rng.normal(size=(n_learners, 2)), offset * rng.normal(size=n_learners)]
    )
    y = rng.random(len(owner)) < expit(np.einsum("nq,nq->n", Z, truth[owner]))
    Y = np.column_stack([y, ~y, y])[:, :n_columns].astype(float)
    return ClassRows(Z, Y, np.ones(len(owner)), owner, n_learners), truth


def test_without_effects_of_ones_own_it_is_a_logistic_regression() -> None:
    data, _ = rows(offset=0.0)
    line = fit_lines(data, np.zeros(30, dtype=int), [Ratios(0.0, 0.0, 1.0)])
    plain = QuickLogistic(alphas=(1.0,)).fit(data.Z[:, :2] / data.Z[:, :2].std(axis=0), data.Y[:, 0])
    assert_allclose(line.common[0, 0, -1], plain.intercept_[0], atol=0.01)
    assert_allclose(line.common[0, 0, :2], plain.coef_[0] / data.Z[:, :2].std(axis=0), atol=0.02)
    assert_allclose(line.own, 0, atol=1e-3)


@pytest.mark.parametrize(("offset", "slope"), [(1.0, 0.0), (0.0, 1.0), (1.0, 1.0)])
def test_the_ratios_tell_how_learners_differ(offset: float, slope: float) -> None:
    data, truth = rows(offset=offset, slope=slope)
    line = fit_lines(data, np.zeros(30, dtype=int))
    ratios = line.ratios[0]
    assert (ratios.offset > 0.2) == (offset > 0)
    assert (ratios.slope > 0.2) == (slope > 0)
    found = line.of_learners(np.zeros(30, dtype=int))[:, 0]
    # Shrunken effects are nearer to the truth than those of nobody.
    assert np.mean((found - truth) ** 2) < 0.4 * np.mean((line.common[0] - truth) ** 2)


def test_clusters_have_lines_of_their_own() -> None:
    data, _ = rows(offset=0.0)
    labels = np.arange(30) % 2
    flipped = ClassRows(
        data.Z, np.where((labels == 1)[data.owner, None], 1 - data.Y, data.Y), data.weights, data.owner, 30
    )
    lines = fit_lines(flipped, labels)
    assert_allclose(lines.common[0, 0], -lines.common[0, 1], atol=0.4)
    assert np.abs(lines.common[0, 0, 0]) > 0.5


def test_effects_of_newcomers_are_those_of_the_fit() -> None:
    data, _ = rows(offset=1.0, slope=0.5)
    everybody = np.zeros(30, dtype=int)
    lines = fit_lines(data, everybody)
    assert_allclose(effects_of(data, lines.common, everybody, lines.ratios), lines.own, atol=0.02)


def test_probabilities_of_several_classes_sum_to_one() -> None:
    data, _ = rows(n_columns=3)
    lines = fit_lines(data, np.zeros(30, dtype=int))
    values = log_odds(data.Z, lines.of_learners(np.zeros(30, dtype=int))[data.owner])
    assert_allclose(probabilities(values).sum(axis=1), 1)


def test_a_class_that_is_not_there_is_improbable_and_no_error() -> None:
    data, _ = rows()
    nobody = ClassRows(data.Z, np.zeros_like(data.Y), data.weights, data.owner, 30)
    lines = fit_lines(nobody, np.zeros(30, dtype=int))
    assert (probabilities(log_odds(data.Z, lines.of_learners(np.zeros(30, int))[data.owner])) < 0.01).all()


@pytest.mark.parametrize("seed", [2, 4, 5])
def test_lines_of_a_rare_class_lose_less_than_its_share_does(seed: int) -> None:
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(15), 300)
    Z = np.column_stack([rng.normal(size=(4500, 5)), np.ones(4500)])
    slopes = 1.2 * rng.normal(size=5) + 0.4 * rng.normal(size=(15, 5))
    effects = np.column_stack([slopes, 1.4 * rng.normal(size=15) - 7.5])
    y = (rng.random(4500) < expit(np.sum(Z * effects[owner], axis=1))).astype(float)
    rows = ClassRows(Z, y[:, None], np.ones(4500), owner, 15)
    everybody = np.zeros(15, dtype=int)
    lines = fit_lines(rows, everybody)
    own = effects_of(rows, lines.common, everybody, lines.ratios)
    share = y.mean()
    entropy = -share * np.log(share) - (1 - share) * np.log(1 - share)
    for departures in (lines.own, own):
        here = log_odds(Z, replace(lines, own=departures).of_learners(everybody)[owner])[:, 0]
        assert np.mean(np.logaddexp(0, here) - y * here) < entropy
