from coterie import Report
from coterie.report.lead import lead_sentence

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
