import numpy as np
from sklearn.linear_model import LinearRegression

from coterie.collaboration.nested.guard import chance_of_excess, guarded, who_stays_alone, widened


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


def test_the_chance_of_an_excess_is_small_where_the_own_model_is_clearly_better():
    rng = np.random.default_rng(0)
    own, mixed = 0.1 * rng.normal(size=(2, 30))
    assert chance_of_excess(mixed + 1, own) < 1e-6
    assert chance_of_excess(own, mixed + 1) > 1 - 1e-6
    # Rows that no fold holds out, or that have no weight, say nothing.
    mixed[:10] = np.where(np.arange(10) % 2, np.nan, 50.0)
    weights = np.r_[np.zeros(10), np.ones(20)]
    assert 0.01 < chance_of_excess(mixed, own, weights) < 0.99
    assert chance_of_excess(own[:1], own[:1]) == chance_of_excess(own, own) == 1
    assert chance_of_excess(np.ones(3), np.zeros(3)) == 0


def test_of_many_learners_few_are_sent_alone_by_chance():
    assert not who_stays_alone(np.linspace(0.01, 1, 100)).any()
    assert who_stays_alone(np.r_[1e-6, np.linspace(0.01, 1, 99)]).tolist() == [True] + [False] * 99
    assert who_stays_alone(np.zeros(0)).shape == (0,)
