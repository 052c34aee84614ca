"""A fitted model shows its answer in a notebook, an unfitted one its diagram only."""

import pytest
import sklearn

from coterie import CoterieRegressor
from coterie._notebook import summary_html
from coterie.datasets import make_linear_learners


@pytest.fixture(scope="module")
def model() -> CoterieRegressor:
    data = make_linear_learners(n_learners=6, n_truths=2, n_rows=30, n_features=2, random_state=0)
    return CoterieRegressor(candidates=["lr"], n_clusters=2).fit(data.X, data.y, groups=data.groups)


def test_a_fitted_model_tells_its_answer_above_the_diagram(model):
    html = model._repr_html_()
    assert "6 learners in 2 coteries of 3, 3 members" in html
    assert html.index("6 learners") < html.index("sk-container")
    assert model._repr_mimebundle_()["text/html"].count("6 learners in 2") == 1


def test_an_unfitted_model_shows_the_diagram_alone():
    html = CoterieRegressor()._repr_html_()
    assert "sk-container" in html
    assert "learners in" not in html


def test_text_display_has_no_html(model):
    with sklearn.config_context(display="text"):
        assert "text/html" not in model._repr_mimebundle_()


def summary_of(sizes, rule, pays):
    """The part of the summary that a notebook shows."""
    coteries = [{"cluster": label, "n_learners": size} for label, size in enumerate(sizes)]
    return {"n_learners": sum(sizes), "coteries": coteries, "rule": rule, "pays": pays}


def test_verdicts_are_told_and_escaped():
    pays = {"n_measured": 2, "n_better": 1, "median_gain": 0.125}
    pays["verdicts"] = {"collaborate": 2, "<b>": 1, "stay alone": 0}
    html = summary_html(summary_of([2, 1], "held-out", pays))
    assert "2 collaborate, 1 &lt;b&gt;<" in html
    assert "1 of 2 better" in html
    assert "typical saving 12% of the error" in html
    assert "by the rule held-out" in html


def test_without_any_measured_gain_nothing_is_said_of_saving():
    pays = {"n_measured": 0, "n_better": 0, "median_gain": None, "verdicts": {"stay alone": 1}}
    html = summary_html(summary_of([1], "given", pays))
    assert "1 learner in 1 coterie of 1 member<" in html
    assert "saving" not in html
