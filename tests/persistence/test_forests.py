"""A forest's trees as arrays: the same forest comes back, and no walk leaves its nodes."""

import copy

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.ensemble import RandomForestRegressor

from coterie.candidates import make_candidates
from coterie.persistence import PersistenceError
from coterie.persistence.results import give_trees, take_trees

X = np.random.default_rng(0).normal(size=(60, 3))
Y = np.sin(X[:, 0]) + X[:, 1]


@pytest.fixture(scope="module")
def model():
    return make_candidates("rf")["rf"].fit(X, Y)


def test_the_same_trees_come_back(model):
    slim, packed = take_trees(model)
    assert len(slim.regressor_.estimators_) == 1
    assert len(model.regressor_.estimators_) == 50
    again = give_trees(slim, packed)
    assert_array_equal(again.predict(X), model.predict(X))
    for one, other in zip(again.regressor_.estimators_, model.regressor_.estimators_, strict=True):
        assert one.random_state == other.random_state
        assert one.get_depth() == other.get_depth()
        assert_array_equal(one.tree_.__getstate__()["nodes"], other.tree_.__getstate__()["nodes"])


@pytest.mark.parametrize("other", [make_candidates("lr")["lr"], RandomForestRegressor(3)])
def test_other_models_stay_whole(other):
    other.fit(X, Y)
    slim, packed = take_trees(other)
    assert slim is other
    assert packed == []
    assert give_trees(slim, packed) is other


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("node left_child", 10**6),
        ("node left_child", 0),
        ("node right_child", -5),
        ("node feature", 3),
        ("node feature", -1),
        ("sizes", 10**6),
        ("sizes", 0),
        ("values", None),
        ("node threshold", None),
    ],
)
def test_trees_that_lead_astray_are_refused(model, name, value):
    slim, (packed,) = take_trees(model)
    bent = copy.deepcopy(packed)
    if value is None:
        bent[name] = bent[name][:-1]
    else:
        bent[name][0] = value
    with pytest.raises(PersistenceError):
        give_trees(slim, [bent])


def test_trees_of_another_model_are_refused(model):
    slim, packed = take_trees(model)
    with pytest.raises(PersistenceError):
        give_trees(slim, packed * 2)
