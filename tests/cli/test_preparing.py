"""Which column is what, and which rows can be used."""

import numpy as np
import polars as pl
import pytest

from coterie.cli.errors import CommandError
from coterie.cli.preparing import apply_recipe, check_columns, prepare

FRAME = pl.DataFrame(
    {
        "site": ["n", "n", "s", "s", None],
        "y": [1.0, 2.0, None, 4.0, 5.0],
        "x": [0.1, 0.2, 0.3, None, 0.5],
        "note": ["u", "v", "u", "v", "v"],
    }
)


def complaint(frame=FRAME, **options):
    with pytest.raises(CommandError) as caught:
        prepare(frame, **({"target": "y", "group": "site"} | options))
    return str(caught.value)


def test_rows_without_target_or_learner_are_left_out_and_counted():
    rows, recipe = prepare(FRAME, target="y", group="site")
    assert rows.y.tolist() == [1, 2, 4]
    assert rows.groups.tolist() == ["n", "n", "s"]
    assert rows.kept.tolist() == [0, 1, 3]
    assert rows.notes == (
        "1 of 5 rows have no learner ('site') and were left out.",
        "1 of 5 rows have no target ('y') and were left out.",
    )
    assert recipe.features == ("x", "x.missing", "note=(other)")


def test_features_and_drop_choose_the_columns():
    assert prepare(FRAME, target="y", group="site", features=["x"])[1].features == ("x", "x.missing")
    assert prepare(FRAME, target="y", group="site", drop=["note"])[1].features == ("x", "x.missing")


def test_learners_are_known_by_their_text():
    frame = FRAME.with_columns(site=pl.Series([1, 1, 2, 2, 2]))
    assert prepare(frame, target="y", group="site")[0].groups.tolist() == ["1", "1", "2", "2"]


def test_an_infinite_target_is_missing():
    frame = FRAME.with_columns(y=pl.Series([1.0, float("inf"), 3.0, 4.0, float("nan")]))
    assert prepare(frame, target="y", group="site")[0].y.tolist() == [1, 3, 4]


def test_a_recipe_does_the_same_to_other_tables():
    rows, recipe = prepare(FRAME, target="y", group="site")
    again = apply_recipe(FRAME, recipe, with_target=True)
    assert recipe.encoder.transform(again.X).equals(rows.X)
    np.testing.assert_array_equal(again.y, rows.y)
    unanswered = apply_recipe(FRAME.drop("y"), recipe, with_target=False)
    assert unanswered.y is None
    assert unanswered.kept.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("name", "hint"), [("Site", "'site'"), ("sit", "'site'"), ("nota", "'note'"), ("zzz", "there are 'site'")]
)
def test_an_unknown_column_is_answered_with_the_nearest_name(name, hint):
    with pytest.raises(CommandError, match=f"no column '{name}' for --drop: .*{hint}"):
        check_columns([name], FRAME.columns, "--drop")


def test_unknown_columns_of_every_option():
    assert "for --target" in complaint(target="z")
    assert "for --group" in complaint(group="z")
    assert "for --features" in complaint(features=["z"])
    assert "for --drop" in complaint(drop=["z"])


def test_a_target_that_is_no_number_shows_the_entry():
    assert "'note' is not numeric (it holds 'u')" in complaint(target="note")
    frame = FRAME.with_columns(y=pl.Series(["1", "2", "three", "4", "5"]))
    assert "(it holds 'three')" in complaint(frame)


def test_one_learner_or_a_learner_per_row():
    assert "has the one value 'n'" in complaint(FRAME.head(2))
    assert "Every row has its own value" in complaint(FRAME.with_columns(site=pl.Series(list("abcde"))))


def test_columns_that_cannot_be_two_things():
    assert "both target and group" in complaint(target="site")
    assert "cannot be a predictor" in complaint(features=["y", "x"])


def test_nothing_to_predict_from_or_nobody_to_predict():
    assert "No column is left to predict from" in complaint(features=["x"], drop=["x"])
    assert "No row has an entry in both 'y' and 'site'" in complaint(FRAME.tail(1))


def test_another_table_that_lacks_what_the_model_needs():
    _, recipe = prepare(FRAME, target="y", group="site")
    for name, role in (("site", "the learners"), ("y", "the target"), ("x", "a predictor of the model")):
        with pytest.raises(CommandError, match=f"no column '{name}' for {role}"):
            apply_recipe(FRAME.drop(name), recipe, with_target=True)


def test_nan_names_no_learner(table):
    # It became a learner "NaN".
    numbers = {letter: float(k) for k, letter in enumerate("abcdef")} | {"a": float("nan")}
    rows, _ = prepare(table.with_columns(table["site"].replace_strict(numbers)), target="y", group="site")
    assert sorted(set(rows.groups.tolist())) == ["1.0", "2.0", "3.0", "4.0", "5.0"]
    assert rows.notes == ("20 of 120 rows have no learner ('site') and were left out.",)


@pytest.mark.parametrize(
    "kind",
    [lambda s: [s], lambda s: {"a": s}, lambda s: b"\xff" + s.encode()],
    ids=["list", "struct", "bytes"],
)
def test_a_group_column_that_names_nobody_is_refused(table, kind):
    bad = table.with_columns(pl.Series("site", [kind(s) for s in table["site"]]))
    with pytest.raises(CommandError, match=r"'site' holds entries of type .*, which name no learner"):
        prepare(bad, target="y", group="site")


def test_a_target_of_lists_is_refused_in_one_line(table):
    bad = table.with_columns(pl.concat_list("y", "x0").alias("y"))
    with pytest.raises(CommandError, match="is not numeric") as caught:
        prepare(bad, target="y", group="site")
    assert "\n" not in str(caught.value)


def test_names_that_differ_in_a_nul_at_their_end_stay_apart(table):
    names = {"a": "q", "b": "q\0"}
    rows, _ = prepare(table.with_columns(table["site"].replace(names)), target="y", group="site")
    assert len(set(rows.groups.tolist())) == 6
