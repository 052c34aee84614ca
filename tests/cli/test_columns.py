"""Sites with categories, dates and gaps agree on columns, then share as others do."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from coterie.federated.folder import SealedFolder

SITES = "abcdef"


@pytest.fixture
def box(here, monkeypatch):
    """Six sites of two truths, whose tables have a category, a date and gaps."""
    monkeypatch.setenv("COTERIE_CACHE", str(here / "cache"))
    generator = np.random.default_rng(0)
    for k, site in enumerate(SITES):
        x, kind = generator.normal(size=90), generator.integers(3, size=90)
        y = (1 if k % 2 else -1) * (2 * x + kind) + 0.3 * generator.normal(size=90)
        pl.DataFrame(
            {
                "x": [None if j % 6 == 0 else float(v) for j, v in enumerate(x)],
                "kind": [["old", "new", "odd"][v] for v in kind],
                "day": pl.date_range(pl.date(2020, 1, 1), pl.date(2020, 3, 30), eager=True),
                "y": y,
            }
        ).write_parquet(here / f"{site}.parquet")
    (here / "box").mkdir()
    return here


def say(run, site, *options, table=None):
    return run(
        "columns", table or f"{site}.parquet", "--target", "y", "--name", site, "--folder", "box", *options
    )


def share(run, site, *options):
    common = ("--target", "y", "--name", site, "--folder", "box", "--candidates", "ridge")
    return run("share", f"{site}.parquet", *common, *options)


def agreed(run):
    for site in SITES:
        assert f"{site} named 3 columns" in say(run, site).out
    return run("agree", "--folder", "box")


def test_whose_turn_it_is_before_anybody_shares(run, box):
    say(run, "a")
    outcome = run("status", "--folder", "box")
    assert "named their columns: a. When all have, run `coterie agree`" in outcome.out
    for site in SITES[1:]:
        say(run, site)
    run("agree", "--folder", "box")
    assert "Nobody has shared: run `coterie share`" in run("status", "--folder", "box").out
    for site in SITES[:3]:
        say(run, site, "--replace", "--drop", "day")
    assert "run `coterie agree`" in run("status", "--folder", "box").out


def test_sites_agree_share_conclude_and_predict(run, box):
    outcome = agreed(run)
    assert "6 sites agree on the columns to predict 'y'" in outcome.out
    assert "kind: category: 3 entries" in outcome.out
    for site in SITES:
        assert f"{site} shared: ridge, 90 rows" in share(run, site).out
    found = SealedFolder(box / "box").read()
    columns = {each.columns for each in found.shares}
    assert len(columns) == 1
    (names,) = columns
    assert {"x", "x.missing", "kind=(other)", "day.month"} <= set(names)
    for site in SITES:
        assert run("score", f"{site}.parquet", "--name", site, "--folder", "box").code == 0
    assert run("conclude", "--folder", "box", "--no-rounds", "--n-clusters", "2").code == 0
    labels = SealedFolder(box / "box").read().conclusion.labels
    assert labels == {site: k % 2 for k, site in enumerate(SITES)}
    assert run("predict", "box", "a.parquet", "--name", "a", "--out", "p.csv").code == 0
    predicted = pl.read_csv(box / "p.csv")["prediction"]
    truth = pl.read_parquet(box / "a.parquet")["y"]
    # Rows with gaps are predicted, too.
    assert predicted.null_count() == 0
    assert ((predicted - truth) ** 2).mean() < 0.5 * truth.var()


def test_moments_are_encoded_as_agreed(run, box):
    agreed(run)
    for site in SITES:
        assert "moments of 90 rows" in share(run, site, "--moments").out
    assert "fall into 2 coteries" in run("conclude", "--folder", "box").out
    assert "a: " in run("score", "a.parquet", "--name", "a", "--folder", "box").out
    outcome = run("predict", "box", "a.parquet", "--name", "a", "--own", "a.parquet", "--out", "p.csv")
    assert outcome.code == 0, outcome
    assert pl.read_csv(box / "p.csv")["prediction"].null_count() == 0


def test_a_dry_run_lists_what_is_said_and_writes_nothing(run, box):
    outcome = say(run, "a", "--dry-run")
    for words in ("entries that 10 rows or more have", "kind: category; entries", "has gaps", "size about"):
        assert words in outcome.out
    assert not list((box / "box").iterdir())


def test_text_without_an_agreement_has_a_remedy(run, box):
    assert "run `coterie columns` at every site, then `coterie agree`" in share(run, "a").complaint


def test_other_units_are_said(run, box):
    rows = pl.read_parquet(box / "f.parquet").with_columns(pl.col("x") * 1000)
    rows.write_parquet(box / "f.parquet")
    assert "'x' is about 900 times as large at 'f'" in agreed(run).err


def test_who_says_something_else_later_is_noticed(run, box):
    agreed(run)
    assert "had named" in say(run, "a").out
    rows = pl.read_parquet(box / "a.parquet").with_columns(kind=pl.lit("new"))
    rows.write_parquet(box / "a.parquet")
    assert "Pass --replace" in say(run, "a").complaint
    say(run, "a", "--replace")
    assert "run `coterie agree` again" in share(run, "b").complaint
    run("agree", "--folder", "box")
    assert share(run, "b").code == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--fewest", "1"), "at least 2 rows"),
        (("--features", "z"), "no column 'z'"),
        (("--folder", "none"), "no folder 'none'"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(run, box, options, words):
    assert words in say(run, "a", *options).complaint


def test_agreeing_on_nothing_is_said_in_a_sentence(run, box):
    assert "run `coterie columns` at every site" in run("agree", "--folder", "box").complaint


def test_entries_are_read_one_by_one_as_agreed(run, box):
    agreed(run)
    rows = pl.read_parquet(box / "a.parquet").with_columns(
        pl.col("x", "y").round(3).cast(pl.String), pl.col("day").cast(pl.String)
    )
    # Whatever writes the file: with commas, and with a text among the numbers.
    for k, text in enumerate(("?", "4711,")):
        changed = rows.with_columns(x=pl.when(pl.int_range(pl.len()) == 1).then(pl.lit(text)).otherwise("x"))
        commas = changed.with_columns(pl.col("x", "y").str.replace(".", ",", literal=True))
        (changed, commas)[k].write_csv(box / "a.csv", separator=";")
        common = ("--target", "y", "--name", "a", "--folder", "box", "--candidates", "ridge")
        outcome = run("share", "a.csv", *common, "--replace")
        assert "a shared: ridge, 90 rows" in outcome.out, outcome
        assert ("1 of 90 entries of 'x' are no number and count as gaps: '?'" in outcome.err) == (k == 0)
    assert run("score", "a.csv", "--name", "a", "--folder", "box").code == 0
    assert run("predict", "box", "a.csv", "--name", "a").complaint.startswith("The folder has no conclusion")
