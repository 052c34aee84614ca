import pytest

from coterie.cli.summary import named, show_rows, show_summary

GROUP = {"n_learners": 2, "learners": ["a", "b"], "rmse_alone": 2.0, "rmse_with": 1.0, "median_gain": 0.5}
SINGLE = {"n_learners": 1, "learners": ["c"], "rmse_alone": 1.0, "rmse_with": 1.0, "median_gain": None}
SUMMARY = {
    "source": "model",
    "n_learners": 3,
    "n_clusters": 2,
    "clear": True,
    "rule": "held-out",
    "coteries": [{"cluster": 0, **GROUP}, {"cluster": 1, **SINGLE}],
    "by_verdict": [{"verdict": "collaborate", **GROUP}, {"verdict": "stay alone", **SINGLE}],
    "rules": {
        "held-out": {
            "chosen": 2,
            "criterion": "loss (lower is better)",
            "n_clusters": [1, 2],
            "values": [3.0, 1.0],
        },
        "gap": {"chosen": 1, "criterion": "gap", "n_clusters": [1, 2], "values": [0.1, None]},
    },
    "answer": ["The 3 learners fall into 2 coteries.", "It pays."],
    "pays": {"verdicts": {"collaborate": 2, "stay alone": 1}},
    "does_not_belong": [{"learner": "c", "reason": "no coterie predicts it"}],
    "columns": [
        {"name": "day", "kind": "date", "remark": "date: year", "features": ["day.year", "day.month"]},
        {"name": "x", "kind": "number", "remark": "number, 1 of 9 missing", "features": ["x", "x.missing"]},
        {"name": "id", "kind": "left out", "remark": "left out: names rows", "features": []},
    ],
    "notes": ["Take care."],
}


@pytest.fixture
def output(capsys):
    """Print a summary, and return what was printed."""

    def show(summary, **options):
        show_summary(summary, **options)
        return capsys.readouterr().out

    return show


def row_of(text, first):
    return next(line.split() for line in text.splitlines() if line.split()[:1] == [first])


def test_the_answer_comes_first_and_learners_of_a_verdict_stand_together(output):
    text = output(SUMMARY)
    assert text.startswith("The 3 learners fall into 2 coteries.\nIt pays.\n")
    assert row_of(text, "collaborate") == ["collaborate", "2", "+50%", "2.000", "1.000", "a,", "b"]
    assert row_of(text, "0") == ["0", "2", "+50%", "2.000", "1.000", "a,", "b"]
    assert "In a coterie of its own: c.\n" in text
    assert "Why 2 coteries? It is the smallest number whose coteries predict" in text
    assert "within two standard errors (rule held-out). Other rules: gap 1." in text
    assert "2 columns became 4 predictors, 1 with gaps that were filled; left out: id. --verbose" in text
    assert text.endswith("Note: Take care.\n")
    used = "`predict` uses others, except for learners told to stay alone.\n"
    assert used in text
    assert used not in output(SUMMARY | {"source": "sites"})
    assert len(text.splitlines()) < 24


def test_details_are_said_to_whoever_asks(output):
    text = output(SUMMARY, verbose=True)
    assert "  c: no coterie predicts it" in text
    assert "Why 2 coteries? held-out, loss (lower is better): 1: 3.000, 2: 1.000. Other rules: gap 1." in text
    assert "Column 'day': date: year." in text
    assert "--verbose" not in text
    assert "no coterie predicts it" not in output(SUMMARY)


def test_without_clear_coteries_no_groups_are_shown(output):
    text = output(SUMMARY | {"clear": False})
    assert "cluster" not in text
    assert "Why" not in text
    given = output(SUMMARY | {"rule": "given"})
    assert "Why 2 coteries? It was requested. By rule: held-out 2, gap 1." in given
    # One coterie of all needs no table either.
    assert "cluster" not in output(SUMMARY | {"n_clusters": 1})


def test_a_partition_has_no_gains_to_show(output):
    bare = [{"cluster": 0, "learners": ["a", "b"]}, {"cluster": 1, "learners": ["c"]}]
    text = output(SUMMARY | {"pays": None, "by_verdict": [], "coteries": bare})
    assert row_of(text, "0") == ["0", "2", "a,", "b"]
    assert "alone" not in text


def test_long_lists_end_in_a_count():
    assert named(list("abcd"), most=2) == "a, b and 2 more"


def test_a_grid_shows_text_and_numbers(capsys):
    show_rows(["who", "gain"], [{"who": "a", "gain": 0.123456}])
    assert "0.1235" in capsys.readouterr().out
