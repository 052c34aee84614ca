"""Parquet files that are read learner by learner."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

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


@pytest.mark.parametrize(
    ("where", "group"), [("sorted.parquet", "site"), ("hive", "site"), ("files", "filename")]
)
def test_the_answer_is_that_of_the_table_as_a_whole(run, folder: Path, where: str, group: str) -> None:
    whole = run("fit", folder / "sorted.parquet", *COLUMNS, "--group", "site", "--out", folder / "whole")
    assert whole.code == 0
    out = folder / "parts"
    parts = run("fit", folder / where, *COLUMNS, "--group", group, "--memory", "2GiB", "--out", out)
    assert parts.code == 0, parts.err
    for name in ("labels.csv", "gains.csv", "losses.csv"):
        assert (out / name).read_text() == (folder / "whole" / name).read_text()
    summary = json.loads((out / "summary.json").read_text())
    assert summary["notes"] == []
    new = run("predict", out / "model.coterie", folder / "sorted.parquet", "--out", folder / "p.csv")
    if group == "site":
        assert new.code == 0, new.err


def test_rows_that_were_left_out_are_counted(run, folder: Path, table: pl.DataFrame) -> None:
    table.with_columns(y=pl.when(pl.col("x0") > 1).then(None).otherwise("y")).write_parquet(
        folder / "gaps.parquet"
    )
    left = int((table["x0"] > 1).sum())
    options = ("--group", "site", "--memory", "1GiB", "--json", "--out", folder / "out")
    out = run("fit", folder / "gaps.parquet", *COLUMNS, *options)
    assert out.code == 0, out.err
    note = (
        f"{240 - left} of 240 rows were read, learner by learner; {240 - left} were kept for the clustering."
    )
    assert note in json.loads(out.out)["notes"]


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
        (("--group", "site", "--memory", "490MiB"), "of memory: 50 rows of each are the least"),
    ],
)
def test_bad_options_are_refused(run, folder: Path, arguments: tuple[str, ...], complaint: str) -> None:
    out = run("fit", folder / "sorted.parquet", *COLUMNS, *arguments, "--out", folder / "out")
    assert complaint in out.err.strip().split("\n")[-1]
    assert out.code == 2
    assert not (folder / "out").exists()


def test_a_file_that_breaks_while_it_is_read_is_named(run, folder: Path) -> None:
    broken = folder / "hive" / "site=03" / "0.parquet"
    content = bytearray(broken.read_bytes())
    content[20:60] = bytes(40)
    broken.write_bytes(bytes(content))
    options = ("--group", "site", "--memory", "1GiB", "--out", folder / "out")
    out = run("fit", folder / "hive", *COLUMNS, *options)
    assert out.code == 2
    assert "site=03" in out.err
    assert "write it again" in out.err
