"""Parquet files that are read learner by learner."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import coterie
import coterie.fit.out_of_core as streaming
from coterie.datasets import make_linear_learners

COLUMNS = ("--target", "y", "--candidates", "lr", "--no-report")


@pytest.fixture
def table() -> pl.DataFrame:
    data = make_linear_learners(6, n_truths=2, n_rows=40, n_features=2, random_state=0)
    sites = pl.Series([name.removeprefix("learner ") for name in data.groups.tolist()])
    kinds = pl.Series(["u", "v"] * 120)
    rows = pl.DataFrame(data.X, schema=["x0", "x1"])
    return rows.with_columns(y=pl.Series(data.y), site=sites, kind=kinds).sort("site")


@pytest.fixture
def folder(tmp_path: Path, table: pl.DataFrame) -> Path:
    """The same rows sorted in one file, in a file each, and in a folder each."""
    table.write_parquet(tmp_path / "sorted.parquet", row_group_size=70)
    for (site,), rows in table.group_by("site", maintain_order=True):
        for name in (f"files/{site}.parquet", f"hive/site={site}/0.parquet"):
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            rows.drop("site").write_parquet(path, row_group_size=30)
    return tmp_path


@pytest.fixture(params=["fits", "streamed", "thinned"])
def room(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Everything fits; or learners are read one by one; or a part of their rows is kept, too."""
    if request.param != "fits":
        kept = 30 if request.param == "thinned" else 10**9
        monkeypatch.setattr(streaming, "COPIES", 10**9)
        monkeypatch.setattr(streaming, "rows_per_learner", lambda *_: kept)
    return str(request.param)


@pytest.mark.parametrize(
    ("where", "group"), [("sorted.parquet", "site"), ("hive", "site"), ("files", "filename")]
)
def test_the_answer_is_that_of_the_table_as_a_whole(
    run, folder: Path, room: str, where: str, group: str
) -> None:
    whole = run("fit", folder / "sorted.parquet", *COLUMNS, "--group", "site", "--out", folder / "whole")
    assert whole.code == 0
    out = folder / "parts"
    parts = run("fit", folder / where, *COLUMNS, "--group", group, "--memory", "2GiB", "--out", out)
    assert parts.code == 0, parts.err
    same = ("labels.csv",) if room == "thinned" else ("labels.csv", "gains.csv", "losses.csv")
    for name in same:
        assert (out / name).read_text() == (folder / "whole" / name).read_text()
    notes = json.loads((out / "summary.json").read_text())["notes"]
    assert bool(notes) == (room != "fits")
    if group == "site":
        new = run("predict", out / "model.coterie", folder / "sorted.parquet", "--out", folder / "p.csv")
        assert new.code == 0, new.err


@pytest.mark.parametrize(("where", "group"), [("sorted.parquet", "site"), ("hive", "site")])
def test_a_target_of_classes_is_seen_to_be_one(run, folder: Path, room: str, where: str, group: str) -> None:
    for path in folder.glob("**/*.parquet"):
        named = pl.when(pl.col("y") > 0).then(pl.lit("high")).otherwise(pl.lit("low"))
        pl.read_parquet(path, hive_partitioning=False).with_columns(y=named).write_parquet(path)
    options = ("--target", "y", "--candidates", "logistic", "--no-report", "--group", group)
    whole = run("fit", folder / "sorted.parquet", *options, "--out", folder / "whole")
    parts = run("fit", folder / where, *options, "--memory", "2GiB", "--out", folder / "parts")
    assert whole.code == parts.code == 0, parts.err
    assert "holds 2 classes: 'high', 'low'" in parts.out
    assert (folder / "parts/labels.csv").read_text() == (folder / "whole/labels.csv").read_text()
    model = coterie.load(folder / "parts" / "model.coterie")
    assert model.classes_.tolist() == ["high", "low"]
    assert model.collaboration_.method == ("average" if room == "thinned" else "auto")
    new = run("predict", folder / "parts/model.coterie", folder / "sorted.parquet", "--out", folder / "p.csv")
    assert new.code == 0, new.err


def test_two_numbers_at_first_and_more_behind_are_numbers(run, folder: Path, monkeypatch) -> None:
    monkeypatch.setattr(streaming, "COPIES", 10**9)
    monkeypatch.setattr(streaming, "rows_per_learner", lambda *_: 10**9)
    table = pl.read_parquet(folder / "sorted.parquet").with_columns(y=(pl.col("y") > 0).cast(pl.Int64))
    table = table.with_columns(y=pl.when(pl.col("site") == "05").then(2).otherwise("y"))
    table.write_parquet(folder / "sorted.parquet")
    monkeypatch.setattr("coterie.cli.partitions._looked_at", lambda *_: table.filter(pl.col("site") < "03"))
    options = ("--target", "y", "--no-report", "--group", "site", "--memory", "1GiB", "--candidates", "lr")
    outcome = run("fit", folder / "sorted.parquet", *options, "--out", folder / "out")
    assert outcome.code == 0, outcome.err
    assert isinstance(coterie.load(folder / "out" / "model.coterie"), coterie.CoterieRegressor)


def fitted(run, folder: Path, where: str, **options: str) -> list[dict]:
    given = {"group": "site", "memory": "1GiB", "out": str(folder / "out")} | options
    flags = [part for name, value in given.items() for part in (f"--{name}", value)]
    out = run("fit", folder / where, *COLUMNS, *flags, "--force")
    assert out.code == 0, out.err
    rows = pl.read_csv(folder / "out" / "gains.csv", schema_overrides={"learner": pl.String}).to_dicts()
    notes = json.loads((folder / "out" / "summary.json").read_text())["notes"]
    return [*rows, {"notes": " ".join(notes)}]


def test_rows_that_cannot_be_used_are_counted(run, folder: Path, table: pl.DataFrame, room: str) -> None:
    spoilt = table.with_columns(
        y=pl.when(pl.col("x0") > 1).then(None).otherwise("y"),
        site=pl.when(pl.col("site") == "02").then(None).otherwise("site"),
    )
    # A learner without a target; one of four rows.
    spoilt = spoilt.with_columns(y=pl.when(pl.col("site") == "05").then(None).otherwise("y"))
    keep = (pl.col("site") != "04") | pl.col("site").is_null() | (pl.int_range(pl.len()).over("site") < 4)
    spoilt = spoilt.filter(keep)
    spoilt.write_parquet(folder / "gaps.parquet", row_group_size=50)
    usable = spoilt.filter(pl.col("site").is_not_null() & pl.col("y").is_not_null())
    *rows, said = fitted(run, folder, "gaps.parquet")
    counts = dict(usable.group_by("site").len().iter_rows())
    assert {row["learner"]: row["n_rows"] for row in rows} == counts
    assert "40 of 204 rows have no learner ('site') and were left out." in said["notes"]
    if room != "fits":
        assert f"{usable.height} of 164 rows were read" in said["notes"]
        assert "Learner '05' has no rows that can be used and was left out." in said["notes"]


def test_learners_are_neither_merged_nor_lost(run, folder: Path, table: pl.DataFrame, room: str) -> None:
    # The same name in two folders, a link to a folder, a file named twice, no entry.
    for place, site in (("a", "00"), ("b", "01"), ("c", "02")):
        (folder / "same" / place).mkdir(parents=True)
        table.filter(pl.col("site") == site).drop("site").write_parquet(folder / f"same/{place}/part.parquet")
    *rows, _ = fitted(run, folder, "same", group="filename")
    assert [row["learner"] for row in rows] == [str(folder / f"same/{p}/part.parquet") for p in "abc"]
    elsewhere = folder / "elsewhere"
    (folder / "hive" / "site=05").rename(elsewhere)
    (folder / "hive" / "site=05").symlink_to(elsewhere)
    nobody = folder / "hive" / "site=__HIVE_DEFAULT_PARTITION__"
    nobody.mkdir()
    table.head(7).drop("site").write_parquet(nobody / "0.parquet")
    *rows, said = fitted(run, folder, "hive")
    assert [row["learner"] for row in rows] == [f"0{k}" for k in range(5)] + ["05"]
    assert "7 of 247 rows have no learner" in said["notes"]


def test_a_file_that_is_named_twice_is_read_once(run, folder: Path) -> None:
    options = ("--group", "site", "--memory", "1GiB", "--out", folder / "out")
    path = folder / "sorted.parquet"
    assert run("fit", path, path, folder / "*.parquet", *COLUMNS, *options).code == 0
    assert pl.read_csv(folder / "out" / "gains.csv")["n_rows"].to_list() == [40] * 6


def test_what_becomes_of_a_column_is_seen_in_its_middle_and_end(run, folder: Path, monkeypatch) -> None:
    monkeypatch.setattr(streaming, "COPIES", 10**9)
    monkeypatch.setattr(streaming, "rows_per_learner", lambda *_: 10**9)
    data = make_linear_learners(4, n_truths=1, n_rows=1200, n_features=2, random_state=0)
    late = np.tile(np.arange(1200) >= 600, 4).astype(float)
    rows = pl.DataFrame(data.X, schema=["x0", "x1"])
    rows = rows.with_columns(flag=late, y=data.y + 3 * late, site=pl.Series(data.groups)).sort("site")
    rows.write_parquet(folder / "late.parquet")
    *gains, _ = fitted(run, folder, "late.parquet")
    assert all(row["error_alone"] < 1.5 for row in gains)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda t: t.drop("x0"), "lacks the column 'x0'"),
        (lambda t: t.with_columns(z=1), "alone has the column 'z'"),
        (lambda t: t.with_columns(x0=pl.col("x0").cast(pl.String)), "The column 'x0' is number in"),
    ],
)
def test_files_whose_columns_differ_are_refused(run, folder: Path, change, complaint: str) -> None:
    path = folder / "hive" / "site=04" / "0.parquet"
    change(pl.read_parquet(path)).write_parquet(path)
    out = run("fit", folder / "hive", *COLUMNS, "--group", "site", "--memory", "1GiB", "--out", folder / "o")
    assert complaint in out.complaint


def test_scattered_rows_are_refused(run, folder: Path, table: pl.DataFrame) -> None:
    table.sample(fraction=1, shuffle=True, seed=0).write_parquet(folder / "mixed.parquet")
    options = ("--group", "site", "--memory", "1GiB", "--out", folder / "out")
    out = run("fit", folder / "mixed.parquet", *COLUMNS, *options)
    assert "lie in more than 16 places: sort the files by 'site'" in out.complaint


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("x.csv", b"y,site\n1,a\n", "--memory reads Parquet files"),
        ("x.parquet", b"PAR1 and no more", "cannot be read as Parquet"),
        ("empty/x.txt", b"", "There is no Parquet file in the folder"),
    ],
)
def test_other_files_are_refused(run, tmp_path: Path, name: str, content: bytes, complaint: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    given = path.parent if name.startswith("empty") else path
    out = run("fit", given, *COLUMNS, "--group", "site", "--memory", "1GiB", "--out", tmp_path / "out")
    assert complaint in out.complaint


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--group", "sight", "--memory", "1GiB"), "no column 'sight' for --group: did you mean 'site'?"),
        (("--group", "site", "--memory", "lots"), "number with a unit, such as '2GiB'"),
        (("--group", "site", "--memory", "510MiB", "--features", "x9"), "no column 'x9' for --features"),
        (("--group", "site", "--memory", "490MiB"), "MiB of memory: 50 rows of each are the least"),
    ],
)
def test_bad_options_are_refused(run, folder: Path, arguments: tuple[str, ...], complaint: str) -> None:
    out = run("fit", folder / "sorted.parquet", *COLUMNS, *arguments, "--out", folder / "out")
    assert complaint in out.err.strip().split("\n")[-1]
    assert out.code == 2
    assert not (folder / "out").exists()


def test_a_file_that_breaks_while_it_is_read_is_named_and_the_rest_is_kept(
    run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "COPIES", 10**9)
    monkeypatch.setattr(streaming, "rows_per_learner", lambda *_: 10**9)
    monkeypatch.setattr("coterie.cli.partitions._looked_at", lambda *_: pl.read_parquet(whole))
    whole = folder / "sorted.parquet"
    broken = folder / "hive" / "site=03" / "0.parquet"
    content = bytearray(broken.read_bytes())
    content[20:60] = bytes(40)
    broken.write_bytes(bytes(content))
    options = ("--group", "site", "--memory", "1GiB", "--out", folder / "out")
    out = run("fit", folder / "hive", *COLUMNS, *options)
    assert out.code == 2
    assert "site=03" in out.err
    assert "write it again" in out.err
    good = pl.read_parquet(whole).filter(pl.col("site") == "03").drop("site")
    good.write_parquet(broken)
    again = run("fit", folder / "hive", *COLUMNS, *options, "--resume")
    assert again.code == 0, again.err
    assert "3 finished fits were taken from" in again.err
