"""A site shares its model, and knows beforehand what that reveals."""

from __future__ import annotations

import os

import polars as pl
import pytest

from coterie.datasets import make_stress
from coterie.federated.folder import SealedFolder


@pytest.fixture
def site(here, table):
    """A folder with the table of one site and an empty box."""
    table.filter(pl.col("site") == "a").drop("site").write_csv(here / "a.csv")
    (here / "box").mkdir()
    return here


def share(run, *options, table="a.csv", name="a", target="y", folder="box", candidates="ridge"):
    return run(
        "share",
        table,
        "--target",
        target,
        "--name",
        name,
        "--folder",
        folder,
        "--candidates",
        candidates,
        *options,
    )


def shares(here):
    return SealedFolder(here / "box").read().shares


def test_a_site_shares_its_model(run, site):
    outcome = share(run)
    assert outcome.code == 0, outcome
    assert "a shared: ridge, 20 rows" in outcome.out
    (found,) = shares(site)
    assert (found.site, found.n_rows, found.columns, found.target) == ("a", 20, ("x0", "x1"), "y")
    assert os.listdir(site / "box") == ["share-a.coterie"]


def test_sharing_again_changes_nothing(run, site):
    share(run)
    before = (site / "box" / "share-a.coterie").read_bytes()
    assert "had shared already" in share(run).out
    assert (site / "box" / "share-a.coterie").read_bytes() == before


def test_a_dry_run_lists_what_is_revealed_and_writes_nothing(run, site):
    outcome = share(run, "--dry-run")
    assert outcome.code == 0
    for words in (
        "number of rows: 20",
        "columns: x0, x1; target: y",
        "mean and variance of the target",
        "sha256",
    ):
        assert words in outcome.out
    assert "sums of products" in outcome.out
    assert os.listdir(site / "box") == []


def test_a_dry_run_needs_no_folder(run, site):
    for folder in ("none", ""):
        assert "number of rows: 20" in share(run, "--dry-run", folder=folder).out
    assert not (site / "none").exists()


def test_a_damaged_share_is_not_called_that_of_another(run, site):
    share(run)
    path = site / "box" / "share-a.coterie"
    path.write_bytes(path.read_bytes()[:-9])
    assert "cannot be used" in share(run).complaint
    assert "--replace" in share(run).complaint
    assert share(run, "--replace").code == 0
    assert len(shares(site)) == 1


def test_a_key_that_others_may_open_is_said(run, site):
    run("keygen", "--name", "a", "--out", "key")
    assert "chmod" not in share(run, "--sign", "key").err
    (site / "key").chmod(0o644)
    assert "chmod 600" in share(run, "--sign", "key").err


def test_another_site_of_the_same_name_is_refused(run, site, table):
    share(run)
    table.filter(pl.col("site") == "b").drop("site").write_csv(site / "b.csv")
    assert "take another name" in share(run, table="b.csv").complaint
    assert share(run, "--replace", table="b.csv").code == 0
    assert len(shares(site)) == 1


def test_columns_take_the_order_of_the_others(run, site, table):
    share(run)
    mine = table.filter(pl.col("site") == "b").select("y", "x1", "x0")
    mine.write_csv(site / "b.csv")
    outcome = share(run, table="b.csv", name="b")
    assert "order that the other sites have" in outcome.err
    assert {found.columns for found in shares(site)} == {("x0", "x1")}


def test_rows_with_gaps_are_left_out_and_counted(run, site):
    gaps = pl.read_csv(site / "a.csv").with_columns(
        x0=pl.when(pl.int_range(pl.len()) == 0).then(None).otherwise(pl.col("x0"))
    )
    gaps.write_csv(site / "gaps.csv")
    assert "1 of 20 rows have gaps" in share(run, table="gaps.csv").err
    assert shares(site)[0].n_rows == 19


def test_text_is_refused_with_a_remedy(run, site):
    pl.read_csv(site / "a.csv").with_columns(colour=pl.lit("red")).write_csv(site / "text.csv")
    assert "'colour' is String" in share(run, table="text.csv").complaint
    assert share(run, "--drop", "colour", table="text.csv").code == 0


def test_models_that_keep_rows_are_refused_by_name(run, site):
    complaint = share(run, candidates="knn").complaint
    assert "KNeighborsRegressor" in complaint or "neighbours" in complaint
    assert os.listdir(site / "box") == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"target": ""}, "--target is missing"),
        ({"name": ""}, "--name is missing"),
        ({"folder": ""}, "--folder is missing"),
        ({"folder": "none"}, "no folder 'none'"),
        ({"target": "z"}, "no column 'z'"),
        ({"candidates": "nonsense"}, "nonsense"),
        ({"table": "none.csv"}, "no file"),
        ({"name": " a"}, "no space at its ends"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(run, site, options, words):
    assert words in share(run, **options).complaint


def test_a_key_in_the_folder_is_refused(run, site):
    run("keygen", "--name", "a", "--out", "box/key")
    assert "keep it elsewhere" in share(run, "--sign", "box/key").complaint


@pytest.mark.parametrize("size", ["1e60", "1e120", "1e200"])
def test_a_response_too_large_for_messages_is_refused_in_a_sentence(run, site, size):
    rows = pl.read_csv(site / "a.csv").with_columns(pl.col("y") * float(size))
    rows.write_csv(site / "large.csv")
    assert "give it in other units" in share(run, table="large.csv").complaint
    assert os.listdir(site / "box") == []


@pytest.mark.parametrize("column", ["a\tb", "a\u00a0b", "a" * 501])
def test_a_share_that_nobody_could_read_is_not_written(run, site, column):
    pl.read_csv(site / "a.csv").rename({"x0": column}).write_csv(site / "odd.csv")
    for options in ((), ("--dry-run",)):
        assert "'columns' must be printable" in share(run, *options, table="odd.csv").complaint
    assert "'seed' must be below 2^53" in share(run, "--seed", "99999999999999999999").complaint
    assert os.listdir(site / "box") == []


def test_rows_in_time_order_are_said_where_they_are(run, site):
    data = make_stress("AR(1) noise .8, one truth", 1000)
    mine = data.groups == data.learner_ids[0]
    columns = {f"x{p}": data.X[mine, p] for p in range(6)}
    pl.DataFrame({"y": data.y[mine], **columns}).write_csv(site / "time.csv")
    for order, found in (("auto", True), ("none", False)):
        outcome = share(run, "--dry-run", "--order", order, table="time.csv")
        assert ("depend on each other" in outcome.err) is found
    assert "--order must be auto or none" in share(run, "--order", "time").err
