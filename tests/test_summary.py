"""One answer: the same keys and columns for a fit, a partition and a federated conclusion."""

import json

import numpy as np
import pytest

from coterie import CoterieRegressor, cluster_learners
from coterie.datasets import make_linear_learners
from coterie.federated import Conclusion
from coterie.federated.conclusions import Gain, Mixture, SentCurve
from coterie.summary import plain, summarize, table_rows
from coterie.verdicts.gains import ERRORS


@pytest.fixture(scope="module")
def model() -> CoterieRegressor:
    data = make_linear_learners(7, n_truths=2, n_rows=[40] * 6 + [5], n_features=2, random_state=0)
    return CoterieRegressor(candidates=["lr"], n_clusters=2).fit(data.X, data.y, groups=data.groups)


@pytest.fixture(scope="module")
def conclusion(model) -> Conclusion:
    """What sites with the rows of the model's learners would conclude: the same rows of the same table."""
    names = list(Gain.__dataclass_fields__)
    rows = sorted(
        table_rows({name: model.gains_[name] for name in names}), key=lambda row: str(row["learner"])
    )
    gains = tuple(Gain(**row | {"learner": str(row["learner"])}) for row in rows)
    curves = {
        name: SentCurve(
            curve.criterion, tuple(curve.n_clusters.tolist()), tuple(curve.values.tolist()), curve.chosen
        )
        for name, curve in model.partition_.curves.items()
    }
    return Conclusion(
        gains=gains,
        mixtures={row.learner: Mixture({row.learner: 1.0}, (0.0,), (0.0, 0.0)) for row in gains},
        models={row.learner: "0" * 64 for row in gains},
        rule=model.partition_.rule,
        clear=True,
        curves=curves,
        left_out={"far": "it did not answer."},
        notes=("Take care.",),
        rounds=3,
        settings={},
    )


def test_a_fit_a_partition_and_a_conclusion_have_the_same_keys(model, conclusion):
    summaries = [summarize(found) for found in (model.record_, model.partition_, conclusion)]
    assert len({tuple(summary) for summary in summaries}) == 1
    assert [summary["source"] for summary in summaries] == ["model", "losses", "sites"]
    assert [summary["rounds"] for summary in summaries] == [None, None, 3]
    for summary in summaries:
        assert json.loads(json.dumps(summary, allow_nan=False)) == summary


def test_the_rows_have_the_columns_of_the_table_of_gains(model, conclusion):
    assert list(summarize(model.record_)["gains"][0]) == list(model.gains_)
    assert set(summarize(conclusion)["gains"][0]) <= set(model.gains_)
    assert list(summarize(model.partition_)["gains"][0]) == ["learner", "cluster"]


def test_the_same_table_has_the_same_averages(model, conclusion):
    mine, theirs = summarize(model.record_), summarize(conclusion)
    pairs = [(mine["pays"], theirs["pays"]), *zip(mine["coteries"], theirs["coteries"], strict=True)]
    for one, other in pairs:
        numbers = [name for name, value in one.items() if isinstance(value, (int, float))]
        assert len(numbers) > 5
        assert {name: other[name] for name in numbers} == pytest.approx({name: one[name] for name in numbers})
    assert theirs["pays"]["verdicts"] == mine["pays"]["verdicts"]
    assert theirs["answer"] == mine["answer"]


def test_the_shares_that_learners_take_are_averaged(model, conclusion):
    taken = summarize(model.record_)["pays"]["taken"]
    assert list(taken) == ["alone", "coterie", "all adapted"]
    assert taken["alone"] == pytest.approx(np.nanmean(model.gains_["from_alone"]))
    assert sum(taken.values()) == pytest.approx(1)
    assert summarize(conclusion)["pays"]["taken"] == {}


def test_mean_and_typical_gains_are_those_of_the_table(model):
    pays, gains = summarize(model.record_)["pays"], model.gains_
    assert pays["mean_gain"] == pytest.approx(np.nanmean(gains["gain"]))
    assert pays["median_gain"] == pytest.approx(np.nanmedian(gains["gain"]))
    assert (pays["least_gain"], pays["most_gain"]) == (np.nanmin(gains["gain"]), np.nanmax(gains["gain"]))
    assert pays["typical_gain"] == pays["median_gain"]
    verdicts = gains["verdict"]
    assert (pays["n_compared"], pays["n_too_few_rows"]) == (6, 1)
    assert pays["n_gain"] == (verdicts == "collaborate").sum()
    assert pays["n_no_difference"] == (verdicts == "no clear difference").sum()
    assert pays["n_lose"] == (verdicts == "stay alone").sum()
    assert pays["n_gain"] + pays["n_no_difference"] + pays["n_lose"] == 6
    # The learner that is too small to be compared is in none of the errors.
    compared = np.isfinite(gains["gain"])
    for name in ERRORS:
        assert pays[name] == pytest.approx(gains[name][compared].mean())
        assert pays[name.replace("error", "rmse")] == pytest.approx(np.sqrt(pays[name]))
    assert pays["rmse_with_too_few_rows"] == pytest.approx(np.sqrt(gains["error_with"][~compared][0]))
    assert pays["target"] is None
    assert summarize(model.record_, target="price")["pays"]["target"] == "price"
    assert sum(pays["verdicts"].values()) == summarize(model.record_)["n_learners"] == 7


def test_learners_who_were_admitted_count_but_did_not_shape_the_clusters(model):
    summary = summarize(model.record_)
    assert (summary["n_learners"], summary["n_admitted"]) == (7, 1)
    assert sum(coterie["n_learners"] for coterie in summary["coteries"]) == 7


def test_who_does_not_belong_is_named_with_the_reason(conclusion):
    assert summarize(conclusion)["does_not_belong"] == []
    stranger = Gain(**vars(conclusion.gains[0]) | {"fits": False, "reason": "its data disagree"})
    changed = Conclusion(**vars(conclusion) | {"gains": (stranger, *conclusion.gains[1:])})
    expected = [{"learner": stranger.learner, "reason": "its data disagree"}]
    assert summarize(changed)["does_not_belong"] == expected
    assert summarize(changed)["left_out"] == {"far": "it did not answer."}


def test_the_rule_that_decided_comes_first():
    losses = [[1, 1.1, 9], [1.1, 1, 9], [9, 9, 1]]
    rules = summarize(cluster_learners(losses, n_clusters="gap"))["rules"]
    assert next(iter(rules)) == "gap"
    assert set(rules["gap"]) == {"chosen", "criterion", "n_clusters", "values", "spread", "one_truth_z"}


def test_without_names_nothing_grows_with_the_learners(model):
    brief = summarize(model.record_, named=False)
    assert "gains" not in brief
    assert all("learners" not in coterie for coterie in brief["coteries"])


def test_json_has_no_numbers_that_do_not_exist():
    rows = table_rows({"a": np.array([1.0, np.nan]), "b": np.array(["u", "v"])})
    assert json.dumps(rows, allow_nan=False) == '[{"a": 1.0, "b": "u"}, {"a": null, "b": "v"}]'
    assert plain(np.int64(3)) == 3
