from dataclasses import replace

import numpy as np
import pytest

from coterie.collaboration.nested.parties import RowParty
from coterie.collaboration.nested.weighing import agree, mix

UNITS = np.ones(2)


def party(n: int = 24, offset: float = 2.0, seed: int = 0, **changes) -> RowParty:
    """One learner whose own model is good and whose shared models are off by an offset, and by noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=n)
    shared = np.column_stack([y - offset + 0.01 * rng.normal(size=n), y + rng.normal(size=n)])
    alone = y + 0.3 * rng.normal(size=n)
    made = RowParty(X, y, np.arange(n) % 3, 3, alone, shared, 0.01, None, 1e-12)
    return replace(made, **changes)


def test_columns_are_alone_then_offsets_then_slopes():
    own = party()
    ratios = np.array([[[100.0, 0.0]] * 2, [[0.0, 0.0]] * 2])
    columns = own.columns(UNITS, ratios)
    np.testing.assert_array_equal(columns[:, 0], own.alone)
    np.testing.assert_allclose(columns[:, 1], own.y, atol=0.1)
    np.testing.assert_array_equal(columns[:, 3:], own.shared)


def test_an_offset_does_not_know_the_row_that_it_corrects():
    own = party()
    ratios = np.array([[[100.0, 0.0]] * 2, [[100.0, 1.0]] * 2])
    before = own.columns(UNITS, ratios)
    y = own.y.copy()
    y[own.folds == 1] += 50
    after = replace(own, y=y).columns(UNITS, ratios)
    np.testing.assert_array_equal(before[own.folds == 1], after[own.folds == 1])
    assert (before[own.folds != 1][:, 1:] != after[own.folds != 1][:, 1:]).any()


def test_grams_are_the_products_of_the_residuals():
    own = party()
    ratios = np.array([[[1.0, 0.0]] * 2, [[1.0, 0.1]] * 2])
    grams, counts = own.grams(UNITS, ratios)
    residuals = (own.y[:, None] - own.columns(UNITS, ratios))[own.folds == 2]
    np.testing.assert_allclose(grams[2], residuals.T @ residuals / own.y.var())
    assert counts.tolist() == [8, 8, 8]


def test_rows_that_no_fold_holds_out_take_no_part():
    folds = np.arange(24) % 3
    folds[:5] = -1
    own = party(folds=folds)
    assert np.isnan(own.columns(UNITS, np.zeros((2, 2, 2)))[:5]).all()
    _, counts = own.grams(UNITS, np.zeros((2, 2, 2)))
    assert counts.sum() == 19
    mixture = mix(own, agree([own, own]), 0)
    assert np.isnan(mixture.residuals[:5]).all()
    assert np.isfinite(mixture.residuals[5:]).all()


def test_the_better_predictors_get_the_weight_and_the_offset_is_found():
    parties = [party(offset=offset, seed=seed) for seed, offset in enumerate([2.0, -1.0, 0.5, -3.0, 1.0])]
    agreement = agree(parties)
    for place, own in enumerate(parties):
        mixture = mix(own, agreement, place)
        assert mixture.shared[0] > 0.9
        assert mixture.alone + mixture.shared.sum() == pytest.approx(1)
        assert mixture.correction[-1] == pytest.approx((own.y - own.shared[:, 0]).mean(), rel=0.2)


def test_one_whom_the_others_tell_nothing_has_no_say_in_the_common_weights():
    parties = [party(seed=seed) for seed in range(8)]
    rng = np.random.default_rng(9)
    # The last one's shared models tell it nothing, whatever its offset.
    odd = replace(parties[0], shared=5 * rng.normal(size=(24, 2)), alone=parties[0].y)
    agreement = agree([*parties, odd])
    assert agreement.weights.common[0] < 0.2
    # It predicts badly with others; its verdict says so, no weight does.
    mixture = mix(odd, agreement, 8)
    assert np.mean(mixture.residuals**2) > 10 * np.mean(mix(parties[1], agreement, 1).residuals ** 2)


def test_a_response_that_does_not_vary_is_no_failure():
    flat = [party(y=np.zeros(24), alone=np.zeros(24), shared=np.zeros((24, 2)), seed=s) for s in range(3)]
    mixture = mix(flat[0], agree(flat), 0)
    assert np.isfinite([mixture.alone, *mixture.shared, *mixture.correction, *mixture.residuals]).all()
