"""Sites agree on columns by names and common entries alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import polars as pl
import pytest

from coterie.encoding import TableEncoder
from coterie.federated import ProtocolError, decode, encode
from coterie.federated.columns import agree, describe_columns, follows

COLUMNS = ("size", "colour", "day", "id", "flag")


def table(n=40, *, size=1.0, colours=("red", "red", "blue"), gaps=0, hours=False):
    days = [datetime(2020, 1 + k % 12, 1 + k % 28, k % 24 if hours else 0) for k in range(n)]
    return pl.DataFrame(
        {
            "y": [float(k) for k in range(n)],
            "size": [None if k < gaps else size * (1 + k % 7) for k in range(n)],
            "colour": [colours[k % len(colours)] for k in range(n)],
            "day": days if hours else pl.Series(days).cast(pl.Date),
            "id": [f"row {k}" for k in range(n)],
            "flag": ["one"] * n,
        }
    )


def said(site="north", *, fewest=10, columns=COLUMNS, **more):
    return describe_columns(table(**more), site=site, target="y", columns=columns, fewest=fewest)


def note_of(message, name):
    return next(note for note in message.columns if note.name == name)


def test_a_site_names_entries_that_enough_rows_have_and_no_others():
    message = said(colours=["red"] * 20 + ["blue"] * 11 + ["rare"] * 9)
    assert note_of(message, "colour").levels == ("red", "blue")
    assert b"rare" not in encode(message)
    assert b"row 1" not in encode(message)
    assert note_of(message, "id").kind == "left out"
    assert note_of(message, "flag").levels == ("one",)
    assert note_of(message, "day").kind == "date"


def test_numbers_are_told_with_one_digit_only_and_gaps_where_they_are_many():
    message = said(size=1.2345)
    assert (note_of(message, "size").middle, note_of(message, "size").size) == (5.0, 5.0)
    assert message.target.size == 20.0
    assert note_of(message, "day").middle == 2020.0
    assert not note_of(said(gaps=9), "size").gaps
    assert note_of(said(gaps=10), "size").gaps
    few = said(n=8)
    assert note_of(few, "size").middle is None


def test_an_entry_of_a_single_row_is_never_named():
    with pytest.raises(ProtocolError, match="at least 2 rows"):
        said(fewest=1)


def test_the_encoding_is_the_same_in_any_order_and_encodes_every_table_alike():
    sites = [
        said("a", colours=["red", "blue"]),
        said("b", colours=["red", "green"], gaps=12),
        said("c", hours=True),
    ]
    found = agree(sites)
    assert agree(sites[::-1]) == found
    assert decode(encode(found)) == found
    assert found.sites == ("a", "b", "c")
    encoder = TableEncoder.from_columns(found.columns)
    names = encoder.get_feature_names_out().tolist()
    assert names == [
        "size",
        "size.missing",
        "colour=blue",
        "colour=green",
        "colour=(other)",
        "day.year",
        "day.month",
        "day.weekday",
        "day.hour",
        "flag=(other)",
    ]
    for other in (table(colours=["never seen"]), table(hours=True, gaps=40)):
        encoded = encoder.transform(other)
        assert encoded.columns == names
        assert encoded.null_count().to_numpy().sum() == 0
    assert encoder.transform(table(colours=["never seen"]))["colour=(other)"].sum() == 40


def test_the_reference_is_the_entry_that_most_sites_have():
    found = agree(
        [said("a", colours=["x", "x", "z"]), said("b", colours=["z", "y"]), said("c", colours=["z"])]
    )
    plan = next(plan for plan in found.columns if plan.name == "colour")
    assert plan.levels == ("z", "x", "y")


def test_columns_that_few_sites_have_are_left_out_and_one_site_takes_none_from_the_others():
    other = describe_columns(
        table().with_columns(size=pl.lit("large"), extra=pl.lit(1.0)),
        site="c",
        target="y",
        columns=("size", "colour", "extra"),
    )
    found = agree([said("a"), said("b"), other])
    plans = {plan.name: plan for plan in found.columns}
    assert plans["size"].kind == "number"
    assert plans["day"].kind == "date"
    assert "only 1 of 3 sites" in plans["extra"].remark
    assert any("'c' cannot take part unless 'size' is a number" in note for note in found.notes)
    assert any("'c' cannot take part unless 'day'" in note for note in found.notes)
    assert any("'extra'" in note for note in found.notes)
    two = agree([said("a"), other])
    assert {plan.name for plan in two.columns if plan.kind != "left out"} == {"colour"}


def test_units_that_differ_are_noticed():
    sites = [said(name) for name in "abcd"]
    assert not any("units" in note for note in agree(sites).notes)
    found = agree([*sites, said("e", size=1000.0)])
    assert any("'size'" in note and "'e'" in note and "1000 times" in note for note in found.notes)
    small = agree([*sites, said("e", size=0.1)])
    assert any("0.1 times" in note for note in small.notes)
    assert not any("units" in note for note in agree([*sites, said("e", size=2.0)]).notes)


def test_who_predicts_something_else_has_no_say():
    other = describe_columns(table().rename({"y": "z"}), site="c", target="z", columns=("size",))
    found = agree([said("a"), said("b"), other])
    assert found.sites == ("a", "b")
    assert "'c' predicts 'z'" in found.notes[0]


def test_an_encoding_is_checked_against_what_the_sites_said():
    sites = [said("a"), said("b")]
    found = agree(sites)
    assert follows(found, [*sites, said("later", gaps=20)])
    assert not follows(replace(found, columns=found.columns[:1]), sites)
    assert not follows(found, [sites[0]])
    assert not follows(found, [])


def test_nothing_to_agree_on_is_said_in_a_sentence():
    with pytest.raises(ProtocolError, match="No site has described"):
        agree([])
    with pytest.raises(ProtocolError, match="No column is left"):
        agree([said("a", columns=("id",))])
