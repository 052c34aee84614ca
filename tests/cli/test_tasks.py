"""A target that is a class is seen to be one, and the commands take it from there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import coterie
from coterie.cli.errors import CommandError
from coterie.cli.tasks import class_values, said_of, task_of

from .conftest import make_table

FIT = ("--target", "y", "--group", "site", "--candidates", "logistic", "--out", "out")


@pytest.mark.parametrize(
    ("values", "task"),
    [
        (["yes", "no", None] * 4, "classification"),
        ([True, False] * 4, "classification"),
        ([0, 1, 1, 0], "classification"),
        ([0.0, 1.0, None, 1.0], "classification"),
        ([-1, 1, float("nan")], "classification"),
        ([1, 2, 3, 1, 2, 3], "regression"),
        ([0.5, 1.5, 2.5], "regression"),
        (["1.5", "2.5", "unknown"] * 4, "regression"),
        ([f"name {k}" for k in range(200)], "regression"),
        (["only"] * 9, "regression"),
    ],
)
def test_what_a_column_holds_says_what_it_is(values: list[Any], task: str) -> None:
    series = pl.Series("y", values, strict=False)
    assert task_of(series, "auto") == task
    for asked in ("classification", "regression"):
        assert task_of(series, asked) == asked


def test_labels_that_are_missing_are_null() -> None:
    frame = pl.DataFrame({"y": ["a ", "", " b", None]})
    assert class_values(frame, "y").to_list() == ["a", None, "b", None]
    assert class_values(pl.DataFrame({"y": [1.0, float("nan"), 2.0]}), "y").to_list() == [1, None, 2]
    with pytest.raises(CommandError, match="has the one class 'a': there is nothing to tell apart"):
        said_of(np.array(["a", "a"]), "y", "classification")


@pytest.fixture
def classes(here) -> pl.DataFrame:
    """The table with a class in place of the response: a, c, e and b, d, f have one truth each."""
    table = make_table(n_rows=60)
    above = table["y"] > table["y"].median()
    labelled = table.with_columns(y=pl.when(above).then(pl.lit("high")).otherwise(pl.lit("low")))
    labelled.write_csv("classes.csv")
    return labelled


def test_a_table_of_classes_is_fitted_and_predicted(run, classes) -> None:
    outcome = run("fit", "classes.csv", *FIT)
    assert outcome.code == 0, outcome.err
    assert "Note: The target 'y' holds 2 classes: 'high', 'low'." in outcome.out
    assert "--task" not in outcome.out
    assert re.search(r"On rows not seen, for y: log loss alone [\d.]+, with others", outcome.out)
    model = coterie.load("out/model.coterie")
    assert isinstance(model, coterie.CoterieClassifier)
    answer = pl.read_csv(run("predict", "out/model.coterie", "classes.csv").out.encode())
    assert answer.columns == ["site", "prediction", "prediction_high", "prediction_low"]
    expected = model.predict_proba(classes.select("x0", "x1"), classes["site"])
    np.testing.assert_allclose(answer.select("prediction_high", "prediction_low").to_numpy(), expected)
    assert (
        answer["prediction"].to_list() == model.predict(classes.select("x0", "x1"), classes["site"]).tolist()
    )
    assert (answer["prediction"] == classes["y"]).mean() > 0.7
    page = Path("out/report.html").read_text()
    assert "Brier score" in page
    assert "log loss" in page


def test_sets_of_labels_are_a_column(run, classes) -> None:
    named = classes.with_columns(y=classes["y"].replace({"high": "set"}))
    named.write_csv("named.csv")
    run("fit", "named.csv", *FIT, "--no-report")
    named[:3].with_columns(site=pl.Series([None, "b", "zoe"])).write_csv("some.csv")
    outcome = run("predict", "out/model.coterie", "some.csv", "--interval", ".99")
    answer = pl.read_csv(outcome.out.encode())
    assert answer.columns == ["site", "prediction", "prediction_low", "prediction_set", "prediction_set_"]
    assert answer["prediction_set_"].is_null().to_list() == [True, False, False]
    assert answer["prediction_set_"][2] == "low | set"
    assert outcome.err.count("zoe") == 1
    narrow = run("predict", "out/model.coterie", "named.csv", "--interval", ".5").out.encode()
    model = coterie.load("out/model.coterie")
    inside = model.predict_set(classes.select("x0", "x1"), classes["site"], coverage=0.5)
    texts = [" | ".join(model.classes_[row]) for row in inside]
    assert pl.read_csv(narrow)["prediction_set_"].to_list() == texts


def test_json_has_the_scores(run, classes) -> None:
    summary = json.loads(run("fit", "classes.csv", *FIT, "--no-report", "--json").out)
    assert set(summary["scores"]["with"]) == {"log_loss", "brier", "accuracy"}
    assert json.loads(Path("out/summary.json").read_text())["scores"] == summary["scores"]


def test_numbers_of_two_values_are_classes_unless_the_user_says_otherwise(run, here, table) -> None:
    table.with_columns(y=(table["y"] > 0).cast(pl.Int64)).write_csv("binary.csv")
    options = (*FIT, "--no-report")
    said = run("fit", "binary.csv", *options)
    assert "holds 2 classes: 0, 1. To fit it as numbers, pass --task regression." in said.out
    assert coterie.load("out/model.coterie").classes_.tolist() == [0, 1]
    numbers = ("--candidates", "lr", "--task", "regression", "--force", "--no-report")
    assert run("fit", "binary.csv", *FIT[:4], "--out", "out", *numbers).code == 0
    assert isinstance(coterie.load("out/model.coterie"), coterie.CoterieRegressor)


def test_whole_numbers_are_classes_if_the_user_says_so(run, here, table) -> None:
    table.with_columns(y=(table["y"] > -1).cast(pl.Int64) + (table["y"] > 1).cast(pl.Int64)).write_csv(
        "three.csv"
    )
    outcome = run("fit", "three.csv", *FIT, "--task", "classification", "--no-report")
    assert outcome.code == 0, outcome.err
    assert coterie.load("out/model.coterie").classes_.tolist() == [0, 1, 2]


def test_rows_without_a_class_are_left_out(run, classes) -> None:
    gaps = classes.with_columns(y=pl.when(pl.int_range(pl.len()) < 3).then(None).otherwise("y"))
    gaps.write_csv("gaps.csv")
    assert "3 of 360 rows have no target ('y')" in run("fit", "gaps.csv", *FIT, "--no-report").out


def test_a_newcomer_is_admitted_by_its_classes(run, classes) -> None:
    run("fit", "classes.csv", *FIT, "--no-report")
    classes.filter(pl.col("site") == "b").with_columns(site=pl.lit("new")).write_csv("new.csv")
    outcome = run("admit", "out/model.coterie", "new.csv", "--json")
    assert json.loads(outcome.out)["newcomers"][0]["cluster"] == 1


def test_a_wrong_task_or_candidate_is_refused(run, classes) -> None:
    assert "--task must be one of auto" in run("fit", "classes.csv", *FIT, "--task", "guess").complaint
    wrong = ("--target", "y", "--group", "site", "--candidates", "lasso", "--out", "out")
    assert "Known names: 'logistic'" in run("fit", "classes.csv", *wrong).complaint


def test_a_newcomer_of_one_class_is_admitted(run, classes) -> None:
    run("fit", "classes.csv", *FIT, "--no-report")
    one = classes.filter((pl.col("site") == "b") & (pl.col("y") == "low"))
    one.with_columns(site=pl.lit("new")).write_csv("new.csv")
    assert run("admit", "out/model.coterie", "new.csv").code == 0


def test_a_stopped_fit_of_classes_goes_on(run, classes, monkeypatch) -> None:
    from coterie.collaboration.classes import nest

    def stop(*arguments: Any, **options: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(nest, "_fitted", stop)
        assert run("fit", "classes.csv", *FIT, "--no-report").code == 130
    again = run("fit", "classes.csv", *FIT, "--no-report", "--resume")
    assert again.code == 0
    assert "6 finished fits were taken" in again.err
