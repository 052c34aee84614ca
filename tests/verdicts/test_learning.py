"""How much each learner loses alone, and how that is extrapolated to all its rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from coterie._arrays import Array
from coterie.loss import SQUARED_ERROR
from coterie.verdicts.learning import ComparedErrors, compare, decay_of, reached_with_all

SHARES = (0.5, 0.75)
SIZES = np.array([12.0, 20, 40, 80, 160])


def follows(decay: float, n: Array, share: float) -> Array:
    """Return errors of models that saw a share of the rows."""
    return 1 + decay / (share * n)


def compared_of(decay: float, others: float = 1.0, shares: tuple[float, float] = SHARES) -> ComparedErrors:
    errors = [follows(decay, SIZES, share) for share in shares]
    rest = np.full(len(SIZES), others), SIZES, np.ones(len(SIZES)), np.ones(len(SIZES))
    return ComparedErrors(*errors, *rest)


def residuals_of(error: float, n: int = 40) -> Array:
    """Return residuals with this mean square and no outlier."""
    return np.full((n, 1), np.sqrt(error)) * np.where(np.arange(n) % 2, 1, -1)[:, None]


def measured(*parts: Any, rounding: float = 1e-9, weights: Any = None) -> Any:
    """Compare one learner for each tuple of residuals: early, alone and with others."""
    columns = zip(*parts, strict=True)
    given = [None] * len(parts) if weights is None else weights
    return compare(*columns, given, SQUARED_ERROR, rounding=np.full(len(parts), rounding))


@pytest.mark.parametrize("decay", [0.5, 3.0, 20.0])
@pytest.mark.parametrize("others", [0.4, 1.0])
def test_the_decay_of_errors_that_follow_it_is_found(decay: float, others: float) -> None:
    found = decay_of(compared_of(decay, others), SHARES)
    assert found == pytest.approx(decay)
    reached = reached_with_all(SIZES, SHARES[1], found)
    np.testing.assert_allclose(follows(decay, SIZES, SHARES[1]) * reached, follows(decay, SIZES, 1.0))


def test_who_has_few_rows_comes_further_with_all_of_them() -> None:
    reached = reached_with_all(SIZES, 0.75, 5.0)
    assert np.all(np.diff(reached) > 0)
    assert np.all(reached < 1)
    assert reached_with_all(SIZES, 1.0, 5.0).tolist() == [1.0] * 5


def test_between_equal_shares_nothing_is_extrapolated() -> None:
    assert decay_of(compared_of(5.0, shares=(0.5, 0.5)), (0.5, 0.5)) == 0.0
    assert reached_with_all(SIZES, 0.5, 0.0).tolist() == [1.0] * 5


def test_rows_that_are_all_alike_do_not_vary() -> None:
    table, *_ = measured((residuals_of(2.0), residuals_of(2.0), residuals_of(1.0)))
    assert table.variances[0] == pytest.approx(1e-12)


def test_folds_of_one_splitter_are_equal_shares_though_sizes_round_them() -> None:
    nearly = (0.6666, 0.66667)
    assert decay_of(compared_of(5.0, shares=nearly), nearly) == 0.0


def test_errors_that_rise_with_more_rows_are_not_extrapolated() -> None:
    table = compared_of(3.0)
    assert decay_of(replace(table, early=table.own, own=table.early), SHARES) == 0.0
    nobody = ComparedErrors(*(np.zeros(0) for _ in range(6)))
    assert decay_of(nobody, SHARES) == 0.0
    assert nobody.errors(1.0, 1.0, nobody.typical).shape == (0,)


def test_one_wild_learner_does_not_decide_how_fast_errors_fall() -> None:
    table = compared_of(3.0)
    wild = replace(table, early=table.early * np.r_[1e6, 1, 1, 1, 1])
    assert 3.0 <= decay_of(wild, SHARES) < 6.0


def test_errors_that_fall_beyond_all_bounds_have_the_largest_decay() -> None:
    table = compared_of(0.0)
    steep = replace(table, early=1e9 * table.early)
    assert np.isfinite(decay_of(steep, SHARES))


def test_errors_are_means_of_squares_over_rows() -> None:
    table, who, _ = measured((residuals_of(3.0), residuals_of(2.0), residuals_of(1.0)))
    assert who.tolist() == [True]
    assert (table.early[0], table.own[0], table.others[0]) == pytest.approx((3, 2, 1))
    assert table.n_rows.tolist() == [40]


def test_how_far_predictions_are_apart_does_not_depend_on_noise() -> None:
    noise = residuals_of(1.0)
    table, *_ = measured((noise, noise, noise - 0.5))
    assert table.distances[0] == pytest.approx(0.25)
    assert table.relative_distances[0] == pytest.approx(0.25 / np.sqrt(table.own[0] * table.others[0]))


def test_rows_count_by_their_weight() -> None:
    residuals = np.r_[np.ones(20), np.full(20, 2.0)][:, None]
    weights = np.r_[np.ones(20), np.zeros(20)]
    table, *_ = measured((residuals, residuals, residuals), weights=[weights])
    assert table.own[0] == pytest.approx(1.0)


def test_a_wild_row_does_not_decide() -> None:
    calm = np.random.default_rng(0).normal(size=(60, 1))
    wild = calm.copy()
    wild[0] = 1e6
    table, *_ = measured((calm, wild, calm))
    assert table.own[0] < 5 * table.others[0]


def test_rows_that_no_fold_holds_out_say_nothing() -> None:
    gaps = residuals_of(2.0)
    gaps[:10] = np.nan
    full = residuals_of(1.0)
    full[:10] = 50.0
    table, who, _ = measured((gaps, gaps, full))
    assert who.tolist() == [True]
    assert table.n_rows.tolist() == [30]
    assert table.others[0] == pytest.approx(1.0)
    nothing = np.full((40, 1), np.nan)
    one = nothing.copy()
    one[0] = 1.0
    _, who, _ = measured((nothing, full, full), (one, full, full), (full, full, full))
    assert who.tolist() == [False, False, True]


def test_without_any_error_nobody_is_compared() -> None:
    zero, some = np.zeros((20, 1)), residuals_of(1.0, 20)
    table, who, exact = measured((zero, zero, zero), (some, some, zero), (zero, zero, some))
    # One error is enough: the other one counts as rounding.
    assert exact.tolist() == [True, False, False]
    assert who.tolist() == [False, True, True]
    assert np.isfinite(np.log(table.own / table.others)).all()
    assert (table.own > table.others).tolist() == [True, False]


def test_few_rows_take_their_variance_from_the_typical_learner() -> None:
    sizes, variances = np.array([3.0, 3000.0, 300.0]), np.array([1e-12, 1.0, 100.0])
    table = ComparedErrors(*(np.ones(3) for _ in range(3)), sizes, variances, np.ones(3))
    errors = table.errors(1.0, 1.0, table.typical)
    # Three rows that hardly vary are no evidence of a small variance.
    assert errors[0] > 1e-3
    assert errors[1] ** 2 * sizes[1] == pytest.approx(2.0, rel=0.05)
    np.testing.assert_allclose(table.errors(1.0, 4.0, table.typical), 2 * errors)


def test_folds_that_share_rows_know_less_than_their_rows_say() -> None:
    table = ComparedErrors(*(np.ones(1) for _ in range(3)), np.array([1e6]), np.ones(1), np.ones(1))
    four_folds, two_folds = (table.errors(share, 1.0, 1.0)[0] ** 2 * 1e6 for share in (0.75, 0.5))
    assert four_folds == pytest.approx(1 + 4 / 3)
    assert two_folds == pytest.approx(1 + 2 / 1)
