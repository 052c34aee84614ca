import numpy as np
from sklearn.linear_model import LinearRegression

from coterie.collaboration.nested.guard import guarded, widened


class _Failing:
    def predict(self, X):
        raise RuntimeError("no")


class _Fixed:
    def __init__(self, *values):
        self.values = values

    def predict(self, X):
        return np.array(self.values)


def test_a_range_is_widened_on_both_sides():
    low, high = widened(np.array([[0.0, 5.0], [10.0, 5.0]]))
    assert low.tolist() == [-3.0, 5.0]
    assert high.tolist() == [13.0, 5.0]


def test_predictions_stay_within_their_bounds():
    bounds = np.array([0.0, 4.0])
    assert guarded(_Fixed(-9, 1, 1e300, np.inf, -np.inf), np.zeros((5, 1)), bounds).tolist() == [
        0,
        1,
        4,
        4,
        0,
    ]


def test_a_model_that_fails_answers_with_the_middle():
    bounds = np.array([1.0, 3.0])
    assert guarded(_Failing(), np.zeros((2, 1)), bounds).tolist() == [2, 2]
    assert guarded(_Fixed(np.nan, 1.5), np.zeros((2, 1)), bounds).tolist() == [2, 1.5]


def test_without_bounds_a_model_is_left_as_it_is():
    X = np.array([[0.0], [1.0]])
    model = LinearRegression().fit(X, [0, 1])
    assert guarded(model, 100 * X, np.array([-np.inf, np.inf])).tolist() == model.predict(100 * X).tolist()
