import json

import numpy as np
import pytest

import coterie
from coterie import CoterieRegressor, Report
from coterie.report.subject import as_subject
from coterie.report.summarize import lead_sentence, report_summary


def sections(summary):
    return {section["id"]: section for section in summary["sections"]}


def test_a_model_is_summed_up_in_numbers_and_words(model):
    summary = report_summary(as_subject(model))
    assert summary["n_learners"] == 13
    assert summary["n_clusters"] == model.n_clusters_ == 3
    assert sum(len(coterie["learners"]) for coterie in summary["coteries"]) == 13
    assert summary["n_rows"] == 12 * 40 + 6
    assert {"losses", "map", "why", "gains", "membership", "differences"} <= set(sections(summary))
    assert all(section["words"] for section in summary["sections"])
    assert summary["gains"][0]["learner"] == "<script>alert(1)</script>"


def test_the_summary_survives_json(model, partition):
    for subject in (model, partition):
        report = Report(subject)
        assert json.loads(report.json()) == report.summary


def test_settings_versions_and_seed_are_kept(model):
    settings = report_summary(as_subject(model))["settings"]
    changed = {entry["name"] for entry in settings["parameters"] if entry["changed"]}
    assert changed == {"candidates"}
    assert settings["seed"] == "0"
    assert settings["versions"]["coterie"] == coterie.__version__


def test_without_rows_the_sections_that_need_them_say_so(partition, losses):
    summary = report_summary(as_subject(partition, losses))
    found = sections(summary)
    for name in ("gains", "membership", "differences"):
        assert found[name]["missing"]
        assert "this report was made from a matrix of losses alone" in found[name]["words"][0]
    assert summary["notes"] == list(partition.notes)
    labels = zip("abcdef", partition.labels.tolist(), strict=True)
    assert summary["gains"] == [{"learner": learner, "cluster": label} for learner, label in labels]


def test_one_learner_has_a_report():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    lonely = CoterieRegressor(candidates=["lr"]).fit(X, X[:, 0] + 0.1 * rng.normal(size=40), groups=[0] * 40)
    report = Report(lonely)
    assert report.summary["answer"][0] == "There is one learner, and nobody to learn from."
    assert "<h1>" in report.html()


@pytest.mark.parametrize("title", [None, "Hospitals & <clinics>"])
def test_the_title_is_ours_or_yours(partition, title):
    summary = report_summary(as_subject(partition), title)
    assert summary["title"] == (title or "Who learns with whom")


def test_a_conclusion_of_sites_has_a_report(model, conclusion):
    report = Report(conclusion)
    found = sections(report.summary)
    assert {name for name, section in found.items() if section["missing"]} == {
        "losses",
        "map",
        "membership",
        "differences",
        "importance",
    }
    mine = Report(model).summary
    assert found["gains"]["words"] == sections(mine)["gains"]["words"]
    # Sites mix averages of models; what they take from whom is not in a conclusion.
    assert report.summary["pays"] == mine["pays"] | {"taken": {}}
    weights = found["weights"]["data"]
    assert weights["shares"][-1] == [0.5, 0.3, 0.2]
    assert "96% its own model, 2% others in its coterie, 2% other sites" in found["weights"]["words"][0]
    settings = {entry["name"]: entry for entry in report.summary["settings"]["parameters"]}
    assert settings["seed"] == {"name": "seed", "value": "7", "changed": True}
    html = report.html()
    assert "Left out: &lt;far&gt;. It did not answer." in html
    assert "in 2 rounds of" in html
    assert "Curve of the rule held-out" in html
    with pytest.raises(ValueError, match="A conclusion has no losses"):
        Report(conclusion, losses=np.eye(13))


PAYS = {"n_compared": 20, "n_gain": 12, "n_lose": 2, "rmse_alone": 31234.4, "rmse_with": 28000.0}


def summary(**changes):
    return {"n_learners": 20, "answer": ["The coteries."], "pays": PAYS | changes}


def test_the_answer_is_one_sentence():
    assert lead_sentence(summary(), "price", "dollars") == (
        "Learning with others is expected to pay for 12 of the 20 learners, 2 should stay alone, and the "
        "typical error of price falls from 31,234 to 28,000 dollars."
    )
    assert lead_sentence(summary(n_gain=20, n_lose=0, rmse_with=31234.4)) == (
        "Learning with others is expected to pay for all 20 learners, and the typical error stays at 31,234."
    )
    assert "is not expected to pay for any" in lead_sentence(summary(n_gain=0))
    assert "makes no clear difference for any" in lead_sentence(summary(n_gain=0, n_lose=0))
    assert "of the 19 learners with enough rows" in lead_sentence(summary(n_compared=19))


def test_classes_have_an_accuracy():
    scores = {"alone": {"accuracy": 0.78}, "with": {"accuracy": 0.8149}}
    text = lead_sentence(summary() | {"scores": scores})
    assert text.endswith("accuracy rises from 78.0% to 81.5%.")
    unknown = {"accuracy": None}
    scores = {"alone": {"brier": 0.2, **unknown}, "with": {"brier": 0.1, **unknown}}
    assert lead_sentence(summary() | {"scores": scores}).endswith(
        "the Brier score falls from 0.200 to 0.100."
    )
    assert "accuracy" not in lead_sentence(summary() | {"scores": None})


def test_what_has_no_gains_says_who_is_with_whom(partition, conclusion):
    assert Report(partition).summary["lead"] == Report(partition).summary["answer"][0]
    site = Report(conclusion, site="site 00").summary
    assert site["lead"] == site["answer"][0]
    assert site["lead"].startswith("site 00: ")
