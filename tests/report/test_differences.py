import html
from dataclasses import replace
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from coterie import CoterieClassifier, CoterieRegressor, Report
from coterie.datasets import make_linear_learners, make_logistic_learners
from coterie.displays import DifferencesDisplay
from coterie.report.differences import MOST_PAIRS, chosen_pairs, differences_picture
from coterie.report.subject import ReportSubject, as_subject
from coterie.verdicts import compare_clusters


@pytest.fixture(scope="module")
def opposed() -> CoterieRegressor:
    """Two truths that differ in the third predictor alone."""
    truths = [[1.0, 0.0, 2.0], [1.0, 0.0, -2.0]]
    data = make_linear_learners(8, coefficients=truths, random_state=0)
    table = pd.DataFrame(data.X, columns=["age", "<b>", "do\u2028se & <i>"])
    return CoterieRegressor(["lr"], n_clusters=2).fit(table, data.y, groups=data.groups)


def test_the_predictor_that_differs_is_found(opposed):
    found = differences_picture(as_subject(opposed))
    (pair,) = found["pairs"]
    assert pair["clusters"] == [0, 1]
    assert pair["predictors"][0]["name"] == "do se & <i>"
    assert pair["predictors"][0]["importance"] > 0.9
    values = pair["profile"]["values"]
    assert values in (sorted(values), sorted(values, reverse=True))
    assert abs(values[0] - values[-1]) > 5
    assert sum(pair["profile"]["rows"]) == 8 * 60


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_class_that_is_compared_is_named(n_classes):
    data = make_logistic_learners(8, n_truths=2, n_classes=n_classes, random_state=0)
    y = np.array(["well", "<b>sick", "dead"])[data.y]
    model = CoterieClassifier("linear", n_clusters=2, n_bootstrap=0).fit(data.X, y, groups=data.groups)
    (pair,) = differences_picture(as_subject(model))["pairs"]
    assert pair["label"] == ("well" if n_classes == 2 else compare_clusters(model, 0, 1).label)
    chosen = compare_clusters(model, 0, 1, label=pair["label"])
    assert pair["profile"]["values"] == pytest.approx(chosen.profile[chosen.importance.argmax()], abs=1e-4)
    assert compare_clusters(model, 1, 0, label="<b>sick").label == "<b>sick"
    page = Report(model).html()
    before = page[: page.index('<script type="application/json"')]
    assert "<b>sick" not in before
    assert f"whose probabilities of '{pair['label']}' differ by" in html.unescape(before)
    assert f"Probability of '{pair['label']}'." in html.unescape(page)
    figure = DifferencesDisplay.from_estimator(model).plot()
    assert pair["label"] in figure.colorbar_.ax.get_ylabel()
    plt.close("all")


def test_numbers_have_no_class(opposed):
    assert compare_clusters(opposed, 0, 1).label is None
    assert "whose predictions differ" in Report(opposed).html()


def test_names_of_predictors_are_text(opposed):
    html = Report(opposed).html()
    before = html[: html.index('<script type="application/json"')]
    assert "do se &amp; &lt;i&gt;" in before
    assert "<i>" not in before


def test_few_clusters_are_all_compared(model):
    assert chosen_pairs(model.partition_) == [(0, 1), (0, 2), (1, 2)]


def test_many_clusters_are_compared_with_their_nearest(many_learners):
    partition, _ = many_learners(60, n_clusters=9)
    pairs = chosen_pairs(partition)
    assert len(pairs) <= MOST_PAIRS
    # The clusters stand in a row: the nearest is a neighbour.
    assert all(second - first == 1 for first, second in pairs)


def test_what_cannot_be_compared_is_said(model, partition, many_learners):
    assert "matrix of losses alone" in differences_picture(as_subject(partition))
    one, _ = many_learners(5, n_clusters=1)
    assert "nothing to compare" in differences_picture(ReportSubject(one, None, model))
    without_rows = SimpleNamespace(record_=SimpleNamespace(has_rows=False))
    subject = replace(as_subject(model), model=without_rows)
    assert "save it with rows=True" in differences_picture(subject)
