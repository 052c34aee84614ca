"""Forests that vote by columns, and the classifier of one class."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from coterie.models.classes import OneClass, VotingForest
from coterie.models.forest import QuickForest, RandomCuts


@parametrize_with_checks(
    [VotingForest(QuickForest(10, random_state=0))],
    expected_failed_checks=lambda _: {
        "check_sample_weight_equivalence_on_dense_data": "rows are drawn by weight, as in any forest"
    },
)
def test_scikit_learn_s_own_checks_pass(estimator, check):
    check(estimator)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_shares_are_close_to_those_of_a_forest_of_classifiers(n_classes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=300), [0.0, 1.0][: n_classes - 1])
    ours = VotingForest(RandomCuts(200, min_samples_leaf=5, random_state=0)).fit(X, y)
    theirs = ExtraTreesClassifier(200, min_samples_leaf=5, random_state=0, max_features=1.0).fit(X, y)
    assert_allclose(ours.predict_proba(X).sum(axis=1), 1)
    assert np.abs(ours.predict_proba(X) - theirs.predict_proba(X)).mean() < 0.02
    assert ours.score(X, y) > 0.85


def test_one_class_is_predicted_surely():
    model = OneClass().fit(np.zeros((3, 2)), np.array([4, 4, 4]))
    assert model.predict(np.zeros((2, 2))).tolist() == [4, 4]
    assert model.predict_proba(np.zeros((2, 2))).tolist() == [[1.0], [1.0]]
