import numpy as np

from coterie.dissimilarity import dissimilarity


def test_v_is_what_both_lose_on_each_other_beyond_their_own_errors() -> None:
    E, e = np.array([[1.0, 5.0], [2.0, 3.0]]), np.array([1.0, 3.0])
    v = dissimilarity(E, E.T, e[:, None], e)
    assert v.tolist() == [[0, 3], [3, 0]]
