import json

import pytest

from coterie import Report
from coterie.estimator import IN_TIME_ORDER
from coterie.report.against import against_words, changes_since, read_run


def run(*rows, **more):
    names = ("learner", "cluster", "verdict", "error_with")
    return {"gains": [dict(zip(names, row, strict=True)) for row in rows], "pays": {"target": "y"}, **more}


OLD = run(
    *(("a", 0, "collaborate", 4.0), ("b", 0, "collaborate", 4.0), ("c", 1, "stay alone", 4.0)),
    ("d", 1, "collaborate", 4.0),
)
# Coteries have other numbers; c has moved, and a has another verdict.
NEW = run(
    *(("a", 1, "stay alone", 1.0), ("b", 1, "collaborate", 1.0), ("c", 1, "stay alone", 1.0)),
    *(("d", 0, "collaborate", 1.0), ("e", 0, "collaborate", 1.0)),
)


def test_who_moved_is_told_whatever_the_numbers():
    found = changes_since(OLD, NEW)
    assert found["moved"] == ["c"]
    assert found["verdicts"] == ["a"]
    assert [row["learner"] for row in found["rows"]] == ["a", "c"]
    assert (found["arrived"], found["left"]) == (["e"], [])
    assert found["errors"] == ["2.00", "1.00"]


def test_changes_are_said():
    assert against_words(changes_since(OLD, NEW)) == [
        "The two runs have 4 learners in common.",
        "1 learner moved to another coterie: c.",
        "1 learner has another verdict: a.",
        "With others, the typical error of these learners falls from 2.00 to 1.00.",
        "1 learner is new: e.",
    ]
    assert against_words(changes_since(NEW, OLD))[-1] == "1 learner is gone: e."
    same = against_words(changes_since(OLD, OLD))
    assert same[1:] == [
        "Nobody changed coteries.",
        "No verdict changed.",
        "With others, the typical error of these learners stays at 2.00.",
    ]


def test_brier_scores_have_no_root():
    scored = {"scores": None}
    assert changes_since(OLD | scored, NEW | scored)["errors"] == ["4.00", "1.00"]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"notes": [IN_TIME_ORDER]}, "one run predicts later rows from earlier ones, and the other does not"),
        ({"effort": "fast"}, "the runs have different efforts"),
    ],
)
def test_errors_that_mean_something_else_are_not_compared(options, why):
    found = changes_since(OLD | options, NEW | {"effort": "full"})
    assert found["errors"] is None
    assert [row["error"] for row in found["rows"]] == [["\N{EN DASH}"], ["\N{EN DASH}"]]
    said = against_words(found)
    assert f"Errors are not comparable: {why}." in said
    assert not any("With others" in sentence for sentence in said)
    assert changes_since(OLD | options, NEW | options)["errors"] == ["2.00", "1.00"]


def test_runs_that_cannot_be_compared_are_refused():
    with pytest.raises(ValueError, match="predicts 'z', this one 'y'"):
        changes_since(OLD | {"pays": {"target": "z"}}, NEW)
    with pytest.raises(ValueError, match="no learner of this one"):
        changes_since(run(("z", 0, "", 1.0)), NEW)


def test_an_earlier_run_is_read_from_its_folder(tmp_path):
    (tmp_path / "summary.json").write_text(json.dumps(OLD))
    assert read_run(tmp_path) == read_run(tmp_path / "summary.json") == OLD
    with pytest.raises(FileNotFoundError, match="name a folder of `coterie fit`"):
        read_run(tmp_path / "none")
    for content, sentence in (
        ("{", "is no summary"),
        ("[]", "no table"),
        ('{"gains": [{"a": 1}]}', "no table"),
    ):
        (tmp_path / "summary.json").write_text(content)
        with pytest.raises(ValueError, match=sentence):
            read_run(tmp_path)


def test_the_page_has_the_comparison(model, partition, conclusion):
    page = Report(model, against=Report(model).summary).html()
    assert "Against the earlier run" in page
    assert "Nobody changed coteries." in page
    assert "Against the earlier run" not in Report(model).html()
    assert "typical error" not in Report(partition, against=Report(partition).summary).html()
    with pytest.raises(ValueError, match="page for all"):
        Report(conclusion, site="site 00", against={})
