from types import SimpleNamespace

import pytest

from coterie import Report
from coterie.report.importance import importance_picture, importance_words
from coterie.report.subject import ReportSubject, as_subject


def line(predictor, *predictions):
    return {
        "predictor": predictor,
        "numeric": True,
        "values": [0.0, 1.0, 2.0],
        "predictions": [list(p) for p in predictions],
    }


DATA = {
    "label": None,
    "clusters": [0, 1],
    "predictors": ["area", "age", "noise"],
    "shares": [[0.7, 0.3, 0.0], [0.2, 0.8, 0.0]],
    "shapes": [
        line("area", (1, 2, 3), (1, 2, 3)),
        line("age", (1, 2, 3), (3, 2, 1)),
        line("noise", (0, 1, 0), (0, -1, 0)),
    ],
    "left_out": 0,
}


def test_what_matters_is_said():
    first, second = importance_words(DATA)
    assert "In coterie 0 the most important are area and age." in first
    assert "In coterie 1 the most important are age and area." in first
    assert "With higher area predictions rise in all coteries." in second
    assert "With higher age predictions rise in coterie 0 and fall in coterie 1." in second
    assert "noise predictions" not in second
    assert "The 2 largest coteries are shown." in importance_words(DATA | {"left_out": 3})[1]
    assert "mean probabilities of 'sick'" in importance_words(DATA | {"label": "sick"})[1]


def test_a_model_has_a_picture_of_what_matters(model):
    picture = importance_picture(as_subject(model))
    assert picture["clusters"] == [0, 1, 2]
    assert [sum(row) for row in picture["shares"]] == pytest.approx([1.0] * 3, abs=0.01)
    page = Report(model).html()
    assert "What matters in each coterie" in page
    assert "Mean prediction along" in page


def test_without_rows_the_reason_is_said(partition):
    assert "matrix of losses alone" in importance_picture(as_subject(partition))
    without = SimpleNamespace(record_=SimpleNamespace(has_rows=False))
    assert "save it with rows=True" in importance_picture(ReportSubject(model=without))
