"""Some hundred bent models and messages, of numbers and of classes; ``readers.py`` reads 200,000."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "fuzz" / "readers.py"

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="limits of processes"),
    pytest.mark.skipif(not SCRIPT.exists(), reason="benchmarks are not in the source distribution"),
]


def test_bent_models_are_refused_or_sound():
    pytest.importorskip("onnx")
    command = [sys.executable, str(SCRIPT), "--inputs", "1500", "--seed", "3"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "faults: 0" in done.stdout
    assert "accepted" in done.stdout
