from dataclasses import replace

import numpy as np
import pytest

from coterie.collaboration.nested.site_rows import (
    AverageDictionary,
    SiteRows,
    average_of,
)
from coterie.collaboration.nested.weighing import agree_on_ratios, agree_on_weights

UNITS = np.ones(2)
# Model 0 is the site's own, 1 is off by an offset, 2 by noise; each is in a cluster of its own.
EACH = np.arange(3)
LABELLINGS = (np.array([0, 1, 0]), np.array([0, 0, 1]))


def squares(y, table):
    """What the averages of a labelling lose by row, where each cluster has one model of others."""
    return lambda labels: np.array(
        [np.square(y - table[[j for j in (1, 2) if labels[j] == k] or [0]].mean(axis=0)) for k in (0, 1)]
    )


def site(n: int = 24, offset: float = 2.0, seed: int = 0, **changes) -> SiteRows:
    """One learner whose own model is good and whose peers' models are off by an offset, and by noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=n)
    own_predictions = y + 0.3 * rng.normal(size=n)
    table = np.array([y, y - offset + 0.01 * rng.normal(size=n), y + rng.normal(size=n)])
    made = SiteRows(
        X=X,
        y=y,
        folds=np.arange(n) % 3,
        n_folds=3,
        own_predictions=own_predictions,
        table=table,
        bounds=np.tile([-50.0, 50.0], (3, 1)),
        model_weights=np.ones(3),
        place=0,
        losses=squares(y, table),
        noise=0.01,
    )
    return replace(made, **changes)


def dictionary(offset=100.0, slope=0.0):
    labellings = (np.array([1, 0, 1]),)
    ratios = np.array([[[offset, 0.0]] * len(labellings), [[offset, slope]] * len(labellings)])
    return AverageDictionary(labellings, UNITS, ratios)


def test_an_average_is_of_the_members_that_are_of_use():
    members, weights = np.array([True, True, False, True, True]), np.array([1.0, 3.0, 9.0, 0.0, 5.0])
    positions, shares = average_of(members, weights, np.ones(5), 4)
    assert positions.tolist() == [0, 1]
    assert shares.tolist() == [0.25, 0.75]
    positions, shares = average_of(members, weights, np.array([np.nan, np.inf, 1.0, 1.0, 1.0]), 2)
    assert (positions.tolist(), shares.tolist()) == ([4], [1.0])
    positions, shares = average_of(members, np.zeros(5), np.ones(5), 2)
    assert (positions.tolist(), shares.tolist()) == ([2], [1.0])


def test_a_model_that_is_wild_beside_those_of_its_cluster_is_left_out():
    everybody, losses = np.ones(5, dtype=bool), np.array([1.0, 1.2, 0.9, 30.0, 0.1])
    assert average_of(everybody, np.ones(5), losses, 4)[0].tolist() == [0, 1, 2]
    # In a cluster of its like it is nothing special.
    alike = average_of(everybody, np.ones(5), np.array([20.0, 30.0, 25.0, 40.0, 0.1]), 4)[0]
    assert alike.tolist() == [0, 1, 2, 3]


def test_a_model_that_loses_more_than_the_median_model_weighs_less():
    everybody, losses = np.ones(5, dtype=bool), np.array([1.0, 1.0, 0.5, 2.0, 0.1])
    shares = average_of(everybody, np.ones(5), losses, 4)[1]
    assert shares == pytest.approx(np.array([1, 1, 1, 0.5**8]) / (3 + 0.5**8))


def test_rows_are_predicted_by_the_cluster_that_is_best_on_the_other_rows():
    own = site(offset=20.0)
    labels = np.array([1, 0, 1])
    # By the loss of the offset model nobody would choose its cluster.
    np.testing.assert_allclose(own.average(labels), own.table[2])
    near = site(offset=0.0)
    np.testing.assert_allclose(near.average(labels), near.table[1])


def test_a_cluster_is_not_chosen_by_the_rows_that_it_predicts():
    own = site(offset=0.0)
    y = own.y.copy()
    y[own.folds == 1] += 50
    spoilt = replace(own, y=y, losses=squares(y, own.table), _averages={})
    labels, validation = np.array([1, 0, 1]), own.folds == 1
    np.testing.assert_array_equal(spoilt.average(labels)[validation], own.average(labels)[validation])


def test_predictions_of_others_stay_within_their_bounds():
    own = site(offset=0.0, bounds=np.tile([-0.1, 0.1], (3, 1)))
    assert np.abs(own.average(np.array([1, 0, 1]))).max() <= 0.1


def test_where_nobody_else_is_of_use_the_own_model_predicts():
    own = site()
    own = replace(own, table=np.array([own.y, *np.full((2, 24), np.nan)]), _averages={})
    np.testing.assert_array_equal(own.average(np.zeros(3, dtype=int)), own.own_predictions)


def test_columns_are_alone_then_offsets_then_slopes():
    own = site()
    columns = own.columns(AverageDictionary((np.array([1, 0, 1]),), UNITS, np.array([[[100, 0]], [[0, 0]]])))
    np.testing.assert_array_equal(columns[:, 0], own.own_predictions)
    np.testing.assert_array_equal(columns[:, 2], own.average(np.array([1, 0, 1])))


def test_an_offset_does_not_know_the_row_that_it_corrects():
    own, about = site(), dictionary(slope=1.0)
    before = own.columns(about)
    y = own.y.copy()
    y[own.folds == 1] += 50
    after = replace(own, y=y, losses=squares(y, own.table), _averages={}).columns(about)
    np.testing.assert_array_equal(before[own.folds == 1], after[own.folds == 1])
    assert (before[own.folds != 1][:, 1:] != after[own.folds != 1][:, 1:]).any()


def test_grams_are_the_products_of_the_residuals():
    own, about = site(), dictionary(offset=1.0, slope=0.1)
    grams, counts = own.grams(about)
    residuals = (own.y[:, None] - own.columns(about))[own.folds == 2]
    np.testing.assert_allclose(grams[2], residuals.T @ residuals)
    assert counts.tolist() == [8, 8, 8]


def test_a_part_of_a_dictionary_has_a_part_of_the_gram_matrix():
    # Sites send one matrix for all labellings that may be chosen.
    own = site()
    both = AverageDictionary(LABELLINGS, UNITS, np.full((2, 2, 2), 0.1))
    one = AverageDictionary(LABELLINGS[1:], UNITS, np.full((2, 1, 2), 0.1))
    part = np.ix_(range(3), [0, 2, 4], [0, 2, 4])
    np.testing.assert_allclose(own.grams(both)[0][part], own.grams(one)[0])


def test_rows_that_no_fold_holds_out_take_no_part():
    folds = np.arange(24) % 3
    folds[:5] = -1
    own, about = site(folds=folds), dictionary()
    assert np.isnan(own.columns(about)[:5]).all()
    assert own.grams(about)[1].sum() == 19
    residuals = own.residuals(about, np.full((3, 3), 1 / 3))
    assert np.isnan(residuals[:5]).all()
    assert np.isfinite(residuals[5:]).all()


def mixed(sites):
    labellings = (np.array([1, 0, 1]),)
    likelihoods = np.array([own.likelihoods(labellings, UNITS) for own in sites])
    about = AverageDictionary(labellings, UNITS, agree_on_ratios(likelihoods))
    grams, counts = zip(*(own.grams(about) for own in sites), strict=True)
    units = np.array([max(own.y.var(), 1e-12) for own in sites])
    return about, agree_on_weights(np.array(grams), np.array(counts), units)


def test_the_better_predictors_get_the_weight_and_the_offset_is_found():
    offsets = [0.5, -0.6, 0.5, -0.4, 0.6]
    sites = [site(offset=offset, seed=seed) for seed, offset in enumerate(offsets)]
    about, weights = mixed(sites)
    for place, own in enumerate(sites):
        assert weights.personal[place, 1:].sum() > 0.9
        correction, (low, high) = own.correction(about, weights.personal[place])
        assert correction[-1] == pytest.approx(offsets[place], rel=0.2)
        assert low <= correction[-1] <= high


def test_a_response_that_does_not_vary_is_no_failure():
    flat = [
        site(y=np.zeros(24), own_predictions=np.zeros(24), table=np.zeros((3, 24)), seed=s) for s in range(3)
    ]
    flat = [replace(own, losses=squares(own.y, own.table)) for own in flat]
    about, weights = mixed(flat)
    assert np.isfinite(flat[0].residuals(about, weights.held_out[:, 0])).all()
    assert np.isfinite(flat[0].correction(about, weights.personal[0])[0]).all()
