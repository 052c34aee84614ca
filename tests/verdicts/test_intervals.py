from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from coterie.verdicts.intervals import Intervals, measure_intervals
from coterie.verdicts.spread import Residuals


def measured(
    values: Any, clusters: Any = None, weights: Any = None, y: Any = None, **options: Any
) -> Intervals:
    """Return intervals of learners with some residuals, whose predictors say nothing."""
    clusters = np.zeros(len(values), dtype=int) if clusters is None else np.asarray(clusters)
    n = sum(len(part) for part in values)
    y = np.zeros(n) if y is None else y
    parts = [np.asarray(part, dtype=float) for part in values]
    return measure_intervals(
        np.arange(len(values)), clusters, parts, parts, np.zeros((n, 1)), y, weights, by_row=False, **options
    )


def normal(sizes: Any, spreads: Any = 1.0, seed: int = 0) -> list[Any]:
    rng = np.random.default_rng(seed)
    spreads = np.broadcast_to(spreads, len(sizes))
    return [spread * rng.standard_normal(n) for n, spread in zip(sizes, spreads, strict=True)]


def ends(intervals: Intervals, place: int, coverage: float = 0.9) -> Any:
    return intervals.around(np.zeros((1, 1)), np.zeros(1), np.array([place]), coverage)[0]


def covered(intervals: Intervals, spreads: Any, coverage: float = 0.9) -> Any:
    """Return the share of new normal residuals of each learner inside its interval."""
    from scipy.stats import norm

    both = np.array([ends(intervals, j, coverage) / s for j, s in enumerate(spreads)])
    return norm.cdf(both[:, 1]) - norm.cdf(both[:, 0])


@pytest.mark.parametrize("n_rows", [3, 10, 100])
@pytest.mark.parametrize("coverage", [0.5, 0.9, 0.99])
def test_new_responses_lie_inside_as_often_as_is_said(n_rows: int, coverage: float) -> None:
    spreads = np.geomspace(0.5, 2, 30)
    shares = [
        covered(measured(normal([n_rows] * 30, spreads, s)), spreads, coverage).mean() for s in range(5)
    ]
    assert abs(np.mean(shares) - coverage) < 0.03


def test_every_learner_has_the_coverage_where_its_rows_show_its_scale() -> None:
    spreads = np.geomspace(0.1, 10, 30)
    shares = np.array([covered(measured(normal([60] * 30, spreads, seed)), spreads) for seed in range(10)])
    assert np.mean(shares < 0.8) <= 0.02


def test_learners_of_one_row_and_of_none_have_intervals() -> None:
    intervals = measured([*normal([40] * 9), [0.5], [], [np.nan]])
    widths = [np.ptp(ends(intervals, j)) for j in range(12)]
    assert np.isfinite(widths).all()
    assert_allclose(widths[10], widths[11])
    assert 2 < widths[9] < 6


def test_skewed_residuals_have_skewed_intervals() -> None:
    values = [part**2 - 1 for part in normal([50] * 20)]
    low, high = ends(measured(values), 0)
    assert high > 2 * -low


def test_a_shape_of_one_s_own_is_kept_where_rows_show_it() -> None:
    # Every other learner is skewed to the other side.
    values = [(1 - 2 * (j % 2)) * (part**2 - 1) for j, part in enumerate(normal([200] * 10))]
    intervals = measured(values)
    assert intervals.pseudo_rows < 1e6
    assert ends(intervals, 0).sum() > 0 > ends(intervals, 1).sum()


def test_the_unseen_count_learners_and_not_rows() -> None:
    values = [*normal([5] * 50, 1.0), *normal([2_000], 100.0)]
    assert np.ptp(ends(measured(values), -1)) < 10


def test_final_models_have_smaller_residuals() -> None:
    values = normal([20] * 5)
    whole, less = (ends(measured(values, narrowed=share), 0) for share in (1.0, 0.5))
    assert_allclose(less, whole / 2)


def test_rows_count_by_their_weights() -> None:
    values = normal([30] * 4)
    for part in values:
        part[15:] *= 10
    weights = np.tile(np.repeat([2.0, 0.01], 15), 4)
    light = [part[:15] for part in values]
    assert_allclose(ends(measured(values, weights=weights), 0), ends(measured(light), 0), rtol=0.35)


def test_newcomers_have_the_coterie_s_quantiles_in_units_of_their_own_noise() -> None:
    intervals = measured(normal([40] * 20, np.repeat([1.0, 3.0], 10)), np.repeat([0, 1], 10))
    size = np.abs(np.array([5.0, -5.0] * 30))
    rows = Residuals(size, np.zeros(60, dtype=int), np.array([0, 1, -1]), np.zeros((60, 2)), np.ones(60))
    joined = intervals.joined(np.array(["a", "b", "c"]), rows.clusters, rows)
    assert joined.learner_ids.tolist()[-3:] == ["a", "b", "c"]
    widths = [np.ptp(ends(joined, place)) for place in (0, 20, 21, 22)]
    assert widths[1] > 3 * widths[0]
    # Those without residuals are taken for typical.
    assert_allclose(widths[2], np.mean([np.ptp(ends(joined, j)) for j in range(10, 20)]), rtol=0.3)
    assert widths[0] < widths[3] < widths[2]
    # They tell nobody else anything.
    assert_allclose([ends(joined, j) for j in range(20)], [ends(intervals, j) for j in range(20)])


def test_without_a_row_that_was_held_out_there_is_nothing_to_say() -> None:
    with pytest.raises(ValueError, match="no row that was held out"):
        measured([[np.nan], [np.nan]])


def test_residuals_of_zero_give_intervals_without_width() -> None:
    intervals = measured([np.zeros(20), np.zeros(3)])
    for coverage in (0.5, 0.999):
        assert_allclose([ends(intervals, j, coverage) for j in (0, 1, -1)], 0, atol=1e-100)
    one = measured([np.zeros(50), *normal([50] * 5)])
    assert 0 < np.ptp(ends(one, 0)) < 0.5 * np.ptp(ends(one, 1))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 12), min_size=1, max_size=6), st.integers(0, 2**31))
def test_intervals_hold_the_prediction_grow_and_follow_the_unit(sizes: Any, seed: int) -> None:
    parts = normal(sizes, seed=seed)
    rng = np.random.default_rng(seed)
    clusters = rng.integers(0, 2, len(parts))
    clusters[0] = 0
    intervals = measured(parts, clusters)
    order = rng.permutation(len(parts))
    shuffled = measured([parts[j] for j in order], clusters[order])
    thousand = measured([8.0 * np.array(part) for part in parts], clusters)
    before = np.zeros(2)
    for coverage in (0.01, 0.5, 0.9, 0.999, 0.9999999):
        for j in range(-1, len(parts)):
            low, high = ends(intervals, j, coverage)
            assert np.isfinite([low, high]).all()
            assert low <= 0 <= high
            other = -1 if j < 0 else int(np.flatnonzero(order == j)[0])
            assert_allclose(ends(shuffled, other, coverage), [low, high], rtol=1e-6, atol=1e-9)
            assert_allclose(ends(thousand, j, coverage), [8 * low, 8 * high], rtol=1e-6, atol=1e-9)
        wide = ends(intervals, 0, coverage)
        assert wide[0] <= before[0] + 1e-9
        assert wide[1] >= before[1] - 1e-9
        before = wide
