import pytest
from sklearn.linear_model import Ridge

from coterie.encoding import ColumnPlan, TableRecipe
from coterie.engines import ThreadEngine
from coterie.report.identity import columns_overview, columns_words, run_identity, setting_text
from coterie.report.subject import as_subject

COLUMNS = (ColumnPlan("size", "number", "number"), ColumnPlan("id", "left out", "left out: it names rows"))


@pytest.fixture
def fitted(model):
    """The model as the command line leaves it."""
    model.table_ = TableRecipe(
        "price", "town", COLUMNS, source="houses.csv", unit="dollars", day="2026-03-01"
    )
    yield as_subject(model)
    del model.table_


def test_a_run_is_told_from_another(fitted):
    known = {each["name"]: each["text"] for each in run_identity(fitted)}
    assert known["table"] == "houses.csv"
    assert known["target"] == "price (dollars)"
    assert known["learners"] == "13 (town)"
    assert known["rows"] == "486"
    assert known["fitted on"] == "1 March 2026"
    assert known["seed"] == "0"


def test_what_is_not_known_is_left_out(partition):
    assert [each["name"] for each in run_identity(as_subject(partition))] == ["learners", "coterie"]
    assert columns_overview(as_subject(partition)) is None


def test_columns_are_summed_up(fitted):
    found = columns_overview(fitted)
    assert found["columns"][1] == {"name": "id", "kind": "left out", "remark": "left out: it names rows"}
    assert columns_words(found) == ["The table has 2 predictor columns: 1 of numbers, 1 left out."]


@pytest.mark.parametrize(
    ("value", "output"),
    [
        (["default"], "default"),
        (["lr", "rf"], "lr, rf"),
        (None, "not set"),
        (True, "yes"),
        (0, "0"),
        (ThreadEngine(1), "ThreadEngine"),
        ({"a": Ridge()}, "a: Ridge()"),
    ],
)
def test_settings_are_written_as_a_reader_would(value, output):
    assert setting_text(value) == output


def test_an_endless_setting_is_cut():
    assert len(setting_text("x" * 5000)) == 301
