"""A fitted model shows its answer in a notebook, an unfitted one its diagram only."""

from html import escape

import numpy as np
import pytest
import sklearn

from coterie import CoterieClassifier, CoterieRegressor
from coterie._notebook import summary_html
from coterie.datasets import make_linear_learners, make_logistic_learners
from coterie.summary import summarize


@pytest.fixture(scope="module", params=["numbers", "two classes", "three classes"])
def model(request):
    if request.param == "numbers":
        data = make_linear_learners(n_learners=6, n_truths=2, n_rows=30, n_features=2, random_state=0)
        return CoterieRegressor(candidates=["lr"], n_clusters=2).fit(data.X, data.y, groups=data.groups)
    n_classes = 2 if request.param == "two classes" else 3
    data = make_logistic_learners(6, 2, 60, 2, n_classes, scale=3.0, random_state=0)
    y = np.array(["no", "perhaps", "yes"])[data.y]
    return CoterieClassifier("linear", n_clusters=2, n_bootstrap=5).fit(data.X, y, groups=data.groups)


def test_a_fitted_model_tells_its_answer_above_the_diagram(model):
    html = model._repr_html_()
    answer = summarize(model.record_)["answer"]
    assert answer[0] == "The 6 learners fall into 2 coteries, of 3 and 3 members."
    assert all(escape(sentence) in html for sentence in answer)
    assert html.index("6 learners") < html.index("sk-container")
    assert model._repr_mimebundle_()["text/html"].count("6 learners fall into 2") == 1


@pytest.mark.parametrize("estimator", [CoterieRegressor, CoterieClassifier])
def test_an_unfitted_model_shows_the_diagram_alone(estimator):
    html = estimator()._repr_html_()
    assert "sk-container" in html
    assert "learners fall" not in html


def test_text_display_has_no_html(model):
    with sklearn.config_context(display="text"):
        assert "text/html" not in model._repr_mimebundle_()


def test_the_sentences_of_the_answer_are_shown_and_escaped():
    html = summary_html({"answer": ["First.", "It pays for <b>."]})
    assert "<strong>First.</strong><br>It pays for &lt;b&gt;.<br>" in html
    assert "coterie.Report(model)" in html
