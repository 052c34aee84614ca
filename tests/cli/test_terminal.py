"""On a terminal there are bars with the time left; a reader that goes away is no error."""

import re
import subprocess
import sys

import polars as pl
import pytest

pexpect = pytest.importorskip("pexpect")

FIT = ("table.csv", "--target", "y", "--group", "site", "--candidates", "knn", "--no-report")


def test_bars_show_the_stages_and_the_time_left(here):
    command = ["-m", "coterie.cli", "fit", *FIT, "--n-clusters", "auto", "--out", "out"]
    terminal = pexpect.spawn(sys.executable, command, encoding="utf-8", timeout=120, dimensions=(40, 120))
    terminal.expect(r"Select +[^\r\n]*━+[^\r\n]* [1-6]/6 [^\r\n]*\d:\d\d")
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 0
    output = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", terminal.before)
    for stage in ("Exchange", "Cluster", "Collaborate"):
        assert re.search(rf"{stage} +━+ +(\d+)/\1 ", output), stage
    assert "coteries" in output


def test_a_reader_that_goes_away_is_no_error(fitted, table):
    pl.concat([table] * 200).write_parquet("long.parquet")
    line = f"{sys.executable} -m coterie.cli predict {fitted} long.parquet | head -n 1"
    output = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True)
    assert output.stdout == "site,prediction\n"
    assert output.stderr == ""
