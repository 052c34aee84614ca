"""Words among numbers are named in every kind of file, and rows unlike those of the fit in every command."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from coterie.cli.preparing import prepare
from coterie.cli.reading import read_tables

from .workbooks import write_workbook

AREA = [*(round(50 + 0.5 * k, 1) for k in range(57)), "defekt", "n/v", "k.A."]
ROWS = [[area, float(k), f"site {k % 3}"] for k, area in enumerate(AREA)]
HEAD = ["area", "y", "site"]
NOTE = (
    "Column 'area' is text and was taken for numbers: 3 of 60 entries are none ('defekt', 'n/v', 'k.A.') and "
    "count as missing. If it holds codes, make it a category."
)


def written(cell, decimal):
    return cell if isinstance(cell, str) else str(cell).replace(".", decimal)


def write(kind):
    decimal = "," if kind.endswith("commas") else "."
    if kind == "excel":
        pytest.importorskip("fastexcel")
        return write_workbook(Path("t.xlsx"), first=[HEAD, *ROWS])
    if kind.startswith("parquet"):
        table = pl.DataFrame(
            [[written(row[0], decimal), *row[1:]] for row in ROWS], schema=HEAD, orient="row"
        )
        table.write_parquet("t.parquet")
        return "t.parquet"
    lines = (";".join(written(cell, decimal) for cell in row) for row in (HEAD, *ROWS))
    Path("t.csv").write_text("\n".join(lines))
    return "t.csv"


@pytest.mark.parametrize("kind", ["csv", "csv with commas", "excel", "parquet", "parquet with commas"])
def test_words_among_numbers_are_gaps_with_a_note(here, kind):
    table = read_tables([str(write(kind))])
    rows, recipe = prepare(table, target="y", group="site")
    assert rows.notes == (NOTE,)
    assert recipe.features == ("area", "area.missing")
    middle = np.median(AREA[:57])
    assert rows.X["area"].to_list() == [*AREA[:57], middle, middle, middle]


def test_a_word_beyond_the_rows_that_readers_look_at_is_read(here):
    pytest.importorskip("fastexcel")
    rows = [["x"], *([k + 0.5] for k in range(1500)), ["defekt"]]
    assert read_tables([str(write_workbook(Path("t.xlsx"), first=rows))])["x"][-1] == "defekt"
    Path("t.csv").write_text("x\n" + "".join(f"{k}.5\n" for k in range(10_500)) + "defekt\n")
    assert read_tables(["t.csv"])["x"][-1] == "defekt"


FIT = ("--target", "y", "--group", "site", "--candidates", "lr", "--no-report", "--out", "out")


def test_the_note_of_a_fit_and_later_files(run, here, table):
    text = table["x0"].cast(pl.String).set(pl.Series([row == 3 for row in range(120)]), "defekt")
    table.with_columns(x0=text).write_csv("words.csv")
    outcome = run("fit", "words.csv", *FIT)
    assert outcome.code == 0
    assert (
        "Note: Column 'x0' is text and was taken for numbers: 1 of 120 entries are none ('defekt')"
        in outcome.out
    )
    # Any share of words is read entry by entry, and so is a file without one.
    table.with_columns(x0=text).head(4).write_csv("few.csv")
    table.head(4).write_csv("plain.csv")
    answers = [
        pl.read_csv(run("predict", "out", name).out.encode())["prediction"]
        for name in ("few.csv", "plain.csv")
    ]
    assert answers[0][:3].to_list() == answers[1][:3].to_list()
    assert answers[0][3] != answers[1][3]


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        (1000 * pl.col("x0"), "Column 'x0': 120 of 120 rows lie outside"),
        (
            pl.lit(None, dtype=pl.Float64),
            "Column 'x0' is missing in 120 of 120 rows, and was in 0 of 120 rows of fit",
        ),
        (
            pl.when(pl.col("y") > 0).then(pl.lit("k.A.")).otherwise(pl.col("x0").cast(pl.String)),
            "Column 'x0' held numbers in fit, and",
        ),
    ],
)
def test_rows_unlike_those_of_the_fit_are_a_note_and_by_wish_an_error(run, fitted, table, changed, sentence):
    table.with_columns(x0=changed).write_csv("later.csv")
    outcome = run("predict", fitted, "later.csv")
    assert outcome.code == 0
    assert outcome.err.startswith(f"Note: {sentence}")
    assert outcome.err.count("\n") == 1
    complaint = run("predict", fitted, "later.csv", "--strict").complaint
    assert complaint.startswith(sentence)
    assert complaint.endswith("Without --strict this is a note.")
    # Ordinary rows pass, and so do learners that the fit has not seen.
    table.with_columns(site=pl.lit("zoe")).write_csv("plain.csv")
    assert run("predict", fitted, "plain.csv", "--strict").code == 0


def test_newcomers_in_other_units_are_not_admitted_by_who_wants_it_strict(run, fitted, table):
    table.with_columns(x0=1000 * pl.col("x0"), site=pl.lit("new")).write_csv("new.csv")
    outcome = run("admit", fitted, "new.csv", "--strict", "--out", "more.coterie")
    assert "Column 'x0'" in outcome.complaint
    assert not Path("more.coterie").exists()
    outcome = run("admit", fitted, "new.csv", "--out", "more.coterie")
    assert "Note: Column 'x0'" in outcome.err
    # Who was admitted is known.
    assert "Column" not in run("predict", "more.coterie", "new.csv", "--strict").err


def test_a_sealed_folder_knows_no_rows_of_a_fit(run, here, table):
    table.write_csv("table.csv")
    Path("sealed").mkdir()
    assert (
        "--strict needs a model" in run("predict", "sealed", "table.csv", "--strict", "--name", "a").complaint
    )
