"""Clusters that predict by logistic models of the others' rows, and one truth that is not torn apart."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.signal import lfilter
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from coterie.candidates import ForClasses
from coterie.loss import BrierScore
from coterie.method.refine.logistic import LogisticLosses
from coterie.method.select import select_models
from coterie.rows.learners import gather_learners


def losses_of(n_classes: int = 2, truths: int = 2, n: int = 80, rare: float = 0.0, n_learners: int = 8):
    rng = np.random.default_rng(3)
    owner = np.repeat(np.arange(n_learners), n)
    X = rng.normal(size=(len(owner), 3))
    slopes = 1.5 * rng.normal(size=(truths, 3, n_classes))[owner % truths]
    scores = np.einsum("np,npc->nc", X, slopes) + rng.gumbel(size=(len(owner), n_classes))
    scores[:, 1:] -= rare
    learners = gather_learners(X, scores.argmax(axis=1), owner, loss=BrierScore(n_classes), caller="test")
    selection = select_models(learners, candidates=ForClasses("linear")).aligned_to(learners.ids)
    return LogisticLosses(learners, selection), learners


def test_a_learner_is_predicted_by_the_rows_of_the_others_in_its_cluster() -> None:
    losses, learners = losses_of()
    labels = np.arange(8) % 2
    residuals = losses.residuals(labels, 2)[:, np.argsort(losses.learners.rows), 0]
    Z = (learners.X - learners.X.mean(axis=0)) / learners.X.std(axis=0)
    y = learners.y[:, 0]
    for j, k in ((0, 0), (0, 1), (5, 1)):
        others = np.isin(learners.owner, np.flatnonzero((labels == k) & (np.arange(8) != j)))
        # The level is shrunken to that of all, which hundreds of rows hardly notice.
        model = LogisticRegression(C=1.0, tol=1e-10).fit(Z[others], y[others])
        span = learners.span(j)
        assert_allclose(residuals[k, span], y[span] - model.predict_proba(Z[span])[:, 1], atol=0.01)


def test_who_is_alone_or_nowhere_has_nobody_to_predict_with() -> None:
    losses, _ = losses_of()
    residuals = losses.residuals(np.array([0, 0, 0, 0, 0, 0, 0, 2]), 3)
    mine = losses.learners.owner == 7
    assert np.isnan(residuals[2, mine]).all()
    assert np.isnan(residuals[1]).all()
    assert np.isfinite(residuals[0]).all()


def test_probabilities_of_several_classes_sum_to_one() -> None:
    losses, _ = losses_of(n_classes=3)
    residuals = losses.learners.y - losses.residuals(np.arange(8) % 2, 2)
    assert_allclose(residuals.sum(axis=2), 1)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("rare", [0.0, 5.0])
def test_one_truth_is_not_ruled_out_and_two_are(n_classes: int, rare: float) -> None:
    assert losses_of(n_classes, 1, rare=rare)[0].one_truth_test(0) == (0.0, 0.0)
    if not rare:
        assert losses_of(n_classes, 2)[0].one_truth_test(0)[0] > 3


@pytest.mark.parametrize("truths", [1, 2])
def test_levels_that_drift_are_no_second_truth(truths: int) -> None:
    rng = np.random.default_rng(3)
    owner = np.repeat(np.arange(24), 100)
    X = rng.normal(size=(len(owner), 5))
    drift = lfilter([0.3], [1.0, -0.95], rng.normal(size=(24, 100)), axis=1).ravel()
    slopes = 1.5 * rng.normal(size=(truths, 5))[owner % truths]
    y = rng.random(len(owner)) < expit(np.sum(X * slopes, axis=1) + 1.5 * drift)
    learners = gather_learners(X, y.astype(int), owner, loss=BrierScore(2), caller="test")
    selection = select_models(learners, candidates=ForClasses("linear")).aligned_to(learners.ids)
    assert selection.dependent
    deviations, _ = LogisticLosses(learners, selection).one_truth_test(0)
    assert deviations > 3 if truths == 2 else deviations == 0
