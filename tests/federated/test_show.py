"""Sites in processes of their own come to the local fit, and open nobody else's rows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SHOW = Path(__file__).parents[2] / "benchmarks" / "federated" / "show.py"

pytestmark = pytest.mark.skipif(
    not hasattr(sys, "addaudithook") or sys.platform == "win32", reason="needs fork"
)


def show(*options: str) -> dict[str, object]:
    run = subprocess.run([sys.executable, SHOW, *options], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    return json.loads(run.stdout)


def assert_demonstrated(found: dict[str, object]) -> None:
    assert found["same partition as the local fit"]
    assert found["attacked are those outside the last site's coterie"]
    assert found["files of others that were opened"] == []
    assert found["coteries"] == 2


def test_six_sites_two_of_them_attacked():
    assert_demonstrated(
        show("--sites", "6", "--attacked", "2", "--source", "simulated", "--candidates", "lr")
    )


@pytest.mark.slow
def test_fifty_sites_of_the_grid_twenty_of_them_attacked():
    from reproductions.download.transfer import DatasetUnavailable
    from reproductions.grid.data import load_grid_stability

    try:
        load_grid_stability()
    except DatasetUnavailable as error:
        pytest.skip(str(error))
    assert_demonstrated(show("--sites", "50", "--attacked", "20"))
