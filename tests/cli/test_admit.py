import json

import polars as pl
import pytest

import coterie


@pytest.fixture
def newcomers(here, table):
    """The rows of b and c under other names."""
    renamed = {"b": "bea", "c": "carl"}
    rows = table.filter(pl.col("site").is_in(list(renamed)))
    rows.with_columns(pl.col("site").replace_strict(renamed)).write_csv("new.csv")


def test_newcomers_are_placed_with_their_kind(run, fitted, newcomers):
    answer = json.loads(run("admit", fitted, "new.csv", "--json").out)
    assert {entry["learner"]: entry["cluster"] for entry in answer["newcomers"]} == {"bea": 1, "carl": 0}
    assert coterie.load(fitted).learner_ids_.tolist() == list("abcdef")


def test_they_are_shown_as_a_table_and_known_to_the_new_model(run, fitted, newcomers):
    outcome = run("admit", fitted, "new.csv", "--out", "more.coterie")
    assert outcome.code == 0
    assert "carl" in outcome.out
    assert coterie.load("more.coterie").learner_ids_.tolist() == [*"abcdef", "bea", "carl"]
    assert run("predict", "more.coterie", "new.csv").code == 0


def test_who_is_known_already_is_refused(run, fitted):
    assert "are known already" in run("admit", fitted, "table.csv").complaint


def test_a_table_without_target_is_refused(run, fitted, table):
    table.drop("y").write_csv("new.csv")
    assert "no column 'y' for the target" in run("admit", fitted, "new.csv").complaint


def test_a_file_that_is_there_is_kept(run, fitted, newcomers):
    assert "exists" in run("admit", fitted, "new.csv", "--out", fitted).complaint
