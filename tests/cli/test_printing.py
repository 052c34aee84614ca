"""Nothing that a table, a file name or an option holds commands the terminal."""

import json
import sys

import polars as pl
import pytest

from coterie.cli.printing import LONGEST_SENTENCE, cell, printable, sentence

QUIET = ("--target", "y", "--group", "site", "--candidates", "lr", "--no-report", "--out", "out")
# Red, the text behind turned around, a bell, a cursor moved, a line that begins anew.
EVIL = "\x1b[31m\u202e\x07\x9b1A\r"


def assert_clean(text):
    assert all(letter.isprintable() or letter == "\n" for letter in text), ascii(text)


def test_what_is_no_letter_sign_or_space_is_escaped():
    assert printable("naïve 你好 Ω €\u00a0😀") == "naïve 你好 Ω €\u00a0😀"
    assert printable(EVIL) == r"\x1b[31m\u202e\x07\x9b1A\r"
    assert printable("a\u2028b\ud800c\u200bd\u2066") == r"a\u2028b\ud800c\u200bd\u2066"


def test_a_sentence_is_one_line_of_a_bearable_length():
    assert sentence("one\ntwo") == "one two"
    assert len(sentence("x" * 10**6)) == LONGEST_SENTENCE
    assert cell(3) == "3"


def test_ids_and_columns_are_escaped_in_the_summary(run, here, table):
    names = table["site"].to_list()
    bad = table.with_columns(site=pl.Series([f"{n}{EVIL}" for n in names]), **{f"c{EVIL}": pl.Series(names)})
    bad.write_parquet("bad.parquet")
    outcome = run("fit", "bad.parquet", *QUIET)
    assert outcome.code == 0
    assert all(rf"{name}\x1b[31m\u202e\x07\x9b1A\r" in outcome.out for name in "abcdef")
    assert_clean(outcome.out + outcome.err)
    assert_clean(run("inspect", "out/model.coterie").out)
    complaint = run("predict", "out/model.coterie", "table.csv").complaint
    assert "has no column" in complaint
    assert_clean(complaint)
    # JSON has escapes of its own.
    output = run("inspect", "out/model.coterie", "--json").out
    assert_clean(output)
    assert f"a{EVIL}" in json.loads(output)["learners"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("fit", "table.csv", "--target", EVIL, "--group", "site"),
        ("fit", f"{EVIL}.csv", *QUIET),
        ("fit", "table.csv", *QUIET, f"--{EVIL}"),
        ("fit", "table.csv", *QUIET, "--seed", EVIL),
        ("fit", "table.csv", *QUIET, "--encoding", EVIL),
        ("predict", f"{EVIL}.coterie", "table.csv"),
        ("keygen", "--name", EVIL, "--out", "key"),
        (EVIL,),
    ],
)
def test_errors_are_escaped(run, here, arguments):
    assert_clean(run(*arguments).complaint)


def test_predictions_on_a_terminal_are_escaped(run, here, fitted, table, monkeypatch, capsys):
    names = table["site"].to_list()
    table.with_columns(site=pl.Series([f"{n}{EVIL}" for n in names])).write_parquet("bad.parquet")
    assert run("fit", "bad.parquet", *QUIET, "--force").code == 0
    plain = run("predict", "out/model.coterie", "bad.parquet").out
    # Away from a terminal they are data.
    assert EVIL in plain
    monkeypatch.setattr(type(sys.stdout), "isatty", lambda self: True)
    output = run("predict", "out/model.coterie", "bad.parquet").out
    assert_clean(output)
    assert r"a\x1b[31m" in output
