"""A tenth of the hostile inputs; `benchmarks/attack/inputs.md` is the report of all of them."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

pytest.importorskip("cryptography", reason="the sealed folder: install coterie's extra 'federated'")

FOLDER = Path(__file__).parents[2] / "benchmarks" / "attack"


def load():
    spec = spec_from_file_location("attack_inputs", FOLDER / "inputs.py")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


inputs = load()


def faults(outcomes):
    return [f"{outcome.changes}: {outcome.fault}" for outcome in outcomes if outcome.fault]


# Neighbours, so that each of fit, predict and admit is among them.
@pytest.mark.parametrize("first", [0, 100, 200])
def test_a_hostile_table_has_the_right_answer_or_one_sentence(first):
    assert faults(inputs.run("estimator", range(first, first + 10))) == []


def test_a_hostile_command_has_the_right_answer_or_one_sentence():
    assert faults(inputs.run("command line", range(0, 300, 10))) == []


def test_the_harness_sees_a_fault():
    bent = inputs.Bent(changes=["fit"])
    for error, what in (
        (KeyError("x"), "KeyError"),
        (ValueError("one\ntwo, and a remedy beside"), "no sentence"),
    ):

        def fail(error=error):
            raise error

        assert what in inputs._try(fail, lambda found: True, bent).fault
    assert inputs._try(lambda: 1, lambda found: False, bent).fault == "another answer"
    assert "Traceback" in inputs._command_fault(1, 1.0, "", "Traceback (most recent call last)")
    assert inputs._command_fault(2, 1.0, "", "coterie: One sentence.\n") == ""
    assert "raw" in inputs._command_fault(0, 1.0, "a\x1b[31m", "")
    assert inputs._command_fault(-14, 1.0, "", "") == "a hang"
    assert "no sentence" in inputs._command_fault(2, 1.0, "", "coterie: One.\ncoterie: Two.\n")


def test_the_committed_report_has_no_fault():
    text = (FOLDER / "inputs.md").read_text()
    assert "| estimator | 100 |" in text
    assert "| command line | 120 |" in text
    for line in text.splitlines():
        assert not line.startswith(("| estimator", "| command line")) or line.endswith("| 0 |")
