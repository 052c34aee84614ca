"""Learners of classes are what they are said to be."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from coterie.datasets import make_logistic_learners
from coterie.models.logistic import QuickLogistic


def test_the_classes_follow_the_probabilities() -> None:
    data = make_logistic_learners(n_learners=4, n_truths=2, n_rows=4000, n_classes=3)
    assert_allclose(data.probabilities.sum(axis=1), 1)
    for c in range(3):
        assert_allclose((data.y == c).mean(), data.probabilities[:, c].mean(), atol=0.01)
    sure = data.probabilities[:, 2] > 0.9
    assert_allclose((data.y[sure] == 2).mean(), data.probabilities[sure, 2].mean(), atol=0.02)


def test_learners_of_a_truth_have_its_coefficients() -> None:
    data = make_logistic_learners(n_learners=4, n_truths=2, n_rows=4000)
    for j, name in enumerate(data.learner_ids):
        mine = data.groups == name
        found = QuickLogistic((1e-3,)).fit(data.X[mine], data.y[mine]).coef_[0]
        assert_allclose(found, data.coefficients[data.truth[j], :, 1], atol=0.4)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_last_class_has_its_share(n_classes: int) -> None:
    data = make_logistic_learners(n_rows=500, n_classes=n_classes, share=0.05)
    assert_allclose(data.probabilities[:, -1].mean(), 0.05, atol=1e-6)
    assert_allclose((data.y == n_classes - 1).mean(), 0.05, atol=0.01)


def test_curved_truths_have_no_line() -> None:
    data = make_logistic_learners(n_learners=1, n_truths=1, n_rows=4000, curved=True)
    assert np.abs(QuickLogistic((1.0,)).fit(data.X, data.y).coef_).max() < 0.15


def test_the_same_seed_gives_the_same_learners() -> None:
    first, again = make_logistic_learners(random_state=3), make_logistic_learners(random_state=3)
    assert np.array_equal(first.y, again.y)
    assert not np.array_equal(first.y, make_logistic_learners(random_state=4).y)


@pytest.mark.parametrize(
    ("options", "name"),
    [({"n_classes": 1}, "n_classes"), ({"share": 1.0}, "share"), ({"n_rows": 0}, "n_rows")],
)
def test_what_cannot_be_drawn_is_refused(options: dict[str, float], name: str) -> None:
    with pytest.raises(ValueError, match=f"The '{name}' argument of make_logistic_learners"):
        make_logistic_learners(**options)
