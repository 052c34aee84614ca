"""A few hundred bent model files, as ``make fuzz`` reads a hundred thousand."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks" / "fuzz"
SCRIPT = FOLDER / "model_files.py"

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="limits of processes"),
    pytest.mark.skipif(not SCRIPT.exists(), reason="benchmarks are not in the source distribution"),
]


def test_bent_files_neither_end_nor_stall_nor_fill_the_process():
    pytest.importorskip("onnx")
    command = [sys.executable, str(SCRIPT), "--inputs", "300", "--seed", "7", "--workers", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "faults: 0" in done.stdout
    # The fuzzer bends, and does not only break.
    assert "accepted, predicted" in done.stdout


def test_a_worker_that_dies_is_a_fault_of_its_file():
    """The first file of each batch is replaced by one that kills whoever reads it."""
    pytest.importorskip("onnx")
    code = (
        f"import sys; sys.path.insert(0, {str(FOLDER)!r})\n"
        "import os, model_files\n"
        "def kill(path, number):\n"
        "    if number == 3: os.abort()\n"
        "    return 'refused', 'odd' if number == 5 else ''\n"
        "model_files.read_one = kill\n"
        "model_files.archives.bent = lambda files, number, seed: ('bytes', b'x')\n"
        "tally = model_files.run(8, 0, 2, [])\n"
        "assert tally.done == 8, tally.done\n"
        "assert tally.faults == ['file 3 (bytes): crash, signal 6', 'file 5 (bytes): odd'], tally.faults\n"
    )
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr


def test_every_kind_of_entry_is_among_those_that_are_made_large():
    """A kind that is added to the reader is added to `expansions.py`, too."""
    pytest.importorskip("onnx")
    code = (
        f"import sys; sys.path.insert(0, {str(FOLDER)!r})\n"
        "import inspect, re, random, json, expansions\n"
        "from coterie.persistence.codec import Decoder, DATES, MAPPINGS, RECORDS\n"
        'known = set(re.findall(r\'"\\$": "(\\w+)"\', inspect.getsource(Decoder)))\n'
        "text = inspect.getsource(expansions)\n"
        "assert known and all(f'\"{kind}\"' in text for kind in {*known, *DATES, *MAPPINGS}), known\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
