import numpy as np
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

from coterie.collaboration.nested.dictionary import Entry, fit_entries
from coterie.collaboration.nested.families import Family
from coterie.collaboration.nested.linear import Moments
from coterie.collaboration.nested.resolutions import Recipe
from coterie.engines import ThreadEngine
from coterie.kernels.affine import Frame

RECIPE = Recipe(chosen=2, scale="noise", refine="pooled", robust=False, seed=0, engine=ThreadEngine())
LINEAR = Family("linear")
TREE = Family("tree", DecisionTreeRegressor())
LABELS = {2: np.arange(8) % 2, 1: np.zeros(8, dtype=int)}


def fit(data, *entries, **options):
    moments = Moments.of(data.learners, Frame(data.learners))
    return fit_entries(entries, data.learners, LABELS, moments, RECIPE, **options)


def test_clusters_predict_their_members(staged):
    data = staged()
    plain, one = fit(data, Entry(2, LINEAR, False, 1e-9), Entry(1, LINEAR, False, 1e-9))
    new = np.array([[1.0, 0.0], [1.0, 0.0]])
    np.testing.assert_allclose(plain.predict(new, np.array([0, 1])), [1, -1], atol=0.15)
    np.testing.assert_allclose(one.predict(new, np.array([0, 1])), [0, 0], atol=0.15)


@pytest.mark.parametrize("family", [LINEAR, TREE], ids=["linear", "tree"])
def test_centred_models_add_the_learner_s_own_level(staged, family):
    data = staged(level=100.0, noise=0.01)
    (centred,) = fit(data, Entry(2, family, True, 1e-9))
    means = data.learners.mean_by_learner(data.learners.scalar_y)
    prediction = centred.predict(data.learners.X, data.learners.owner)
    assert np.abs(prediction - data.learners.scalar_y).max() < 1.0
    # At its own mean of x a learner is predicted its own mean of y.
    at_means = centred.predict(data.learners.mean_by_learner(data.learners.X.T).T, np.arange(8))
    assert np.abs(at_means - means).max() < 1.0


def test_predictions_are_clipped_to_the_range_of_the_cluster(staged):
    data = staged()
    entries = [Entry(2, family, centred, 1e-9) for family in (LINEAR, TREE) for centred in (False, True)]
    far = np.array([[1e6, 0.0], [-1e6, 0.0]])
    spread = np.ptp(data.learners.scalar_y)
    for fitted in fit(data, *entries):
        assert np.abs(fitted.predict(far, np.array([0, 0]))).max() < 2 * spread


def test_a_set_of_members_is_fitted_once(staged):
    fits = []

    class Counting(LinearRegression):
        def fit(self, X, y, sample_weight=None):
            fits.append(len(y))
            return super().fit(X, y, sample_weight)

    data = staged()
    fit(data, Entry(2, Family("one", Counting()), False), Entry(2, Family("one", Counting()), False))
    assert fits == [80, 80]
    fits.clear()
    fit(data, Entry(1, Family("one", Counting()), False), most_rows=30)
    assert fits == [30]


def test_a_family_that_fails_predicts_the_mean(staged):
    class Failing(DummyRegressor):
        def fit(self, X, y, sample_weight=None):
            raise RuntimeError("no")

    data = staged()
    (fitted,) = fit(data, Entry(1, Family("failing", Failing()), False))
    np.testing.assert_allclose(
        fitted.predict(data.learners.X[:3], np.zeros(3, int)), data.learners.scalar_y.mean()
    )


def test_weights_reach_the_families(staged):
    weights = np.ones(160)
    weights[80:] = 1e-6
    data = staged(weights=weights)
    rows = slice(0, 80)
    for family in (LINEAR, Family("lr", LinearRegression())):
        (fitted,) = fit(data, Entry(1, family, False, 1e-9))
        expected = LinearRegression().fit(data.learners.X, data.learners.scalar_y, data.learners.weights)
        prediction = fitted.predict(data.learners.X[rows], data.learners.owner[rows])
        np.testing.assert_allclose(prediction, expected.predict(data.learners.X[rows]), atol=1e-6)


def test_a_model_of_all_that_is_told_whom_it_predicts_tells_learners_apart(staged):
    data = staged(sizes=(60,) * 8, noise=0.05)
    informed, untold = fit(data, Entry(1, TREE, False, uses_traits=True), Entry(1, TREE, False))
    new = np.array([[1.0, 0.0], [1.0, 0.0]])
    np.testing.assert_allclose(informed.predict(new, np.array([0, 1])), [1, -1], atol=0.3)
    assert untold.traits is None
    assert len(np.unique(untold.predict(new, np.array([0, 1])))) == 1
