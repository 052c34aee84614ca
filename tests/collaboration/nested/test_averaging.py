"""Averages of others' models may predict anything of rows that are unlike all others: they are kept back."""

from __future__ import annotations

import numpy as np
import pytest

from coterie import CoterieRegressor
from coterie.collaboration.nested.averaging import shared_ranges
from coterie.datasets import make_linear_learners


def test_a_range_is_the_widest_of_a_cluster():
    bounds = np.array([[0.0, 1.0], [-2.0, 0.5], [5.0, 6.0]])
    assert shared_ranges(bounds, np.array([0, 0, 1])).tolist() == [[-2.0, 1.0], [-2.0, 1.0], [5.0, 6.0]]
    assert shared_ranges(np.zeros((0, 2)), np.zeros(0)).shape == (0, 2)


@pytest.mark.filterwarnings("ignore::coterie.OutsideFitWarning")
def test_rows_unlike_all_others_are_predicted_within_what_the_coterie_has_seen():
    data = make_linear_learners(n_learners=6, n_truths=2, n_rows=40, n_features=3, random_state=0)
    fitted = CoterieRegressor(
        "ridge", refine="average", collaboration="auto", n_clusters=2, random_state=0
    ).fit(data.X, data.y, groups=data.groups)
    strange = np.full((6, 3), 1e6)
    strange[::2] *= -1
    found = fitted.predict(strange, groups=data.learner_ids)
    margin = 0.3 * np.ptp(data.y)
    assert found.min() >= data.y.min() - margin
    assert found.max() <= data.y.max() + margin
