"""Nested coteries for classes: weights, guards, few rows, newcomers, and honest residuals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import log_loss

from coterie import CoterieClassifier


def rows(n_classes: int = 2, n_learners: int = 8, n: int = 60, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(n_learners), n)
    X = rng.normal(size=(len(owner), 3))
    slopes = 1.5 * rng.normal(size=(2, 3, n_classes))[owner % 2]
    levels = 0.5 * rng.normal(size=(n_learners, n_classes))[owner]
    scores = np.einsum("np,npc->nc", X, slopes) + levels + rng.gumbel(size=(len(owner), n_classes))
    return X, scores.argmax(axis=1), np.array([f"s{j}" for j in owner])


def fitted(data: Any, **options: Any) -> CoterieClassifier:
    return CoterieClassifier(**{"n_bootstrap": 0, **options}).fit(*data[:2], groups=data[2])


@pytest.mark.parametrize("candidates", ["linear", None])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_it_predicts_new_rows_better_than_alone_and_than_one_for_all(n_classes: int, candidates: Any) -> None:
    X, y, groups = rows(n_classes, n=120)
    train = np.tile(np.arange(120) < 40, 8)
    model = fitted((X[train], y[train], groups[train]), candidates=candidates)
    lost = {
        name: log_loss(y[~train], model.predict_proba(X[~train], groups=groups[~train], using=name))
        for name in ("others", "alone")
    }
    coterie = model.collaboration_
    assert_allclose(coterie.weights.sum(axis=1) + coterie.line_weights.sum(axis=1), 1)
    assert_allclose(coterie.shares.sum(axis=1), 1)
    assert lost["others"] < lost["alone"]
    everybody = coterie.with_all().predict_columns(X[~train], np.full(np.sum(~train), coterie.all_row))
    assert lost["others"] < log_loss(y[~train], coterie.loss.from_columns(everybody))


def test_residuals_are_of_weights_and_models_that_have_not_seen_the_row() -> None:
    data = rows(n=30)
    model = fitted(data)
    inside = model.collaboration_.loss.by_row(np.concatenate(model.collaboration_.residuals)).mean()
    fitted_rows = model.predict_proba(data[0], groups=data[2], using="others")[:, 1]
    # A forest knows its own rows by heart.
    assert np.mean((fitted_rows - data[1]) ** 2) < inside


def test_learners_with_few_rows_are_pooled_with_the_others() -> None:
    X, y, groups = rows()
    few = np.r_[np.arange(5), np.arange(60, 480)]
    model = fitted((X[few], y[few], groups[few]))
    assert model.record_.few is not None
    assert model.record_.few.ids.tolist() == ["s0"]
    assert_allclose(model.predict_proba(X[:5], groups=groups[:5]).sum(axis=1), 1)
    assert np.isfinite(model.gains_.of(["s0"])["error_with"]).all()
    model.remove(["s0"])
    assert "s0" not in model.learner_ids_.tolist()


def test_own_models_are_no_surer_than_their_rows_allow() -> None:
    X, y, groups = rows()
    y = np.where(groups == "s3", 0, y)
    model = fitted((X, y, groups))
    own = model.predict_proba(X, groups=groups, using="alone")
    assert own.min() >= 1 / 62 - 1e-9


def test_a_newcomer_of_a_coterie_is_predicted_as_its_members_are() -> None:
    X, y, groups = rows(n=100)
    known = groups != "s7"
    model = fitted((X[known], y[known], groups[known]), candidates="linear")
    new = np.flatnonzero(~known)
    model.admit(X[new[:50]], y[new[:50]], groups=groups[new[:50]])
    here = model.predict_proba(X[new[50:]], groups=groups[new[50:]])
    with pytest.warns(UserWarning, match="was not seen in fit"):
        unknown = model.predict_proba(X[new[50:]], groups=np.full(50, "stranger"))
    assert log_loss(y[new[50:]], here) < log_loss(y[new[50:]], unknown)


def test_averages_of_models_take_the_place_where_rows_are_not_pooled() -> None:
    assert fitted(rows(n=30), refine="average").collaboration_.of_averages


def test_a_learner_that_is_alone_predicts_with_its_own_model() -> None:
    X, y, _ = rows(n_learners=1)
    model = CoterieClassifier(n_bootstrap=0).fit(X, y, groups=[0] * len(y))
    assert model.collaboration_.method == "local"
    assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_little_effort_is_quick_and_right() -> None:
    model = fitted(rows(), effort="fast")
    assert set(model.selection_.names) == {"logistic"}
    assert model.collaboration_.n_fits <= 5


def test_sorted_classes_are_not_rows_in_time_order() -> None:
    X, y, groups = rows(n=100)
    order = np.lexsort((y, groups))
    model = fitted((X[order], y[order], groups[order]), candidates="linear")
    assert not model.selection_.in_order
