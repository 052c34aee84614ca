from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

from coterie._seeds import seed_estimator
from coterie.candidates import PRESETS, make_candidates
from coterie.engines import ThreadEngine
from coterie.kernels.losses import loss_matrix, own_errors
from coterie.method.fitting import quiet_fits
from coterie.rows.learners import Learners


class Fails:
    def predict(self, X: Any) -> Any:
        raise RuntimeError("no")


def fitted(name: str, learners: Learners) -> list[Any]:
    """One model per learner."""
    models = []
    with quiet_fits():
        for j in range(len(learners)):
            span = learners.span(j)
            model = seed_estimator(clone(make_candidates(name)[name]), 0)
            models.append(model.fit(learners.X[span], learners.scalar_y[span]))
    return models


@pytest.mark.parametrize("name", PRESETS["paper"])
def test_the_losses_of_each_of_the_papers_candidates_equal_the_double_loop(
    name: str, make_learners: Callable[..., Learners], double_loop: Callable[..., Any]
) -> None:
    learners = make_learners((12, 9, 15))
    models = fitted(name, learners)
    losses = loss_matrix(models, learners, ThreadEngine())
    assert np.allclose(losses, double_loop(models, learners), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("clipped", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_mixed_families_equal_the_double_loop_in_the_order_of_the_models(
    weighted: bool,
    clipped: bool,
    n_jobs: int,
    make_learners: Callable[..., Learners],
    double_loop: Callable[..., Any],
) -> None:
    learners = make_learners((12, 9, 15), weighted=weighted)
    models = [fitted(name, learners)[j] for j, name in enumerate(("knn", "lasso", "svr"))]
    models += [LinearRegression().fit(learners.X, learners.scalar_y), *fitted("en", learners)]
    clips = np.array([0.1, 1.0, np.inf]) if clipped else None
    losses = loss_matrix(models, learners, ThreadEngine(n_jobs), clips)
    assert losses.shape == (7, 3)
    assert np.allclose(losses, double_loop(models, learners, clips), rtol=1e-9)


def test_a_model_that_fails_does_not_touch_the_others(
    make_learners: Callable[..., Learners], double_loop: Callable[..., Any]
) -> None:
    learners = make_learners((12, 9))
    good = fitted("lr", learners)
    losses = loss_matrix([good[0], Fails(), good[1]], learners, ThreadEngine())
    assert np.isnan(losses[1]).all()
    assert np.allclose(losses[[0, 2]], double_loop(good, learners))


def test_a_linear_model_with_an_infinite_coefficient_is_not_finite_anywhere(
    make_learners: Callable[..., Learners],
) -> None:
    learners = make_learners((12, 9))
    model = LinearRegression().fit(learners.X, learners.scalar_y)
    model.intercept_ = np.inf
    assert not np.isfinite(loss_matrix([model], learners, ThreadEngine())).any()


def test_no_models_have_no_losses(make_learners: Callable[..., Learners]) -> None:
    assert loss_matrix([], make_learners((3, 3)), ThreadEngine()).shape == (0, 2)


@pytest.mark.parametrize("weighted", [False, True])
def test_own_errors_are_the_diagonal_of_the_losses(
    weighted: bool, make_learners: Callable[..., Learners], double_loop: Callable[..., Any]
) -> None:
    learners = make_learners((12, 9, 15), weighted=weighted)
    models = [fitted(name, learners)[j] for j, name in enumerate(("knn", "lasso", "lr"))]
    assert np.allclose(own_errors(models, learners), np.diag(double_loop(models, learners)), rtol=1e-9)
    models[1] = Fails()
    assert np.isnan(own_errors(models, learners)[1])
