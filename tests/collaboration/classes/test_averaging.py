"""Nested coteries of classifiers that move no rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import log_loss

from coterie import CoterieClassifier, load, save
from coterie.collaboration.classes import ClassAverages
from coterie.datasets import make_logistic_learners

NAMES = np.array(["no", "perhaps", "yes"])


def data(n_classes: int = 2) -> Any:
    return make_logistic_learners(
        12, n_truths=2, n_rows=150, n_features=3, n_classes=n_classes, random_state=0
    )


def fitted(n_classes: int = 2, **options: Any) -> tuple[CoterieClassifier, Any, Any]:
    """A model of the first 40 rows of each learner; the first learner has seen one class."""
    made = data(n_classes)
    place = np.arange(len(made.y)) % 150
    one = (made.groups == made.learner_ids[0]) & (made.y != 0)
    seen = (place < 40) & ~one
    model = CoterieClassifier(**{"candidates": "linear", "refine": "average", "n_bootstrap": 0, **options})
    return model.fit(made.X[seen], NAMES[made.y][seen], groups=made.groups[seen]), made, place >= 40


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("candidates", ["linear", ["rf", "logistic"]])
def test_it_is_better_than_alone_on_rows_not_seen(n_classes: int, candidates: Any) -> None:
    model, made, new = fitted(n_classes, candidates=candidates)
    others = made.groups != made.learner_ids[0]
    rows = made.X[new & others], made.groups[new & others]
    assert isinstance(model.collaboration_, ClassAverages)
    lost = {
        using: log_loss(made.y[new & others], model.predict_proba(*rows, using=using))
        for using in ("verdict", "others", "alone")
    }
    assert lost["others"] < 0.95 * lost["alone"]
    assert lost["verdict"] <= lost["alone"]
    assert_allclose(model.predict_proba(*rows).sum(axis=1), 1)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_shares_and_weights_sum_to_one(n_classes: int) -> None:
    nested = fitted(n_classes)[0].collaboration_
    for weights in (nested.weights, nested.part_shares, nested.shares):
        assert_allclose(weights.sum(axis=1), 1)
    assert_allclose(nested.parts[:12].sum(axis=2), 1)
    # A learner's own model is in no average that predicts it, unless nobody else's is of use.
    own = nested.parts[np.arange(12), 1:, np.arange(12)]
    assert set(np.unique(own)) <= {0.0, 1.0}


def test_who_has_seen_one_class_takes_part_and_is_never_certain() -> None:
    model, made, new = fitted()
    mine = new & (made.groups == made.learner_ids[0])
    found = model.predict_proba(made.X[mine], groups=made.groups[mine])
    assert model.learner_ids_[0] == made.learner_ids[0]
    n = model.gains_["n_rows"][0]
    assert found.min() >= 1 / (n + 2) - 1e-12


def test_honest_residuals_are_near_those_of_new_rows() -> None:
    model, made, new = fitted()
    honest = np.concatenate(model.collaboration_.residuals)
    predicted = model.predict_proba(made.X[new], groups=made.groups[new], using="others")[:, 1]
    assert_allclose(np.mean(honest**2), np.mean((predicted - made.y[new]) ** 2), rtol=0.25)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_newcomers_join_and_models_are_saved(n_classes: int, tmp_path: Path) -> None:
    model, made, new = fitted(n_classes)
    place = made.groups == made.learner_ids[1]
    ids = np.full(int((place & ~new).sum()), "late")
    model.admit(made.X[place & ~new], NAMES[made.y][place & ~new], groups=ids)
    assert model.learner_labels_[-1] == model.learner_labels_[1]
    late = np.full(int((place & new).sum()), "late")
    mine = model.predict_proba(made.X[place & new], groups=late)
    nested = model.collaboration_
    nobody = nested.predict(made.X[place & new], np.full(len(late), nested.all_row))
    truth = made.y[place & new]
    labels = range(n_classes)
    assert log_loss(truth, mine, labels=labels) < log_loss(truth, nobody, labels=labels)
    save(model, tmp_path / "model.coterie")
    again = load(tmp_path / "model.coterie")
    assert_allclose(again.predict_proba(made.X[place & new], groups=late), mine)
    model.remove([made.learner_ids[3]])
    assert_allclose(model.predict_proba(made.X[new & place], groups=late).sum(axis=1), 1)


def test_weights_of_rows_are_heard() -> None:
    made = data()
    weights = np.where(made.y == 1, 5.0, 1.0)
    plain, weighted = (
        CoterieClassifier("linear", refine="average", n_bootstrap=0).fit(
            made.X, made.y, groups=made.groups, **given
        )
        for given in ({}, {"sample_weight": weights})
    )
    chances = [model.predict_proba(made.X, groups=made.groups)[:, 1].mean() for model in (plain, weighted)]
    assert chances[1] > chances[0] + 0.1
