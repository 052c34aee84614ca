import errno
from pathlib import Path

import numpy as np
import polars as pl

import coterie


def test_predictions_are_the_model_s_in_the_order_of_the_table(run, fitted, table):
    outcome = run("predict", fitted, "table.csv")
    assert outcome.code == 0
    answer = pl.read_csv(outcome.out.encode())
    assert answer["site"].to_list() == table["site"].to_list()
    model = coterie.load(fitted)
    X = table.select("x0", "x1")
    np.testing.assert_allclose(answer["prediction"], model.predict(X, table["site"]))


def test_intervals_are_two_more_columns(run, fitted, table):
    outcome = run("predict", fitted, "table.csv", "--interval", ".8")
    assert outcome.code == 0
    answer = pl.read_csv(outcome.out.encode())
    assert answer.columns == ["site", "prediction", "prediction_low", "prediction_high"]
    ends = coterie.load(fitted).predict_interval(table.select("x0", "x1"), table["site"], coverage=0.8)
    np.testing.assert_allclose(answer.select("prediction_low", "prediction_high").to_numpy(), ends)


def test_an_interval_that_is_none(run, fitted, tmp_path):
    for coverage in ("90", "0", "1", "nan"):
        assert (
            "a number between 0 and 1"
            in run("predict", fitted, "table.csv", "--interval", coverage).complaint
        )
    assert "a sealed folder" in run("predict", str(tmp_path), "table.csv", "--interval", ".9").complaint


def test_a_table_without_target_and_with_gaps_is_predicted(run, fitted, table):
    later = (
        table.drop("y")
        .head(4)
        .with_columns(x0=pl.Series([None, 1.0, 2.0, 3.0]), site=pl.Series(["a", None, "b", "a"]))
    )
    later.write_parquet("later.parquet")
    outcome = run("predict", fitted, "later.parquet", "--out", "answer.csv")
    assert outcome.code == 0
    assert "1 of 4 rows have no learner" in outcome.err
    assert pl.read_csv("answer.csv")["prediction"].is_null().to_list() == [False, True, False, False]


def test_learners_named_by_number_are_found_again(run, here, table):
    numbers = table.with_columns(site=pl.col("site").replace_strict({c: k for k, c in enumerate("abcdef")}))
    numbers.write_csv("numbers.csv")
    fit = ("--target", "y", "--group", "site", "--candidates", "lr", "--no-report", "--out", "out")
    assert run("fit", "numbers.csv", *fit).code == 0
    assert run("predict", "out/model.coterie", "numbers.csv").code == 0


def test_an_unknown_learner_is_named_and_predicted_by_what_all_share(run, fitted, table):
    table.with_columns(site=pl.lit("zoe")).write_csv("strange.csv")
    outcome = run("predict", fitted, "strange.csv")
    assert outcome.code == 0
    assert outcome.err == (
        "Note: Learner 'zoe' was not seen in fit, and is predicted by what all learners share. "
        "Use `coterie admit` to place newcomers.\n"
    )
    assert pl.read_csv(outcome.out.encode())["prediction"].is_finite().all()


def test_a_missing_column_and_a_file_that_is_there(run, fitted, table):
    table.drop("x1").write_csv("less.csv")
    assert "no column 'x1' for a predictor" in run("predict", fitted, "less.csv").complaint
    sentence = run("predict", fitted, "table.csv", "--out", "table.csv").complaint
    assert "'table.csv' exists" in sentence
    assert "no folder" in run("predict", fitted, "table.csv", "--out", "no/where.csv").complaint


def test_models_that_are_none(run, fitted):
    assert "There is no file" in run("predict", "none.coterie", "table.csv").complaint
    Path("bad.coterie").write_text("hello")
    assert "it is not a zip" in run("predict", "bad.coterie", "table.csv").complaint


def test_a_model_of_python_s_does_not_know_the_columns(run, fitted, table):
    model = coterie.CoterieRegressor(candidates="lr", n_clusters=2)
    coterie.save(model.fit(table.select("x0", "x1"), table["y"], groups=table["site"]), "by-hand.coterie")
    assert "was not made by `coterie fit`" in run("predict", "by-hand.coterie", "table.csv").complaint


def test_a_disk_that_may_not_be_written_is_a_sentence(run, here, fitted, monkeypatch):
    # Removing what had not been written raised a second error, with a traceback.
    def refused(*_, **more):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("os.fsync", refused)
    monkeypatch.setattr("pathlib.Path.unlink", refused)
    assert "Read-only file system" in run("predict", fitted, "table.csv", "--out", "p.csv").complaint
