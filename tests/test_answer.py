"""The answer in a few sentences: every branch, and the headline computed again from the table of gains."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coterie._answer import answer_sentences
from coterie._text import counted, number, percent, whole_percents

PAYS = {
    "target": None,
    "n_compared": 4,
    "n_gain": 3,
    "n_lose": 0,
    "n_no_difference": 1,
    "n_too_few_rows": 0,
    "typical_gain": 0.25,
    "rmse_alone": 2.0,
    "rmse_with": 1.0,
    "rmse_all": 4.0,
    "rmse_with_too_few_rows": None,
    "taken": {},
    "unit": "",
    "verdicts": {"collaborate": 3, "no clear difference": 1},
}


def summary(sizes: tuple[int, ...] = (3, 1), pays: Any = PAYS, **other: Any) -> dict[str, Any]:
    coteries = [{"cluster": label, "n_learners": size} for label, size in enumerate(sizes)]
    found = {"n_learners": sum(sizes), "n_clusters": len(sizes), "clear": True, "rule": "held-out"}
    return {**found, "coteries": coteries, "pays": pays, "does_not_belong": [], **other}


def said(**changes: Any) -> list[str]:
    return answer_sentences(summary(pays=PAYS | changes))


@pytest.mark.parametrize(
    ("sizes", "other", "sentence"),
    [
        ((4, 1, 1), {}, "The 6 learners fall into 3 coteries, of 4 members and 2 learners by themselves."),
        ((3, 1), {}, "The 4 learners fall into 2 coteries, of 3 members and 1 learner by itself."),
        ((3, 2), {}, "The 5 learners fall into 2 coteries, of 3 and 2 members."),
        ((6,), {}, "The 6 learners are one coterie: no split of them predicts better."),
        ((6,), {"rule": "given"}, "The 6 learners are one coterie, as requested."),
        ((3, 2), {"clear": False}, "There are no clear coteries among the 5 learners."),
        ((1,), {}, "There is one learner, and nobody to learn from."),
    ],
)
def test_the_first_sentence_says_who_learns_with_whom(
    sizes: tuple[int, ...], other: dict[str, Any], sentence: str
) -> None:
    assert answer_sentences(summary(sizes, None, **other)) == [sentence]


def test_percentages_of_a_whole_sum_to_a_hundred() -> None:
    assert whole_percents([0.375, 0.375, 0.25]) == [38, 37, 25]
    assert whole_percents([0.335, 0.335, 0.33, None]) == [34, 33, 33, 0]
    taken = {"alone": 0.375, "coterie": 0.375, "all adapted": 0.25}
    words = answer_sentences(summary((2, 2), PAYS | {"taken": taken}, clear=False))[1]
    assert words == "On average a learner takes 38% from itself, 37% from coterie and 25% from all adapted."


def test_without_clear_coteries_it_goes_on_with_what_learners_take() -> None:
    taken = {"alone": 0.2, "coterie": 0.0, "all adapted": 0.8, "all": None}
    words = answer_sentences(summary((2, 2), PAYS | {"taken": taken}, clear=False))
    assert words[:2] == [
        "There are no clear coteries among the 4 learners.",
        "On average a learner takes 20% from itself and 80% from all adapted.",
    ]
    # Of coteries that are clear it speaks itself, and forms without shares have nothing to say.
    assert not any(
        "On average" in word for word in answer_sentences(summary((2, 2), PAYS | {"taken": taken}))
    )
    assert not any("On average" in word for word in answer_sentences(summary((2, 2), clear=False)))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, "for 3 of 4 learners, to make no clear difference for 1."),
        ({"n_no_difference": 0, "n_lose": 1}, "for 3 of 4 learners, to cost 1."),
        ({"n_gain": 2, "n_lose": 1}, "for 2 of 4 learners, to cost 1, to make no clear difference for 1."),
        ({"n_gain": 0, "n_no_difference": 4}, "for none of 4 learners, to make no clear difference for 4."),
        ({"n_gain": 4, "n_no_difference": 0}, "for all 4 learners."),
    ],
)
def test_who_gains_and_who_loses_is_counted(changes: dict[str, Any], sentence: str) -> None:
    assert f"Learning with others is expected to pay {sentence}" in said(**changes)


def test_errors_are_in_the_unit_of_the_response_and_named_after_it() -> None:
    assert said(target="price")[2] == (
        "The typical learner saves 25% of its squared error. "
        "Root mean squared error of price on rows not seen: alone 2.00, with others 1.00, with all 4.00."
    )
    assert said(typical_gain=-0.1)[2].startswith(
        "The squared error of the typical learner rises by 10%. Root"
    )
    assert said(typical_gain=0.001)[2].startswith("The squared error of the typical learner stays as it is.")
    assert said(typical_gain=None, rmse_all=None)[2] == (
        "Root mean squared error on rows not seen: alone 2.00, with others 1.00."
    )


def test_learners_too_small_to_be_compared_are_told_what_they_get() -> None:
    assert said(n_too_few_rows=2, rmse_with_too_few_rows=1.5)[-1] == (
        "2 learners have too few rows to be compared; with others the root mean squared error is 1.50."
    )
    assert said(n_too_few_rows=1)[-1] == "1 learner has too few rows to be compared."


def test_where_nobody_could_be_compared_nothing_is_said_of_gains() -> None:
    words = said(n_compared=0, n_gain=0, n_too_few_rows=4, rmse_alone=None)
    assert len(words) == 2
    assert not any("saves" in word or "pay" in word for word in words)


def test_who_fits_nowhere_is_named_where_there_are_coteries_to_fit() -> None:
    outside = [{"learner": "a", "reason": ""}, {"learner": "b" * 60, "reason": ""}]
    last = "The data of learner a fit no coterie of others."
    assert answer_sentences(summary(does_not_belong=outside[:1]))[-1] == last
    assert answer_sentences(summary((4,), does_not_belong=outside[:1]))[-1] == last
    both = answer_sentences(summary(does_not_belong=outside))[-1]
    assert both.startswith("The data of learners a and bbbb")
    assert len(both) < 80
    unclear = answer_sentences(summary(does_not_belong=outside, clear=False))
    assert not any("fit no coterie" in word for word in unclear)


# The tables of a person who brings one, fitted by the command line as that person would.
TABLES = {
    "flights": ("arr_delay", "carrier", ["dep_delay", "distance", "month", "hour"]),
    "ames": ("Sale_Price", "Neighborhood", ["Gr_Liv_Area", "Lot_Area", "Year_Built", "Garage_Area"]),
    "produc": ("unemp", "state", ["year", "pcap", "pc", "gsp", "emp"]),
}
MOST_ROWS = 3000


def row_mean(table: Any, name: str, chosen: Any) -> float:
    return float(np.mean(table[name].to_numpy()[chosen]))


@pytest.mark.parametrize("name", list(TABLES))
def test_the_headline_agrees_with_the_table_of_gains(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pd, source = pytest.importorskip("pandas"), data_file(f"{name}.parquet")
    pytest.importorskip("pyarrow")
    target, group, predictors = TABLES[name]
    table = pd.read_parquet(source)[[*predictors, group, target]].dropna()
    table = table.sample(min(len(table), MOST_ROWS), random_state=0)
    monkeypatch.chdir(tmp_path)
    table.to_parquet("table.parquet")
    summary = fit_by_command(target, group, capsys)
    gains = pd.read_csv("out/gains.csv", keep_default_na=False, na_values=["", "NaN"])
    agrees_with_the_table(summary, gains, target)
    assert json.loads(Path("out/summary.json").read_text())["answer"] == summary["answer"]


def data_file(name: str) -> Path:
    from coterie.datasets import local_copy

    path = local_copy("", name)
    if path is None:
        pytest.skip(f"COTERIE_DATA names no folder with {name}")
    return path


def fit_by_command(target: str, group: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Run the command, and return what it says as JSON."""
    import sys

    from coterie.cli.app import main

    words = ["fit", "table.parquet", "--target", target, "--group", group, "--out", "out", "--json"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["coterie", *words, "--candidates", "linear", "--no-report"])
        with pytest.raises(SystemExit) as end:
            main()
    assert end.value.code in (0, None)
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def agrees_with_the_table(summary: dict[str, Any], gains: Any, target: str) -> None:
    """Compute the headline again from the table, in words and in numbers."""
    pays, text = summary["pays"], " ".join(summary["answer"])
    compared = gains["gain"].notna().to_numpy()
    verdicts = gains["verdict"].to_numpy()
    assert pays["n_compared"] == compared.sum()
    # The same learners in every number.
    for key in ("alone", "with", "all"):
        root = np.sqrt(row_mean(gains, f"error_{key}", compared))
        assert pays[f"rmse_{key}"] == pytest.approx(root)
        words = {"alone": "alone", "with": "with others", "all": "with all"}[key]
        assert f"{words} {number(root)}" in text
    typical = float(np.median(gains["gain"].to_numpy()[compared]))
    said = f"saves {percent(typical)} of its" if typical > 0 else f"rises by {percent(-typical)}"
    assert said in text or not round(100 * typical)
    gain = int((verdicts == "collaborate").sum())
    learners = counted(int(compared.sum()), "learner")
    some = f"all {learners}" if 1 < gain == compared.sum() else f"{gain or 'none'} of {learners}"
    assert f"is expected to pay for {some}" in text
    assert f"Root mean squared error of {target}" in text
    assert gain + (verdicts[compared] == "stay alone").sum() + pays["n_no_difference"] == compared.sum()
    # The sentence on a learner says the number that stands beside it.
    for row in gains[compared].to_dict("records"):
        if found := re.match(r"Others are expected to (save|add) ([\d]+) %", str(row["reason"])):
            sign = 1 if found[1] == "save" else -1
            assert sign * int(found[2]) / 100 == pytest.approx(row["gain"], abs=0.0051)
        assert (row["verdict"] == "collaborate") <= (row["gain"] > 0)
        assert (row["verdict"] == "stay alone") <= (row["gain"] <= 0)
        assert row["gain_low"] <= row["gain"] <= row["gain_high"]
    small = verdicts == "too few rows"
    assert pays["n_too_few_rows"] == small.sum()
    if small.any():
        root = np.sqrt(row_mean(gains, "error_with", small))
        assert f"root mean squared error is {number(root)}" in text


def test_errors_are_in_a_unit_where_it_is_known() -> None:
    assert "of price on rows not seen in dollars: alone 2.00" in said(target="price", unit="dollars")[2]


def test_gains_that_were_not_measured_are_said_so() -> None:
    nothing = PAYS | {"n_compared": 0, "n_gain": 0, "n_no_difference": 0, "verdicts": {"not measured": 4}}
    assert answer_sentences(summary(pays=nothing))[1] == "What learning with others brings was not measured."
