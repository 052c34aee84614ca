"""A part of the attack on every run of the tests, and the committed report of the whole."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks" / "attack"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the attack needs Linux: /proc and fork")

# Breaks the code in a way that it was broken before, and runs a part of the attack.
BROKEN = """
import contextlib, runpy, sys
from coterie import _files
from coterie.cli import folders
from coterie.persistence import archive

@contextlib.contextmanager
def in_place(path, **_):
    with open(path, "w+b") as file:
        yield file

match sys.argv[1]:
    case "two renames":
        folders.exchange = lambda *_: False
        folders.Workplace._bring_back = lambda self: None
    case "temporary files":
        _files.remove_stale = lambda folder: None
    case "in place":
        archive.write_whole = in_place
sys.argv = ["kills.py", "--random", "0", *sys.argv[2:]]
sys.path.insert(0, {folder!r})
runpy.run_path({folder!r} + "/kills.py", run_name="__main__")
"""


def ran(*command: str) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("polars", reason="polars is not installed: pip install '.[cli]'")
    environment = os.environ | {"OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, check=False, env=environment
    )


def test_no_kill_and_no_disk_does_harm() -> None:
    outcome = ran(str(FOLDER / "kills.py"), "--every", "20", "--random", "6", "--seed", "1")
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "options", "noticed"),
    [
        ("two renames", ("--only", "fit --force"), "is lost"),
        ("temporary files", ("--only", "share"), "is left over"),
        ("in place", ("--only", "save"), "is neither old nor new"),
    ],
)
def test_the_attack_notices_what_was_wrong_before(fault: str, options: tuple[str, ...], noticed: str) -> None:
    outcome = ran("-c", BROKEN.format(folder=str(FOLDER)), fault, *options)
    assert outcome.returncode == 1, outcome.stdout + outcome.stderr
    assert noticed in outcome.stdout


def test_the_report_is_that_of_a_whole_run_without_a_fault() -> None:
    text = (FOLDER / "kills.md").read_text(encoding="utf-8")
    assert "--every 1 --random 100 " in text
    named = r"\| (fit|save|share|score|conclude)"
    rows = [line.split("|")[1:-1] for line in text.splitlines() if re.match(named, line)]
    assert len(rows) == 9
    for row in rows:
        operations, *counts = (int(cell) for cell in row[1:])
        assert counts[:3] == [operations] * 3
        assert counts[-1] == 0
