"""No CSV of ours holds a formula, and reading gives back what was written."""

import csv
import io
import json

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.cli.reading import read_tables
from coterie.cli.spreadsheets import without_escapes, write_csv

QUIET = ("--target", "y", "--group", "site", "--candidates", "lr", "--no-report", "--out", "out")
FORMULAS = ["=1+1", "+a", "-b", "@c", "\td", "\re"]


def cells(content):
    return list(csv.reader(io.StringIO(content.decode(), newline="")))


def test_formulas_get_an_apostrophe_and_numbers_stay():
    table = pl.DataFrame({"=name": ["=1+1", "-2", "-2+3", "x", "'=y", "+5e3", None], "n": [-1.5] * 7})
    assert cells(write_csv(table)) == [
        ["'=name", "n"],
        ["'=1+1", "-1.5"],
        ["-2", "-1.5"],
        ["'-2+3", "-1.5"],
        ["x", "-1.5"],
        ["''=y", "-1.5"],
        ["+5e3", "-1.5"],
        ["", "-1.5"],
    ]


texts = st.text("'=+-@\t\r\n0123456789.eExyz\uff1d ", max_size=6)


@settings(max_examples=100, deadline=None)
@given(st.lists(texts, min_size=1, max_size=5), texts)
def test_what_is_written_comes_back_and_begins_like_no_formula(entries, name):
    table = pl.DataFrame({name: entries, "other": entries})
    if len(set(table.columns)) < 2:
        return
    written = cells(write_csv(table))
    for row in written:
        for text in row:
            number = text.lstrip("+-").replace(".", "").replace("e", "").replace("E", "")
            assert not text.startswith(tuple("=@\t\r\n")), written
            assert text[:1] not in ("+", "-") or number[:1].isdigit(), written
    read = pl.DataFrame(dict(zip(written[0], zip(*written[1:], strict=True), strict=True)))
    # polars reads an empty text as missing; csv does not.
    assert without_escapes(read).rows() == table.rows()
    assert without_escapes(read).columns == table.columns


def test_a_table_with_formulas_was_written_by_others_and_stays_as_it_is():
    table = pl.DataFrame({"a": ["'=x", "=x"]})
    assert without_escapes(table).equals(table)


def test_every_csv_of_a_fit_is_safe_and_can_be_fitted_and_predicted_again(run, here, table):
    names = dict(zip("abcdef", FORMULAS, strict=True))
    bad = table.with_columns(table["site"].replace_strict(names))
    bad.write_parquet("bad.parquet")
    assert run("fit", "bad.parquet", *QUIET).code == 0
    assert run("predict", "out/model.coterie", "bad.parquet", "--out", "p.csv").code == 0
    for path in ("out/labels.csv", "out/gains.csv", "out/losses.csv", "p.csv"):
        with open(path, newline="", encoding="utf-8") as file:
            found = [cell for row in csv.reader(file) for cell in row]
        assert [c for c in found if c.startswith(tuple("=@\t\r"))] == [], path
        assert [c for c in found if c.startswith(("+", "-")) and not c[1:2].isdigit()] == [], path
        assert "'=1+1" in found
    assert read_tables(["out/labels.csv"])["learner"].to_list() == FORMULAS
    # A table that we wrote names the same learners.
    joined = bad.drop("site").with_columns(pl.Series("site", bad["site"]))
    (here / "ours.csv").write_bytes(write_csv(joined))
    assert run("predict", "out/model.coterie", "ours.csv", "--out", "q.csv").code == 0
    assert (here / "p.csv").read_bytes() == (here / "q.csv").read_bytes()
    # JSON is no spreadsheet.
    assert "=1+1" in [row["learner"] for row in json.loads((here / "out/summary.json").read_text())["gains"]]


@pytest.mark.parametrize("sites", [["=a", "+b", "@c"]])
def test_the_csv_of_nvflare_s_sites_is_safe(run, here, sites):
    losses = {a: {b: {"mse": 1.0 + (a != b)} for b in sites} for a in sites}
    (here / "cross.json").write_text(json.dumps(losses))
    assert run("fit", "--from-nvflare", "cross.json", "--no-report", "--out", "nv").code == 0
    for path in ("nv/labels.csv", "nv/losses.csv"):
        with open(path, newline="", encoding="utf-8") as file:
            assert not [c for row in csv.reader(file) for c in row if c.startswith(tuple("=+@"))]
