"""`CoterieClassifier`: the contract of scikit-learn, and learners with few classes."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from coterie import CoterieClassifier

# Every fold has rows of all learners.
SHUFFLED = StratifiedKFold(2, shuffle=True, random_state=0)


def rows(n_classes: int = 2, n_learners: int = 6, n: int = 40, seed: int = 0) -> tuple[Any, Any, Any]:
    """Learners of two truths, every second of the same."""
    rng = np.random.default_rng(seed)
    groups = np.repeat([f"s{j}" for j in range(n_learners)], n)
    owner = np.repeat(np.arange(n_learners), n)
    X = rng.normal(size=(len(owner), 2))
    slopes = 2.5 * rng.normal(size=(2, 2, n_classes))[owner % 2]
    scores = np.einsum("np,npc->nc", X, slopes) + rng.gumbel(size=(len(owner), n_classes))
    return X, np.array(["no", "perhaps", "yes"])[scores.argmax(axis=1)], groups


def quick(**options: Any) -> CoterieClassifier:
    return CoterieClassifier(**{"candidates": "linear", "n_bootstrap": 5, **options})


@pytest.mark.filterwarnings("ignore:.* got no groups:UserWarning")
@parametrize_with_checks([CoterieClassifier()])
def test_scikit_learn_s_own_checks_pass(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_are_those_of_the_labels(n_classes: int) -> None:
    X, y, groups = rows(n_classes)
    model = quick().fit(X, y, groups=groups)
    probabilities = model.predict_proba(X, groups=groups)
    assert model.classes_.tolist() == ["no", "perhaps", "yes"][:n_classes]
    assert model.n_clusters_ == 2
    assert model.learner_labels_.tolist() == [0, 1] * 3
    assert probabilities.shape == (len(X), n_classes)
    assert (probabilities >= 0).all()
    assert_allclose(probabilities.sum(axis=1), 1)
    assert (model.predict(X, groups=groups) == model.classes_[probabilities.argmax(axis=1)]).all()
    with np.errstate(divide="ignore"):
        assert_allclose(model.predict_log_proba(X, groups=groups), np.log(probabilities))
    assert model.score(X, y, groups=groups) == np.mean(model.predict(X, groups=groups) == y) > 0.7


@pytest.mark.parametrize("collaboration", ["pooled", "average", "local", "global"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_every_form_of_collaboration_takes_classes(collaboration: str, n_classes: int) -> None:
    X, y, groups = rows(n_classes)
    model = quick(collaboration=collaboration).fit(X, y, groups=groups)
    assert_allclose(model.predict_proba(X, groups=groups).sum(axis=1), 1)
    assert model.collaboration_.method == collaboration


@pytest.mark.parametrize("labels", [(False, True), (1, 2), ("no", "yes"), (-1.0, 1.0), (7, 3)])
def test_labels_are_what_the_user_calls_them(labels: Any) -> None:
    X, y, groups = rows()
    named = np.array(labels)[(y == "perhaps").astype(int)]
    model = quick(n_clusters=2).fit(X, named, groups=groups)
    assert set(model.predict(X, groups=groups).tolist()) == set(labels)
    assert model.score(X, named, groups=groups) > 0.7
    truths = (y == "no").astype(object)
    verdicts = quick(n_clusters=2).fit(X, truths, groups=groups)
    assert verdicts.score(X, truths, groups=groups) == verdicts.score(X, y == "no", groups=groups) > 0.7


def test_learners_with_one_class_take_part() -> None:
    X, y, groups = rows(n_learners=8)
    y = np.where(np.isin(groups, ["s0", "s5"]), "no", y)
    for candidates in ("linear", None, LogisticRegression()):
        model = quick(candidates=candidates).fit(X, y, groups=groups)
        assert model.learner_ids_.tolist() == [f"s{j}" for j in range(8)]
        mine = groups == "s0"
        assert (model.predict(X[mine], groups=groups[mine]) == "no").mean() > 0.5


@pytest.mark.parametrize("collaboration", ["auto", "local", "pooled", "average"])
def test_a_learner_of_one_class_is_neither_sure_nor_judged(collaboration: str) -> None:
    X, y, groups = rows()
    y[groups == groups[0]] = y[0]
    model = quick(collaboration=collaboration, n_bootstrap=0).fit(X, y, groups)
    own = groups == groups[0]
    assert np.isfinite(model.predict_log_proba(X[own], groups[own])).all()
    row = model.gains_.of([groups[0]])
    assert row["verdict"][0] == "no clear difference"
    assert row["reason"][0].startswith(("All its rows have one class", "It takes nothing", "Nobody shares"))
    assert row["fits"][0]


def test_a_class_that_few_have_seen_keeps_its_column() -> None:
    X, y, groups = rows(3)
    seen = (groups == "s1") | (y != "yes")
    X, y, groups = X[seen], y[seen], groups[seen]
    model = quick().fit(X, y, groups=groups)
    assert model.classes_.tolist() == ["no", "perhaps", "yes"]
    assert_allclose(model.predict_proba(X, groups=groups).sum(axis=1), 1)


def test_a_class_of_three_rows_is_no_outlier() -> None:
    X, y, groups = rows(3)
    rare = np.isin(np.arange(len(y)), [3, 50, 99])
    y = np.where(rare, "zebra", np.where(y == "yes", "no", y))
    model = quick().fit(X, y, groups=groups)
    assert len(model.record_.learners.y) == len(X)
    assert np.isinf(model.selection_.clips).all()


def test_fifty_classes_are_predicted() -> None:
    rng = np.random.default_rng(0)
    groups, y = np.repeat(np.arange(4), 100), rng.integers(50, size=400)
    X = np.column_stack([y % 7, y // 7]) + 0.1 * rng.normal(size=(400, 2))
    model = quick(n_clusters=1, collaboration="pooled", candidates="knn").fit(X, y, groups=groups)
    assert model.predict_proba(X, groups=groups).shape == (400, 50)
    assert model.score(X, y, groups=groups) > 0.8


def test_weights_reach_the_candidates_and_the_losses() -> None:
    X, y, groups = rows()
    weights = np.where(y == "no", 20.0, 1.0)
    plain = quick(n_clusters=1).fit(X, y, groups=groups).predict_proba(X, groups=groups)
    weighted = quick(n_clusters=1).fit(X, y, groups=groups, sample_weight=weights)
    assert weighted.predict_proba(X, groups=groups)[:, 0].mean() > plain[:, 0].mean() + 0.1


def test_it_works_where_classifiers_do() -> None:
    X, y, groups = rows()
    table = pd.DataFrame(X, columns=["a", "b"]).assign(site=groups)
    model = quick(group_column="site", n_clusters=2, collaboration="pooled")
    probabilities = cross_val_predict(model, table, y, cv=SHUFFLED, method="predict_proba")
    assert probabilities.shape == (len(X), 2)
    calibrated = CalibratedClassifierCV(model, cv=SHUFFLED).fit(table, y)
    assert calibrated.predict_proba(table).shape == (len(X), 2)
    search = GridSearchCV(model, {"n_clusters": [1, 2]}, cv=SHUFFLED, scoring="neg_log_loss").fit(table, y)
    assert search.best_params_ == {"n_clusters": 2}
    piped = make_pipeline(FunctionTransformer(), model).fit(table, y)
    assert piped.score(table, y) > 0.7


def test_groups_are_routed_to_probabilities() -> None:
    X, y, groups = rows()
    with config_context(enable_metadata_routing=True):
        model = quick(n_clusters=2, collaboration="pooled")
        model.set_fit_request(groups=True).set_score_request(groups=True)
        found = cross_validate(model, X, y, params={"groups": groups}, cv=SHUFFLED)
        assert found["test_score"].mean() > 0.6


def test_clone_and_pickle_keep_what_they_should() -> None:
    X, y, groups = rows()
    model = quick().fit(X, y, groups=groups)
    again = pickle.loads(pickle.dumps(model))
    assert_allclose(again.predict_proba(X, groups=groups), model.predict_proba(X, groups=groups))
    assert not hasattr(clone(model), "classes_")


@pytest.mark.parametrize(
    ("candidates", "sentence"),
    [
        (LinearSVC(), "LinearSVC has no predict_proba: wrap it in CalibratedClassifierCV"),
        (SVC(), "SVC has no predict_proba"),
        ("ridge", "Known names: 'logistic', 'rf', 'gb', 'knn'; known presets: 'default', 'linear'"),
    ],
)
def test_what_has_no_probabilities_is_no_candidate(candidates: Any, sentence: str) -> None:
    X, y, groups = rows()
    with pytest.raises(ValueError, match=sentence):
        quick(candidates=candidates).fit(X, y, groups=groups)


def test_what_cannot_be_fitted_says_so() -> None:
    X, y, groups = rows()
    with pytest.raises(ValueError, match="has 2 columns, and a learner has one response"):
        quick().fit(X, np.column_stack([y, y]), groups=groups)
    with pytest.raises(ValueError, match=r"needs rows of two classes at least\. Got one class: 'no'"):
        quick().fit(X, np.full(len(X), "no"), groups=groups)


def test_newcomers_are_placed_and_predicted() -> None:
    X, y, groups = rows()
    model = quick().fit(X, y, groups=groups)
    mine = groups == "s1"
    assert model.admit(X[mine], y[mine], groups=np.full(mine.sum(), "new")).tolist() == [1]
    assert model.predict_proba(X[mine], groups=np.full(mine.sum(), "new")).shape == (mine.sum(), 2)
    with pytest.raises(ValueError, match=r"The class 'other' in y of CoterieClassifier\.admit was not seen"):
        model.admit(X[mine], np.full(mine.sum(), "other"), groups=np.full(mine.sum(), "newer"))
    model.remove(["s0"])
    assert "s0" not in model.learner_ids_.tolist()
