from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.kernels.limits import LIMITS
from coterie.loss import SQUARED_ERROR
from coterie.method import noise

NO_CLIP = np.inf


def clip_bounds(residuals: list[np.ndarray], variance: float) -> np.ndarray:
    """Bound residuals of responses that are not mostly one value."""
    columns = [r[:, None] for r in residuals]
    return noise.clip_bounds(columns, variance, np.zeros(len(residuals), dtype=bool))


def clip_bound(residuals: np.ndarray, smallest: float, tied: bool = False) -> float:
    """Bound the residuals of one column."""
    return noise.clip_bound(residuals[:, None], smallest, tied=tied)


def noise_levels(residuals: list[np.ndarray], *how: Any) -> np.ndarray:
    """Return the levels of residuals of one column."""
    return noise.noise_levels([r[:, None] for r in residuals], *how)


def noise_statistics(residuals: np.ndarray, *how: float) -> tuple[float, float]:
    """Return the statistics of residuals of one column."""
    return noise.noise_statistics(residuals[:, None], *how)


def mostly_one_value(y: np.ndarray) -> bool:
    """Tell it of a response of one column."""
    return noise.mostly_one_value(y[:, None])


def pooled_variance(counts: np.ndarray, means: np.ndarray, variances: np.ndarray) -> float:
    """Return the variance of responses of one column."""
    return noise.pooled_variance(counts, means[:, None], variances)


def test_bounds_are_nine_squared_robust_deviations() -> None:
    bounds = clip_bounds([np.array([1.0, -2.0, 30.0]), np.array([-1.0, 1.0])], 1.0)
    assert np.allclose(bounds, [9 * (1.4826 * 2) ** 2, 9 * 1.4826**2])


def test_rows_that_were_never_held_out_do_not_count() -> None:
    bounds = clip_bounds([np.array([np.nan, 1.0, -2.0, 3.0])], 1.0)
    assert np.allclose(bounds, 9 * (1.4826 * 2) ** 2)
    levels = noise_levels([np.array([np.nan, 2.0, 2.0])], np.array([NO_CLIP]), 1.0)
    assert np.allclose(levels, 4)


@pytest.mark.parametrize("residuals", [[0.0, 0.0, 0.0], [0.0, 0.0, 5.0]])
def test_without_a_robust_spread_nothing_is_clipped(residuals: list[float]) -> None:
    assert clip_bounds([np.array(residuals)], 1.0).tolist() == [np.inf]


def test_where_most_responses_are_one_value_nothing_is_clipped() -> None:
    residuals = np.array([-0.1, -0.1, -0.1, 5.0, 7.0])
    assert mostly_one_value(np.array([0.0, 0.0, 0.0, 5.1, 7.1]))
    assert mostly_one_value(np.array([9.0, 0.0, 9.0, 5.1, 9.0]))
    assert not mostly_one_value(np.array([0.0, 0.0, 5.1, 7.1]))
    assert clip_bound(residuals, 1e-9, tied=True) == np.inf
    assert clip_bound(residuals, 1e-9) < np.inf


def test_zeros_alone_do_not_show_that_there_is_no_noise() -> None:
    residuals = [np.zeros(27), np.ones(30), -np.ones(30)]
    levels = noise_levels(residuals, np.full(3, NO_CLIP), 1.0, np.array([True, False, False]))
    # Three rows of the typical noise beside its own 27.
    assert np.allclose(levels, [0.1, 1, 1], rtol=1e-3)


def test_a_gaussian_is_hardly_clipped_and_an_outlier_is() -> None:
    r = np.random.default_rng(0).normal(size=2000)
    bound = clip_bounds([r], 1.0)[0]
    assert np.mean(r**2 > bound) < 0.01
    assert bound == pytest.approx(9, rel=0.2)
    wild = np.r_[r, [1e4] * 10]
    level = noise_levels([wild], clip_bounds([wild], 1.0), 1.0)[0]
    assert level == pytest.approx(1, rel=0.15)


def test_one_learner_keeps_its_own_level() -> None:
    assert np.allclose(noise_levels([np.array([1.0, 2.0, 3.0])], np.array([NO_CLIP]), 1.0), 14 / 3)


def test_no_noise_at_all_is_a_positive_level() -> None:
    zeros = [np.zeros(5), np.zeros(8)]
    assert np.allclose(noise_levels(zeros, clip_bounds(zeros, 4.0), 4.0), 4.0 * LIMITS.rounding)
    assert noise_levels(zeros, clip_bounds(zeros, 0.0), 0.0).tolist() == [1, 1]


def test_one_learner_without_noise_among_noisy_ones_stays_far_below_them() -> None:
    rng = np.random.default_rng(0)
    residuals = [np.zeros(30), *(rng.normal(size=30) for _ in range(4))]
    levels = noise_levels(residuals, clip_bounds(residuals, 1.0), 1.0)
    assert np.isfinite(levels).all()
    assert (levels > 0).all()
    assert levels[0] < 1e-6 * levels[1:].min()


def test_a_level_from_few_rows_is_pulled_to_the_median_more_than_one_from_many() -> None:
    pattern = np.array([0.5, 1.0, 1.5, 2.0])
    usual = [np.tile(pattern, 20) * s for s in (0.8, 0.9, 1.0, 1.1, 1.2)]
    few, many = 3 * pattern, 3 * np.tile(pattern, 50)
    residuals = [*usual, few, many]
    levels = noise_levels(residuals, np.full(7, NO_CLIP), 1.0)
    raw = np.array([np.mean(r**2) for r in residuals])
    middle = np.median(raw)
    assert raw[5] == raw[6]
    assert middle < levels[5] < levels[6] < raw[6]
    assert levels[6] > 0.95 * raw[6]


def test_levels_that_differ_by_chance_only_draw_together() -> None:
    rng = np.random.default_rng(1)
    residuals = [rng.normal(size=40) for _ in range(40)]
    raw = np.log([np.mean(r**2) for r in residuals])
    levels = np.log(noise_levels(residuals, np.full(40, NO_CLIP), 1.0))
    assert levels.std() < 0.5 * raw.std()


def test_levels_that_differ_by_less_than_chance_become_their_median() -> None:
    wide = np.array([0.1, 0.1, 3.0])
    levels = noise_levels([wide, 1.05 * wide, 1.3 * wide], np.full(3, NO_CLIP), 1.0)
    assert np.allclose(levels, np.mean((1.05 * wide) ** 2))


def test_one_or_two_rows_tell_next_to_nothing_but_do_no_harm() -> None:
    residuals = [np.array([9.0]), np.array([9.0, 9.0]), *(np.full(30, 1.0) for _ in range(5))]
    levels = noise_levels(residuals, np.full(7, NO_CLIP), 1.0)
    assert np.isfinite(levels).all()
    assert (levels[:2] < 81).all()


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.integers(0, 999), st.floats(-9, 9), st.integers(1, 6))
def test_levels_and_bounds_scale_with_the_square_of_the_unit(seed: int, power: float, n: int) -> None:
    rng = np.random.default_rng(seed)
    residuals = [rng.normal(size=rng.integers(3, 20)) * rng.uniform(0.1, 9) for _ in range(n)]
    unit = 10.0**power
    scaled = [unit * r for r in residuals]
    bounds, scaled_bounds = clip_bounds(residuals, 3.0), clip_bounds(scaled, 3.0 * unit**2)
    assert np.allclose(scaled_bounds, unit**2 * bounds)
    levels = noise_levels(residuals, bounds, 3.0)
    assert np.allclose(noise_levels(scaled, scaled_bounds, 3.0 * unit**2) / unit**2, levels)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.integers(0, 999), st.permutations(range(5)))
def test_the_order_of_learners_changes_nothing(seed: int, order: list[int]) -> None:
    rng = np.random.default_rng(seed)
    residuals = [rng.normal(size=rng.integers(1, 20)) for _ in range(5)]
    levels = noise_levels(residuals, clip_bounds(residuals, 1.0), 1.0)
    mixed = [residuals[k] for k in order]
    assert np.allclose(noise_levels(mixed, clip_bounds(mixed, 1.0), 1.0), levels[order])


def test_spreads_that_are_rounding_are_clipped_at_the_smallest_level() -> None:
    bounds = clip_bounds([np.full(9, 1e-20)], 2.0)
    assert np.allclose(bounds, 9 * 2.0 * LIMITS.rounding)


def test_the_variance_of_a_constant_is_zero_in_any_unit() -> None:
    assert SQUARED_ERROR.variance(np.full((7, 1), 0.1)) == 0
    assert SQUARED_ERROR.variance(np.full((7, 1), 1e-12)) == 0
    assert SQUARED_ERROR.variance(np.array([[0.0], [2.0]])) == 1


def test_the_pooled_variance_is_that_of_all_rows() -> None:
    rng = np.random.default_rng(0)
    responses = [rng.normal(k, 1 + k, 10 + k) for k in range(5)]
    moments = np.array([(len(y), y.mean(), y.var()) for y in responses]).T
    assert pooled_variance(*moments) == pytest.approx(np.concatenate(responses).var())


def test_a_learner_in_other_units_does_not_decide_what_is_rounding() -> None:
    counts, means, variances = np.full(5, 10.0), np.zeros(5), np.ones(5)
    variances[4] = 1e18
    assert pooled_variance(counts, means, variances) == 1.0
    means[4] = 1e45
    assert pooled_variance(counts, means, variances) == 1.0


def test_the_statistics_of_large_residuals_are_those_in_other_units() -> None:
    residuals = np.random.default_rng(0).normal(size=30)
    level, variance = noise_statistics(residuals * 1e120, NO_CLIP, 1.0)
    expected = noise_statistics(residuals, NO_CLIP, 1e-300)
    assert np.allclose([level / 1e240, variance], expected)
