import pytest

from coterie.cli.summary import named, show_rows, show_summary

SUMMARY = {
    "n_learners": 3,
    "n_clusters": 2,
    "clear": True,
    "rule": "held-out",
    "coteries": [
        {"cluster": 0, "learners": ["a", "b"], "error_alone": 2.0, "error_with": 1.0, "mean_gain": 0.5},
        {"cluster": 1, "learners": ["c"], "error_alone": 1.0, "error_with": 1.0, "mean_gain": None},
    ],
    "rules": {
        "held-out": {"chosen": 2, "criterion": "loss", "n_clusters": [1, 2], "values": [3.0, 1.0]},
        "gap": {"chosen": 1, "criterion": "gap", "n_clusters": [1, 2], "values": [0.1, None]},
    },
    "pays": {
        "error_alone": 1.5,
        "error_with": 1.0,
        "error_all": 4.0,
        "mean_gain": 0.25,
        "verdicts": {"collaborate": 2, "stay alone": 0, "does not belong": 1},
    },
    "does_not_belong": [{"learner": "c", "reason": "no coterie predicts it"}],
    "columns": [{"name": "day", "kind": "date", "remark": "date: year"}],
    "notes": ["Take care."],
}


@pytest.fixture
def shown(capsys):
    """Print a summary, and return what was printed."""

    def show(summary):
        show_summary(summary)
        return capsys.readouterr().out

    return show


def test_every_question_has_its_line(shown):
    text = shown(SUMMARY)
    assert "3 learners, 2 coteries\n" in text
    assert "a, b" in text
    assert "+50%" in text
    assert "alone 1.5, with the coterie 1, with all 4; mean gain +25%." in text
    assert "Verdicts: collaborate 2, does not belong 1." in text
    assert "  c: no coterie predicts it" in text
    assert "Why 2? held-out, loss: 1: 3, 2: 1. Other rules: gap 1." in text
    assert "Column 'day': date: year." in text
    assert "Note: Take care." in text


def test_nobody_outside_unclear_and_given_are_said(shown):
    text = shown(SUMMARY | {"does_not_belong": [], "clear": False, "rule": "given"})
    assert "Who does not belong? Nobody." in text
    assert "2 coteries, but no clear ones" in text
    assert "Why 2? 2 were requested. By rule: held-out 2, gap 1." in text


def test_long_lists_end_in_a_count():
    assert named(list("abcd"), most=2) == "a, b and 2 more"


def test_a_grid_shows_text_and_numbers(capsys):
    show_rows(["who", "gain"], [{"who": "a", "gain": 0.123456}])
    assert "0.1235" in capsys.readouterr().out
