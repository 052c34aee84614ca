import numpy as np

from coterie.method.weight_limits import WEIGHT_LIMITS, bounded_ratios, within_reach


def test_no_value_is_far_from_the_median():
    values = np.array([1e-90, 1.0, 2.0, 3.0, 2.0**53])
    assert within_reach(values).tolist() == [0.2, 1.0, 2.0, 3.0, 20.0]
    assert within_reach(np.zeros(0)).tolist() == []
    table = np.array([[1.0, 100.0], [1.0, 100.0], [1e9, 100.0]])
    assert within_reach(table)[:, 0].tolist() == [1.0, 1.0, WEIGHT_LIMITS.ratio]


def test_a_large_ratio_is_heard_up_to_a_bound_and_a_small_one_as_it_is():
    assert bounded_ratios(np.array([0.0, 1.0, 1.0, 1.2, 1e6])).tolist() == [0.0, 1.0, 1.0, 1.2, 10.0]
