"""Losses of logistic models by one product: the same as by `predict_proba`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from coterie.engines import resolve_engine
from coterie.kernels.logistic import is_line, logistic_form, logistic_losses
from coterie.kernels.losses import loss_matrix
from coterie.loss import BrierScore
from coterie.method.fitting import fit_model
from coterie.models.logistic import QuickLogistic
from coterie.rows.learners import Learners, gather_learners


def learners_of(
    n_classes: int, n_learners: int = 6, weighted: bool = False, p: int = 3, n: int = 40
) -> Learners:
    rng = np.random.default_rng(n_classes)
    owner = np.repeat(np.arange(n_learners), n)
    X = rng.normal(size=(len(owner), p)) * 3 + 1
    slopes = rng.normal(size=(n_learners, p, n_classes))[owner]
    scores = np.einsum("np,npc->nc", X, slopes) + rng.gumbel(size=(len(owner), n_classes))
    if n_classes > 2:
        # The first two learners see two classes only, not the first ones.
        scores[owner < 2, 0] = -np.inf
        scores[owner < 2, 3:] = -np.inf
    weights = rng.uniform(0.2, 2, size=len(owner)) if weighted else None
    y = scores.argmax(axis=1)
    return gather_learners(X, y, owner, sample_weight=weights, loss=BrierScore(n_classes), caller="test")


def fitted(model: Any, learners: Learners) -> list[Any]:
    spans = map(learners.span, range(len(learners)))
    return [fit_model(clone(model), learners.X[s], learners.loss.target(learners.y[s])) for s in spans]


def one_by_one(models: list[Any], learners: Learners) -> Any:
    table = np.empty((len(models), len(learners)))
    for i, model in enumerate(models):
        for j in range(len(learners)):
            span = learners.span(j)
            squares = ((learners.loss.predict(model, learners.X[span]) - learners.y[span]) ** 2).sum(axis=1)
            table[i, j] = np.average(
                squares, weights=None if learners.weights is None else learners.weights[span]
            )
    return table


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("kind", ["quick", "scikit-learn", "one against the rest"])
def test_losses_are_those_of_predict_proba(kind: str, n_classes: int, weighted: bool) -> None:
    learners = learners_of(n_classes, weighted=weighted)
    model = {
        "quick": QuickLogistic(),
        "scikit-learn": LogisticRegression(max_iter=500),
        "one against the rest": LogisticRegression(solver="liblinear")
        if n_classes == 2
        else QuickLogistic((1.0,)),
    }[kind]
    models = fitted(model, learners)
    forms = [logistic_form(each, learners.n_features) for each in models]
    assert_allclose(logistic_losses(forms, learners), one_by_one(models, learners), atol=1e-12)
    assert_allclose(loss_matrix(models, learners, resolve_engine()), one_by_one(models, learners), atol=1e-12)


def test_scalers_before_the_line_are_part_of_it() -> None:
    learners = learners_of(2)
    s, y = learners.span(0), learners.loss.target(learners.y[learners.span(0)])
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(learners.X[s], y)
    form = logistic_form(model, 3)
    assert form is not None
    assert_allclose(logistic_losses([form], learners), one_by_one([model], learners))


def test_what_is_not_a_line_is_none() -> None:
    learners = learners_of(2)
    X, y = learners.X, learners.loss.target(learners.y)
    assert logistic_form(GaussianNB().fit(X, y), 3) is None
    curved = make_pipeline(PolynomialFeatures(2), StandardScaler(), LogisticRegression()).fit(X, y)
    assert not is_line(curved, 3)
    assert is_line(LogisticRegression().fit(X, y), 3)
