import numpy as np
import pytest

from coterie.collaboration.nested.trees import (
    TREES,
    TreeFit,
    after_rounds,
    best_rounds,
    grow,
    grow_to_stay,
    losses_by_round,
    thinned,
)
from coterie.models.boosting import BoostedTrees
from coterie.models.forest import RandomCuts

RNG = np.random.default_rng(0)
X = np.column_stack([RNG.normal(size=(400, 2)), RNG.integers(0, 4, 400)])
Y = X[:, 0] + np.where(X[:, 2] == 3, 2.0, 0.0) + 0.1 * RNG.normal(size=400)
IS_CATEGORY = np.array([False, False, True])


def job(y=Y, size=7, rounds=60, validation=True, **options):
    fold = (X[300:], y[300:], None) if validation else None
    settings = {"cut_at_random": False, "categories": IS_CATEGORY, "seed": 0, "rule": TREES, **options}
    return TreeFit(X[:300], y[:300], None, size=size, rounds=rounds, validation=fold, **settings)


def test_the_best_number_of_rounds_loses_least_on_average():
    # The shorter curve ends first: what it would have lost later is not known.
    assert best_rounds([np.array([9.0, 4, 2, 3, 1]), np.array([9.0, 5, 3, 4])]) == 2
    # There is always one round, though none would lose less.
    assert best_rounds([np.array([1.0, 2, 3])]) == 1


def test_predictions_after_some_rounds_are_those_of_fewer_trees():
    model = grow(job())
    fewer = grow(job(rounds=5))
    np.testing.assert_allclose(after_rounds(model, X, 5), fewer.predict(X))
    np.testing.assert_allclose(after_rounds(model, X, 10_000), model.predict(X))
    # A curve has the loss before any round, too.
    assert len(losses_by_round(model)) == model.n_iter_ + 1
    assert losses_by_round(model)[5] == pytest.approx(np.mean((Y[300:] - fewer.predict(X[300:])) ** 2) / 2)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_trees_that_stay_predict_in_the_unit_of_the_response(scale):
    model = grow_to_stay(job(y=1e3 * scale + scale * Y, validation=False))
    residuals = model.predict(X[300:]) / scale - 1e3 - Y[300:]
    assert np.mean(residuals**2) < 0.1 * Y.var()


def test_a_category_that_is_not_known_has_a_prediction():
    unknown = X[:5].copy()
    unknown[:, 2] = np.nan
    for cut_at_random in (False, True):
        model = grow(job(cut_at_random=cut_at_random, size=10))
        assert isinstance(model, RandomCuts if cut_at_random else BoostedTrees)
        if not cut_at_random:
            assert np.isfinite(model.predict(unknown)).all()


def test_thinned_rows_are_spread_evenly():
    assert thinned(np.arange(5), 5).tolist() == [0, 1, 2, 3, 4]
    assert thinned(np.arange(101), 3).tolist() == [0, 50, 100]
