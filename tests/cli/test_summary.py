import pytest

from coterie.cli.summary import named, show_rows, show_summary

SUMMARY = {
    "n_learners": 3,
    "n_clusters": 2,
    "clear": True,
    "rule": "held-out",
    "coteries": [
        {"cluster": 0, "learners": ["a", "b"], "rmse_alone": 2.0, "rmse_with": 1.0, "median_gain": 0.5},
        {"cluster": 1, "learners": ["c"], "rmse_alone": 1.0, "rmse_with": 1.0, "median_gain": None},
    ],
    "rules": {
        "held-out": {"chosen": 2, "criterion": "loss", "n_clusters": [1, 2], "values": [3.0, 1.0]},
        "gap": {"chosen": 1, "criterion": "gap", "n_clusters": [1, 2], "values": [0.1, None]},
    },
    "answer": ["The 3 learners fall into 2 coteries.", "It pays."],
    "pays": {"verdicts": {"collaborate": 2, "stay alone": 1}},
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
    assert text.startswith("The 3 learners fall into 2 coteries.\nIt pays.\n")
    assert "a, b" in text
    assert "+50%" in text
    assert "  c: no coterie predicts it" in text
    assert "Why 2? held-out, loss: 1: 3, 2: 1. Other rules: gap 1." in text
    assert "Column 'day': date: year." in text
    assert "Note: Take care." in text


def test_without_clear_coteries_no_groups_are_shown(shown):
    text = shown(SUMMARY | {"does_not_belong": [], "clear": False, "rule": "given"})
    assert "a, b" not in text
    assert "no coterie predicts it" not in text
    assert "Why 2? 2 were requested. By rule: held-out 2, gap 1." in text
    # All learners in one coterie are shown, clear or not.
    one = {"n_clusters": 1, "coteries": SUMMARY["coteries"][:1], "clear": False, "rule": "given"}
    assert "a, b" in shown(SUMMARY | one)


def test_a_partition_has_no_gains_to_show(shown):
    bare = [{"cluster": 0, "learners": ["a", "b"]}, {"cluster": 1, "learners": ["c"]}]
    text = shown(SUMMARY | {"pays": None, "coteries": bare})
    assert "a, b" in text
    assert "alone" not in text
    assert "no coterie predicts it" not in text


def test_long_lists_end_in_a_count():
    assert named(list("abcd"), most=2) == "a, b and 2 more"


def test_a_grid_shows_text_and_numbers(capsys):
    show_rows(["who", "gain"], [{"who": "a", "gain": 0.123456}])
    assert "0.1235" in capsys.readouterr().out
