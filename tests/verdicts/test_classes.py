"""What is told of learners whose response is a class: gains, outliers, differences, newcomers, pictures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from coterie import CoterieClassifier
from coterie.datasets import make_logistic_learners
from coterie.summary import summarize
from coterie.verdicts import compare_clusters, find_outliers


def rows(n_classes: int = 2, shuffled: str = "") -> tuple[Any, Any, Any]:
    """Ten learners of two truths that differ in the second predictor; one may have meaningless classes."""
    rng = np.random.default_rng(1)
    owner = np.repeat(np.arange(10), 80)
    X = rng.normal(size=(800, 3))
    slopes = np.zeros((2, 3, n_classes))
    slopes[:, 0, 0], slopes[:, 1, 1] = 3.0, [3.0, -3.0]
    scores = np.einsum("np,npc->nc", X, slopes[owner % 2]) + rng.gumbel(size=(800, n_classes))
    y, groups = np.array(["a", "b", "c"])[scores.argmax(axis=1)], np.array([f"s{j}" for j in owner])
    if shuffled:
        # As if somebody had turned the classes around.
        mine = groups == shuffled
        y[mine] = np.array(["b", "a", "c"])[np.searchsorted(["a", "b", "c"], y[mine])]
    return X, y, groups


@pytest.fixture(scope="module", params=[2, 3])
def model(request: Any) -> CoterieClassifier:
    X, y, groups = rows(request.param)
    return CoterieClassifier("linear", n_bootstrap=20).fit(X, y, groups=groups)


def test_errors_are_brier_scores_of_rows_not_seen(model: CoterieClassifier) -> None:
    loss = model.record_.options.loss
    expected = [loss.by_row(part).mean() for part in model.collaboration_.residuals]
    of_all = [loss.by_row(part).mean() for part in model.record_.with_all.residuals]
    assert_allclose(model.gains_["error_all"], of_all)
    assert_allclose(model.gains_["error_with"], expected, rtol=0.1)
    assert np.isfinite(model.gains_["gain"]).all()
    assert (model.gains_["verdict"] != "stay alone").all()


def test_the_bootstrap_is_sure_of_clear_coteries(model: CoterieClassifier) -> None:
    assert model.n_clusters_ == 2
    assert (model.gains_["membership"] > 0.9).all()


def test_clusters_differ_where_their_truths_do(model: CoterieClassifier) -> None:
    found = compare_clusters(model, 0, 1)
    assert found.predictors[found.importance.argmax()] == "x1"
    if len(model.classes_) == 2:
        second, first = compare_clusters(model, 0, 1, "b"), compare_clusters(model, 0, 1, "a")
        assert_allclose(second.trend, -first.trend)
    with pytest.raises(ValueError, match="must be a class of the model, 'a', 'b'"):
        compare_clusters(model, 0, 1, "zebra")


def test_a_learner_with_turned_classes_is_found() -> None:
    X, y, groups = rows(2, shuffled="s4")
    model = CoterieClassifier("linear", n_bootstrap=0).fit(X, y, groups=groups)
    found = find_outliers(model)
    assert found.learner_ids[found.data].tolist() == ["s4"]
    assert model.gains_.of(["s4"])["fits"].tolist() == [False]


def test_a_newcomer_that_fits_no_coterie_is_told_so(model: CoterieClassifier) -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(200, 3))
    odd = np.where(X[:, 2] > 0, "a", "b")
    assert model.record_.n_clusters == 2
    again = CoterieClassifier("linear", n_bootstrap=0).fit(*rows()[:2], groups=rows()[2])
    assert again.admit(X, odd, groups=np.full(200, "odd")).tolist() == [-1]
    assert np.mean(again.predict(X, groups=np.full(200, "odd")) == odd) > 0.9


def test_the_answer_speaks_of_log_loss_brier_score_and_accuracy(model: CoterieClassifier) -> None:
    summary = summarize(model.record_)
    assert set(summary["scores"]) == {"alone", "with", "all"}
    for scores in summary["scores"].values():
        assert 0 < scores["brier"] < scores["log_loss"]
        assert 0.4 < scores["accuracy"] < 1
    text = " ".join(summary["answer"])
    assert "of its Brier score. On rows not seen: log loss alone" in text
    assert "squared" not in text


@pytest.mark.parametrize(("seed", "scale"), [(0, 0.7), (10, 0.7), (1, 0.5)])
def test_the_opposite_relation_of_one_learner_is_recognised(seed: int, scale: float) -> None:
    data = make_logistic_learners(20, 1, 60, scale=scale, random_state=seed)
    odd = data.groups == data.learner_ids[7]
    model = CoterieClassifier("linear", n_bootstrap=0)
    gains = model.fit(data.X, np.where(odd, 1 - data.y, data.y), groups=data.groups).gains_
    assert np.flatnonzero(~gains["fits"]).tolist() == [7]
    assert gains["gain"][7] < 0.01
    assert gains["verdict"][7] != "collaborate"
